"""Sentences shared by the Markdown and HTML reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.objectives.slo_status import Status
from mm2slo_core.reporting.entry_order import count_by_status
from mm2slo_core.reporting.percent_text import share, signed_share
from mm2slo_report.rendering.value_format import length, moment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from mm2slo_core.reporting.report_entry import Entry
    from mm2slo_core.reporting.slo_report import Report


def status_text(status: Status) -> str:
    """`no data` for `no_data`."""
    return status.value.replace("_", " ")


def status_counts(report: Report) -> str:
    """`2 breached, 0 warning, 1 no data, 18 ok, 0 idle`."""
    found = count_by_status(report.entries).items()
    return ", ".join(f"{number} {status_text(status)}" for status, number in found)


def verdict(report: Report) -> str:
    """One sentence with the worst status and the number of objectives in it."""
    number = len(report.entries)
    if not number:
        return "No objectives are configured"
    states = count_by_status(report.entries)
    for status, one, many in _WORST:
        if states[status]:
            verb = one if states[status] == 1 else many
            return f"{states[status]} of {_objectives(number)} {verb}"
    if states[Status.NO_DATA]:
        return f"No recent data for {states[Status.NO_DATA]} of {_objectives(number)}"
    idle, ok = states[Status.IDLE], states[Status.OK]
    if idle and ok:
        within = f"{ok} of {_objectives(number)} {'is' if ok == 1 else 'are'} within budget"
        return f"{within}, {idle} {'is' if idle == 1 else 'are'} idle"
    state = "idle" if idle else "within budget"
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
    (Status.WARNING, "has a warning", "have warnings"),
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
    """The reason of the status, with its window pair."""
    return f"{entry.reason.value} ({entry.pair})" if entry.pair else entry.reason.value
