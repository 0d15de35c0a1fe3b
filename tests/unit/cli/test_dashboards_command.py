"""`mm2slo dashboards generate` and `check`."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mm2slo_cli.dashboards import dashboards_app
from mm2slo_core.user_errors import UserError
from mm2slo_dashboards.dashboard_files import generate_files


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(dashboards_app, list(map(str, arguments)))
    if isinstance(result.exception, UserError):
        raise result.exception
    return result.exit_code, result.output


def test_dashboards_generate_writes_files_that_check_accepts(tmp_path: Path) -> None:
    code, output = run("generate", "--out", tmp_path)
    assert code == 0
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert written == set(generate_files())
    assert all(str(tmp_path / name) in output for name in written)
    code, output = run("check", "--out", tmp_path)
    assert code == 0
    assert f"{len(written)} files in {tmp_path} are current" in output


def test_dashboards_check_changed_file_exits_1(tmp_path: Path) -> None:
    run("generate", "--out", tmp_path)
    changed = tmp_path / "grafana" / "dashboards" / "mm2slo-flow.json"
    changed.write_text(changed.read_text().replace("MirrorMaker 2 / Flow", "Mine"))
    code, output = run("check", "--out", tmp_path)
    assert code == 1
    assert f"{changed} is outdated; run: mm2slo dashboards generate --out {tmp_path}\n" in output


def test_dashboards_generate_unwritable_folder_raises_user_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(UserError, match="choose another folder"):
        run("generate", "--out", tmp_path / "out")
