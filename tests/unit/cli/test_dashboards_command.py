"""`mm2slo dashboards generate` and `check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from mm2slo_cli.dashboards import dashboards_app
from mm2slo_core.errors import UserError
from mm2slo_dashboards.files import generated

if TYPE_CHECKING:
    from pathlib import Path


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(dashboards_app, list(map(str, arguments)))
    if isinstance(result.exception, UserError):
        raise result.exception
    return result.exit_code, result.output


def test_generates_and_finds_the_files_current(tmp_path: Path) -> None:
    code, said = run("generate", "--out", tmp_path)
    assert code == 0
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert written == set(generated())
    assert all(str(tmp_path / name) in said for name in written)
    code, said = run("check", "--out", tmp_path)
    assert code == 0
    assert f"{len(written)} files in {tmp_path} are current" in said


def test_a_changed_file_is_told(tmp_path: Path) -> None:
    run("generate", "--out", tmp_path)
    changed = tmp_path / "grafana" / "dashboards" / "mm2slo-flow.json"
    changed.write_text(changed.read_text().replace("MirrorMaker 2 / Flow", "Mine"))
    code, said = run("check", "--out", tmp_path)
    assert code == 1
    assert f"{changed} is not current; run: mm2slo dashboards generate" in said


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(UserError, match="name another folder with --out"):
        run("generate", "--out", tmp_path / "out")
