"""Generated pages are up to date."""

from pathlib import Path

import pytest

from mm2slo_cli import docs
from mm2slo_cli.config_pages import render_configuration, render_reference

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docs/configuration.md", render_configuration()),
        ("docs/reference-config.yaml", render_reference()),
    ],
    ids=["configuration", "reference"],
)
def test_page_about_configuration_is_up_to_date(name: str, text: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == text


def test_reference_file_has_an_option_with_choices_default_unit_and_description_on_its_line() -> (
    None
):
    page = render_reference()
    assert "    slice: 15s  # Length of one time slice of the data freshness SLI\n" in page
    assert "    level: info  # debug | info | warning | error. Minimum level\n" in page
    assert "    conf: {}  # Additional Spark properties, passed through unchanged\n" in page
    assert max(map(len, page.splitlines())) <= 100


def test_configuration_page_contains_every_section_and_its_options() -> None:
    page = render_configuration()
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
