"""The first lines of a digest: was it kept, how does it stand, is it getting better."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from mm2slo_core.objectives.status import Status
from mm2slo_core.reporting.entry import WindowKind
from mm2slo_core.reporting.order import by_status
from mm2slo_report.digest.figures import trend
from mm2slo_report.rendering.figures import moment
from mm2slo_report.rendering.lines import status_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mm2slo_core.reporting.entry import Entry
    from mm2slo_core.reporting.report import Report

SIGNS: Final = {
    Status.BREACHED: ":red_circle:",
    Status.WARNING: ":large_orange_circle:",
    Status.NO_DATA: ":grey_question:",
    Status.OK: ":large_green_circle:",
    Status.IDLE: ":white_circle:",
}


def title(report: Report) -> str:
    """`Replication SLOs, 7d to 2026-07-20 09:00 CEST: 11 of 14 met, 2 missed, 1 unknown`."""
    return f"Replication SLOs, {_period(report)}: {_kept(report.entries)}"


def statuses(entries: Iterable[Entry]) -> str:
    """How many stand how, with their signs; those that there are."""
    return "   ".join(
        f"{SIGNS[status]} {count} {status_word(status)}"
        for status, count in by_status(entries).items()
        if count
    )


def trends(entries: Sequence[Entry]) -> str:
    """How many have more or less of their budget left than in the period before.

    Empty where none can be compared.
    """
    found = Counter(_direction(each) for each in entries)
    if found[_NO_COMPARISON] == len(entries):
        return ""
    parts = [f"{found[word]} {word}" for word in _DIRECTIONS if found[word]]
    return f"Against the period before: {', '.join(parts)}"


_NO_COMPARISON: Final = "not to compare"
_DIRECTIONS: Final = ("better", "worse", "as before", _NO_COMPARISON)


def _direction(entry: Entry) -> str:
    if entry.before is None or entry.before.badly_known:
        return _NO_COMPARISON
    words = trend(entry.budget.remaining, entry.before.remaining)
    if not words or entry.budget.remaining is None:
        return _NO_COMPARISON
    return {"▲": "better", "▼": "worse"}.get(words[0], "as before")


def _kept(entries: Sequence[Entry]) -> str:
    if not entries:
        return "no objectives"
    found = Counter(each.met for each in entries)
    said = f"{found[True]} of {len(entries)} met"
    if found[True] == len(entries):
        said = f"all {found[True]} met"
    said += f", {found[False]} missed" if found[False] else ""
    said += f", {found[None]} unknown" if found[None] else ""
    if any(each.confirmation is not None and each.confirmation.faults for each in entries):
        said += ", and audits found faults"
    return said


def _period(report: Report) -> str:
    as_of = moment(report.as_of, ZoneInfo(report.zone))
    window = report.window
    if window is None:
        return f"to {as_of}"
    if window.kind is WindowKind.ROLLING:
        return f"{window.name} to {as_of}"
    running = window.end - window.start < round(window.seconds * 1000)
    return f"{window.name} so far, to {as_of}" if running else window.name
