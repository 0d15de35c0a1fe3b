"""JSON, CSV, Markdown and HTML of one report are read back, and carry the same numbers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rendered import sample_details, sample_report
from rendered.comparing import csv_says, html_says, markdown_says

from mm2slo_core.reporting.words import share
from mm2slo_report.rendering import as_csv, as_html, as_json, as_markdown, page

REPORT = sample_report()
ENTRIES: list[dict[str, Any]] = json.loads(as_json(REPORT))["entries"]


def test_the_sample_has_every_status_and_figures_that_are_not_known() -> None:
    assert {each["status"] for each in ENTRIES} == {"ok", "warning", "breached", "no_data", "idle"}
    assert None in {each["sli_value"] for each in ENTRIES}


def test_csv_has_the_figures_of_json_to_the_last_digit() -> None:
    csv_says(as_csv(REPORT), ENTRIES)


@pytest.mark.parametrize(
    "html", [as_html(REPORT, sample_details()), page(REPORT)], ids=["report", "page"]
)
def test_html_has_the_figures_of_json_to_the_last_digit(html: str) -> None:
    html_says(html, ENTRIES)


def test_markdown_has_the_figures_of_json_in_words() -> None:
    markdown_says(as_markdown(REPORT), ENTRIES)


def test_nothing_is_printed_as_100_percent_while_something_is_bad() -> None:
    for entry in ENTRIES:
        if entry["events"]["bad"]:
            assert share(entry["sli_value"]) != "100 %"
