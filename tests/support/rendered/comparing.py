"""CSV, Markdown and HTML of a report, held against the entries of its JSON."""

from __future__ import annotations

import csv
import io
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from mm2slo_core.reporting.words import share, signed_share
from mm2slo_report.rendering.figures import burn, count
from rendered.reading import Document, cells, data_of_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    Entries = Sequence[dict[str, Any]]

SHOWN: Final = {
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
_TOLD: Final = SHOWN | {
    "events.good": "good",
    "events.unknown": "unknown",
    "events.excluded": "excluded",
    "budget.consumed": "budget_consumed",
    "budget.total_events": "budget_total_events",
    "budget.remaining_events": "budget_remaining_events",
    "budget.total_seconds": "budget_total_seconds",
    "coverage.samples": "samples",
    "coverage.expected_samples": "expected_samples",
}
_COUNTS: Final = re.compile(r"([\d,.]+) good, ([\d,.]+) bad, ([\d,.]+) unknown, ([\d,.]+) excluded")


def csv_says(text: str, entries: Entries) -> None:
    """The figures of JSON, to the last digit."""
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["id"] for row in rows] == [each["id"] for each in entries]
    for row, entry in zip(rows, entries, strict=True):
        for path, column in _TOLD.items():
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


def html_says(html: str, entries: Entries) -> None:
    """The figures of JSON for machines, to the last digit, and in words for people."""
    rows = data_of_rows(html)
    assert list(rows) == [each["id"] for each in entries]
    for entry in entries:
        said = rows[entry["id"]]
        for path in SHOWN:
            assert _same(said[path].value, _at(entry, path)), (entry["id"], path)
        assert said["sli_value"].text == share(entry["sli_value"])
        assert said["events.bad"].text == count(entry["events"]["bad"])
        assert said["events.total"].text == count(entry["events"]["total"])
        assert said["budget.remaining"].text.startswith(signed_share(entry["budget"]["remaining"]))
    named = [each.attributes for each in Document(html).elements if "data-slo" in each.attributes]
    assert [each["data-status"] for each in named] == [each["status"] for each in entries]


def markdown_says(text: str, entries: Entries) -> None:
    """The figures of JSON in words."""
    header, *rows = cells(text)
    assert len(rows) == len(entries)
    for row, entry in zip(rows, entries, strict=True):
        said = dict(zip(header, row, strict=True))
        assert said["Status"] == entry["status"].replace("_", " ")
        assert said["Flow"] == entry["flow"]["name"]
        assert said["Measured"] == share(entry["sli_value"])
        assert said["Bad events"] == count(entry["events"]["bad"])
        assert said["Events"] == count(entry["events"]["total"])
        assert said["Budget left"].startswith(signed_share(entry["budget"]["remaining"]))
        assert said["Burn 1h"] == burn(entry["burn_rate"]["1h"])
        assert said["Coverage"] == share(entry["coverage"]["ratio"])
    names = ("good", "bad", "unknown", "excluded")
    told = sorted(_COUNTS.findall(text))
    assert told == sorted(tuple(count(each["events"][name]) for name in names) for each in entries)


def _at(entry: dict[str, Any], path: str) -> Any:
    found: Any = entry
    for part in path.split("."):
        found = None if found is None else found[part]
    return found


def _same(text: str, value: float | None) -> bool:
    return text == "" if value is None else float(text) == value
