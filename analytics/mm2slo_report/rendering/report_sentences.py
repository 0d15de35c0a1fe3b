"""Sentences shared by the Markdown and HTML reports."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Final

from mm2slo_core.objectives.slo_status import Status
from mm2slo_core.reporting.entry_order import count_by_status, headline
from mm2slo_core.reporting.percent_text import share, signed_share
from mm2slo_report.rendering.value_format import length, moment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from mm2slo_core.reporting.report_entry import Entry
    from mm2slo_core.reporting.slo_report import Report


def status_text(status: Status) -> str:
    """`at risk` for `at_risk`."""
    return status.value.replace("_", " ")


def status_counts(report: Report) -> str:
    """`2 breached, 0 at risk, 1 no data, 18 met, 0 idle`."""
    found = count_by_status(report.entries).items()
    return ", ".join(f"{number} {status_text(status)}" for status, number in found)


def verdict(report: Report) -> str:
    """One sentence: the number of objectives with the worst status, and without recent data."""
    number = len(report.entries)
    if not number:
        return "No objectives are configured"
    stale = headline(report.entries)["stale"]
    note = f"; no recent data for {stale}" if stale else ""
    return _worst(report, number) + note


def _worst(report: Report, number: int) -> str:
    states = count_by_status(report.entries)
    for status, one, many in _WORST:
        if states[status]:
            verb = one if states[status] == 1 else many
            return f"{states[status]} of {_objectives(number)} {verb}"
    if states[Status.NO_DATA]:
        return f"No data for {states[Status.NO_DATA]} of {_objectives(number)}"
    idle, met = states[Status.IDLE], states[Status.MET]
    if idle and met:
        kept = f"{met} of {_objectives(number)} {'is' if met == 1 else 'are'} met"
        return f"{kept}, {idle} {'is' if idle == 1 else 'are'} idle"
    state = "idle" if idle else "met"
    return f"All {number} objectives are {state}" if number > 1 else f"The objective is {state}"


def stopped(states: Sequence[str | None]) -> str:
    """Sentence with the number of stopped flows; empty if none is."""
    number = states.count("stopped")
    if not number:
        return ""
    if len(states) == 1:
        return "The flow is stopped"
    return f"{number} of {len(states)} flows {'is' if number == 1 else 'are'} stopped"


def _objectives(number: int) -> str:
    return f"{number} objective{'s' if number > 1 else ''}"


_WORST: Final = (
    (Status.BREACHED, "is breached", "are breached"),
    (Status.AT_RISK, "is at risk", "are at risk"),
)


def period(report: Report, zone: tzinfo) -> str:
    """The period of the report."""
    if report.window is None:
        return "Each objective over its own window"
    window = report.window
    return f"Period {window.name}, {moment(window.start, zone)} to {moment(window.end, zone)}"


def budget_left(entry: Entry) -> str:
    """`61.2 % (about 3.3 h)`."""
    left = signed_share(entry.budget.remaining)
    return left if entry.budget.remaining is None else f"{left} ({budget_time(entry)})"


def budget_time(entry: Entry) -> str:
    """`about 3.3 h`, `overspent by about 12 min`: the budget as time of total outage."""
    left = entry.budget.remaining_minutes
    if left is None:
        return "n/a"
    about = "about " if entry.budget.minutes_are_estimate else ""
    if left < 0:
        return f"overspent by {about}{length(-left * 60, up=True)}"
    return f"{about}{length(left * 60)}"


def exhaustion(entry: Entry) -> str:
    """When the budget will be exhausted at the current burn rate."""
    if entry.budget.remaining is None:
        return "n/a"
    if entry.exhaustion_seconds is None:
        # Unknown without a burn rate of the last hour; irrelevant for a past period.
        return "not burning" if entry.burn_rates.get("1h") == 0 else "n/a"
    return (
        "exhausted" if entry.exhaustion_seconds <= 0 else f"in {length(entry.exhaustion_seconds)}"
    )


def trend(entry: Entry) -> str:
    """The measured share of the previous period, with its coverage if low."""
    before = entry.before
    if before is None:
        return "n/a"
    note = f" (coverage {share(before.coverage)})" if before.has_low_coverage else ""
    return f"{share(before.ratio)}{note}"


def reason_text(entry: Entry) -> str:
    """The reason of the status, with its window pair, and since when it is not current."""
    text = f"{entry.reason.value} ({entry.pair})" if entry.pair else entry.reason.value
    stale = stale_text(entry)
    return f"{text}; {stale}" if stale else text


def stale_text(entry: Entry) -> str:
    """`stale: no samples since 2026-07-14 10:30 UTC`; empty for a current status."""
    if entry.stale_since is None:
        return ""
    return f"stale: no samples since {moment(entry.stale_since, UTC)}"
