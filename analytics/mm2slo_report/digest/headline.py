"""The first lines of a digest: objectives met, counts by status, trends."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from mm2slo_core.objectives.slo_status import Status
from mm2slo_core.reporting.entry_order import count_by_status, headline
from mm2slo_core.reporting.report_entry import WindowKind
from mm2slo_report.digest.budget_bars import format_trend
from mm2slo_report.rendering.report_sentences import status_text
from mm2slo_report.rendering.value_format import moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mm2slo_core.reporting.report_entry import Entry
    from mm2slo_core.reporting.slo_report import Report

SIGNS: Final = {
    Status.BREACHED: ":red_circle:",
    Status.AT_RISK: ":large_orange_circle:",
    Status.NO_DATA: ":grey_question:",
    Status.MET: ":large_green_circle:",
    Status.IDLE: ":white_circle:",
}


def title(report: Report) -> str:
    """`Replication SLOs, 7d to 2026-07-20 09:00 CEST: 11 of 14 met, 2 breached, 1 no data`."""
    return f"Replication SLOs, {_period(report)}: {_format_met(report.entries)}"


def format_status_counts(entries: Iterable[Entry]) -> str:
    """Counts by status with emoji, without zeros."""
    return "   ".join(
        f"{SIGNS[status]} {count} {status_text(status)}"
        for status, count in count_by_status(entries).items()
        if count
    )


def format_trend_counts(entries: Sequence[Entry]) -> str:
    """How many objectives have more or less budget remaining than in the previous period.

    Empty if none is comparable.
    """
    found = Counter(_direction(each) for each in entries)
    if found[_NO_COMPARISON] == len(entries):
        return ""
    parts = [f"{found[each]} {each}" for each in _DIRECTIONS if found[each]]
    return f"Compared with the previous period: {', '.join(parts)}"


_NO_COMPARISON: Final = "not comparable"
_DIRECTIONS: Final = ("better", "worse", "unchanged", _NO_COMPARISON)


def _direction(entry: Entry) -> str:
    if entry.before is None or entry.before.has_low_coverage:
        return _NO_COMPARISON
    text = format_trend(entry.budget.remaining, entry.before.remaining)
    if not text or entry.budget.remaining is None:
        return _NO_COMPARISON
    return {"▲": "better", "▼": "worse"}.get(text[0], "unchanged")


def _format_met(entries: Sequence[Entry]) -> str:
    if not entries:
        return "no objectives"
    found = headline(entries)
    met = found[Status.MET]
    text = f"all {met} met" if met == len(entries) else f"{met} of {len(entries)} met"
    for status in (Status.BREACHED, Status.AT_RISK, Status.NO_DATA, Status.IDLE):
        text += f", {found[status]} {status_text(status)}" if found[status] else ""
    text += f", {found['stale']} stale" if found["stale"] else ""
    if any(each.confirmation is not None and each.confirmation.faults for each in entries):
        text += ", and audits found faults"
    return text


def _period(report: Report) -> str:
    as_of = moment(report.as_of, ZoneInfo(report.zone))
    window = report.window
    if window is None:
        return f"to {as_of}"
    if window.kind is WindowKind.ROLLING:
        return f"{window.name} to {as_of}"
    running = window.end - window.start < round(window.seconds * 1000)
    return f"{window.name} so far, to {as_of}" if running else window.name
