"""Generated pages are up to date."""

from pathlib import Path

import pytest

from mm2slo_cli import docs
from mm2slo_cli.docs import render_configuration

ROOT = Path(__file__).parents[3]


def test_configuration_page_is_up_to_date() -> None:
    assert (ROOT / "docs/configuration.md").read_text(encoding="utf-8") == render_configuration()


def test_configuration_page_contains_every_section_and_its_options() -> None:
    page = docs.render_configuration()
    for heading in ("`flows[].canary`", "`clusters.<alias>.security.sasl.oauth`", "`exporter.log`"):
        assert f"## {heading}\n" in page
    assert "| `interval` | duration, at least 100ms | `1s` | Time between two canaries. |" in page


def test_docs_check_reports_outdated_page_and_writing_updates_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(docs, "rendered_files", lambda: {"docs/a.md": "a\n"})
    assert docs.main(["--check"]) == 1
    assert capsys.readouterr().err == ("docs/a.md is outdated; run: python -m mm2slo_cli.docs\n")
    assert docs.main([]) == 0
    assert docs.main(["--check"]) == 0
