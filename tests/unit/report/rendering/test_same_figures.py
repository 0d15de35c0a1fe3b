"""JSON, CSV, Markdown and HTML of one report are read back, and carry the same numbers."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from typing import Any

import pytest
from rendered import sample_details, sample_report
from rendered.reading import cells, data_of_rows

from mm2slo_core.reporting.words import share, signed_share
from mm2slo_report.rendering import as_csv, as_html, as_json, as_markdown, page
from mm2slo_report.rendering.figures import burn, count

REPORT = sample_report()
ENTRIES: list[dict[str, Any]] = json.loads(as_json(REPORT))["entries"]
FIELDS = {
    "sli_value": "sli_value",
    "objective": "objective",
    "events.bad": "bad",
    "events.total": "total",
    "budget.remaining": "budget_remaining",
    "burn_rate.1h": "burn_rate_1h",
    "trend_vs_previous_window.sli_value": "previous_sli_value",
    "coverage.ratio": "coverage",
}
"""What a row of the HTML table says, and its column of the CSV."""


def at(entry: dict[str, Any], path: str) -> Any:
    found: Any = entry
    for part in path.split("."):
        found = None if found is None else found[part]
    return found


def same(text: str, value: float | None) -> bool:
    return text == "" if value is None else float(text) == value


def test_the_sample_has_every_status_and_figures_that_are_not_known() -> None:
    assert {each["status"] for each in ENTRIES} == {"ok", "warning", "breached", "no_data", "idle"}
    assert None in {each["sli_value"] for each in ENTRIES}


def test_csv_has_the_figures_of_json_to_the_last_digit() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(REPORT))))
    assert [row["id"] for row in rows] == [each["id"] for each in ENTRIES]
    for row, entry in zip(rows, ENTRIES, strict=True):
        for path, column in FIELDS.items():
            assert same(row[column], at(entry, path)), (entry["id"], path)
        assert row["status"] == entry["status"]
        assert row["as_of"] == entry["as_of"]
        assert row["budget_remaining_seconds"] == (
            ""
            if entry["budget"]["remaining_seconds"] is None
            else f"{Decimal(repr(entry['budget']['remaining_seconds'])):f}"
        )


@pytest.mark.parametrize(
    "html", [as_html(REPORT, sample_details()), page(REPORT)], ids=["report", "page"]
)
def test_html_has_the_figures_of_json_to_the_last_digit(html: str) -> None:
    rows = data_of_rows(html)
    assert list(rows) == [each["id"] for each in ENTRIES]
    for entry in ENTRIES:
        said = rows[entry["id"]]
        for path in FIELDS:
            assert same(said[path].value, at(entry, path)), (entry["id"], path)
        assert said["sli_value"].text == share(entry["sli_value"])
        assert said["events.bad"].text == count(entry["events"]["bad"])
        assert said["budget.remaining"].text.startswith(signed_share(entry["budget"]["remaining"]))


def test_markdown_has_the_figures_of_json_in_words() -> None:
    header, *rows = cells(as_markdown(REPORT))
    assert len(rows) == len(ENTRIES)
    for row, entry in zip(rows, ENTRIES, strict=True):
        said = dict(zip(header, row, strict=True))
        assert said["Status"] == entry["status"].replace("_", " ")
        assert said["Flow"] == entry["flow"]["name"]
        assert said["Measured"] == share(entry["sli_value"])
        assert said["Bad events"] == count(entry["events"]["bad"])
        assert said["Events"] == count(entry["events"]["total"])
        assert said["Budget left"].startswith(signed_share(entry["budget"]["remaining"]))
        assert said["Burn 1h"] == burn(entry["burn_rate"]["1h"])
        assert said["Coverage"] == share(entry["coverage"]["ratio"])


def test_nothing_is_printed_as_100_percent_while_something_is_bad() -> None:
    for entry in ENTRIES:
        if entry["events"]["bad"]:
            assert share(entry["sli_value"]) != "100 %"
