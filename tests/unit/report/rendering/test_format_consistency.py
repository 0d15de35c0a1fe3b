"""JSON, CSV, Markdown and HTML of a report contain the same values."""

import json
from typing import Any

import pytest
from sample_report import check_csv, check_html, check_markdown, sample_details, sample_report

from mm2slo_core.quantity_text import share_text
from mm2slo_report.rendering.report_exports import as_csv, as_markdown
from mm2slo_report.rendering.report_html import as_html, status_page_html
from mm2slo_report.rendering.report_models import ObjectiveList

REPORT = sample_report()
ENTRIES: list[dict[str, Any]] = json.loads(ObjectiveList.of(REPORT).model_dump_json())["entries"]


def test_sample_report_has_every_status_and_unknown_values() -> None:
    assert {each["status"] for each in ENTRIES} == {"met", "at_risk", "breached", "no_data", "idle"}
    assert None in {each["sli_ratio"] for each in ENTRIES}


def test_csv_has_exact_values_of_json() -> None:
    check_csv(as_csv(REPORT), ENTRIES)


@pytest.mark.parametrize(
    "html", [as_html(REPORT, sample_details()), status_page_html(REPORT)], ids=["report", "page"]
)
def test_html_has_exact_values_of_json(html: str) -> None:
    check_html(html, ENTRIES)


def test_markdown_has_values_of_json_as_text() -> None:
    check_markdown(as_markdown(REPORT), ENTRIES)


def test_share_with_bad_events_is_never_100_percent() -> None:
    for entry in ENTRIES:
        if entry["events"]["bad"]:
            assert share_text(entry["sli_ratio"]) != "100 %"
