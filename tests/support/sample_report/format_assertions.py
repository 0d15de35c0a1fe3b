"""Compares CSV, Markdown and HTML reports with the entries of the JSON report."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from mm2slo_core.quantity_text import share_text, signed_share_text
from mm2slo_report.rendering.report_text import burn_rate_text, count_text
from sample_report.parsed_output import Document, cells, data_of_rows

if TYPE_CHECKING:
    Entries = Sequence[dict[str, Any]]

HTML_FIELDS: Final = {
    "sli_ratio": "sli_ratio",
    "objective_ratio": "objective_ratio",
    "events.bad": "bad",
    "events.total": "total",
    "budget.remaining_ratio": "budget_remaining_ratio",
    "burn_rate.1h": "burn_rate_1h",
    "trend_vs_previous_window.sli_ratio": "previous_sli_ratio",
    "coverage.ratio": "coverage_ratio",
}
"""Fields of an HTML row by JSON path, with their CSV columns."""
_CSV_FIELDS: Final = HTML_FIELDS | {
    "events.good": "good",
    "events.unknown": "unknown",
    "events.excluded": "excluded",
    "budget.consumed_ratio": "budget_consumed_ratio",
    "budget.total_events": "budget_total_events",
    "budget.remaining_events": "budget_remaining_events",
    "budget.total_seconds": "budget_total_seconds",
    "coverage.samples": "samples",
    "coverage.expected_samples": "expected_samples",
}
_COUNTS: Final = re.compile(r"([\d,.]+) good, ([\d,.]+) bad, ([\d,.]+) unknown, ([\d,.]+) excluded")


def check_csv(text: str, entries: Entries) -> None:
    """Every digit matches JSON."""
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["record"] == "objective"]
    assert [row["id"] for row in rows] == [each["id"] for each in entries]
    for row, entry in zip(rows, entries, strict=True):
        for path, column in _CSV_FIELDS.items():
            assert _same(row[column], _at(entry, path)), (entry["id"], path)
        assert row["status"] == entry["status"]
        assert row["status_reason"] == entry["status_reason"]
        assert row["as_of"] == entry["as_of"]
        assert row["window_start"] == entry["window"]["start"]
        assert row["budget_remaining_seconds"] == (
            ""
            if entry["budget"]["remaining_seconds"] is None
            else f"{Decimal(repr(entry['budget']['remaining_seconds'])):f}"
        )


def check_html(html: str, entries: Entries) -> None:
    """The `value` attributes match JSON exactly, and the texts match its values."""
    rows = data_of_rows(html)
    assert list(rows) == [each["id"] for each in entries]
    for entry in entries:
        cells_of_row = rows[entry["id"]]
        for path in HTML_FIELDS:
            assert _same(cells_of_row[path].value, _at(entry, path)), (entry["id"], path)
        assert cells_of_row["sli_ratio"].text == share_text(entry["sli_ratio"])
        assert cells_of_row["events.bad"].text == count_text(entry["events"]["bad"])
        assert cells_of_row["events.total"].text == count_text(entry["events"]["total"])
        assert cells_of_row["budget.remaining_ratio"].text.startswith(
            signed_share_text(entry["budget"]["remaining_ratio"])
        )
    named = [each.attributes for each in Document(html).elements if "data-slo" in each.attributes]
    assert [each["data-status"] for each in named] == [each["status"] for each in entries]


def check_markdown(text: str, entries: Entries) -> None:
    """The texts match the values of JSON."""
    header, *rows = cells(text)
    assert len(rows) == len(entries)
    for row, entry in zip(rows, entries, strict=True):
        row_texts = dict(zip(header, row, strict=True))
        assert row_texts["Status"] == entry["status"].replace("_", " ")
        assert row_texts["Flow"] == entry["flow"]["name"]
        assert row_texts["Measured"] == share_text(entry["sli_ratio"])
        assert row_texts["Bad events"] == count_text(entry["events"]["bad"])
        assert row_texts["Events"] == count_text(entry["events"]["total"])
        assert row_texts["Remaining budget"].startswith(
            signed_share_text(entry["budget"]["remaining_ratio"])
        )
        assert row_texts["Burn rate (1h)"] == burn_rate_text(entry["burn_rate"]["1h"])
        assert row_texts["Coverage"] == share_text(entry["coverage"]["ratio"])
    names = ("good", "bad", "unknown", "excluded")
    counted = sorted(_COUNTS.findall(text))
    assert counted == sorted(
        tuple(count_text(each["events"][name]) for name in names) for each in entries
    )


def _at(entry: dict[str, Any], path: str) -> Any:
    found: Any = entry
    for part in path.split("."):
        found = None if found is None else found[part]
    return found


def _same(text: str, value: float | None) -> bool:
    return text == "" if value is None else float(text) == value
