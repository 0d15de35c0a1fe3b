"""Generated pages show sentences, not the templates that Prometheus and Grafana fill in."""

import re

import pytest

from mm2slo_cli.docs import rendered_files

PAGES = {name: text for name, text in rendered_files().items() if name.endswith(".md")}
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", sorted(PAGES))
def test_generated_page_shows_no_template_outside_code(name: str) -> None:
    shown = CODE.sub("", PAGES[name])
    assert [line for line in shown.splitlines() if "{{" in line or "}}" in line] == []


def test_alerts_page_shows_summaries_of_repeated_outages_as_sentences() -> None:
    page = PAGES["docs/alerts.md"]
    assert "| Flow *flow* has stopped *n* times in *n* / has stopped. |" in page
    assert "/ was unreachable *n* times in *n* / does not answer. |" in page


def test_alerts_page_lists_default_objectives() -> None:
    page = PAGES["docs/alerts.md"]
    assert "## Default objectives" in page
    assert "| `availability` | all | 99.9% | page |" in page
    assert "| `latency` | 10s | 99% | ticket |" in page
    assert "| `checkpoint_freshness` | all | 99% | ticket |" in page
