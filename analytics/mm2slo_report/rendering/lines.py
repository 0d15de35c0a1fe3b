"""Sentences that every format for people shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.objectives.status import Status
from mm2slo_core.reporting.order import by_status
from mm2slo_core.reporting.words import share, signed_share
from mm2slo_report.rendering.figures import length, moment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from mm2slo_core.reporting.entry import Entry
    from mm2slo_core.reporting.report import Report


def status_word(status: Status) -> str:
    """`no data` for `no_data`."""
    return status.value.replace("_", " ")


def counted_states(report: Report) -> str:
    """`2 breached, 0 warning, 1 no data, 18 ok, 0 idle`."""
    found = by_status(report.entries).items()
    return ", ".join(f"{number} {status_word(status)}" for status, number in found)


def verdict(report: Report) -> str:
    """The whole report in one sentence: the worst there is, and how often."""
    number = len(report.entries)
    if not number:
        return "There are no objectives to report on"
    states = by_status(report.entries)
    for status, one, many in _WORST:
        if states[status]:
            verb = one if states[status] == 1 else many
            return f"{states[status]} of {_objectives(number)} {verb}"
    if states[Status.NO_DATA]:
        return f"Nothing is known of {states[Status.NO_DATA]} of {_objectives(number)}"
    idle, ok = states[Status.IDLE], states[Status.OK]
    if idle and ok:
        within = f"{ok} of {_objectives(number)} {'is' if ok == 1 else 'are'} within budget"
        return f"{within}, {idle} {'is' if idle == 1 else 'are'} idle"
    word = "idle" if idle else "within budget"
    return f"All {number} objectives are {word}" if number > 1 else f"The one objective is {word}"


def stopped(states: Sequence[str | None]) -> str:
    """How many flows are stopped right now, by their *states*; empty when none is."""
    number = states.count("stopped")
    if not number:
        return ""
    if len(states) == 1:
        return "The one flow is stopped"
    return f"{number} of {len(states)} flows {'is' if number == 1 else 'are'} stopped"


def _objectives(number: int) -> str:
    return f"{number} objective{'s' if number > 1 else ''}"


_WORST: Final = (
    (Status.BREACHED, "is breached", "are breached"),
    (Status.WARNING, "needs care", "need care"),
)


def period(report: Report, zone: tzinfo) -> str:
    """What time the report is about."""
    if report.window is None:
        return "Each objective over its own window"
    window = report.window
    return f"Period {window.name}, {moment(window.start, zone)} to {moment(window.end, zone)}"


def budget_left(entry: Entry) -> str:
    """`61.2 % (about 3.3 h)`."""
    left = signed_share(entry.budget.remaining)
    return left if entry.budget.remaining is None else f"{left} ({budget_time(entry)})"


def budget_time(entry: Entry) -> str:
    """`about 3.3 h`, `overspent by about 12 min`: minutes of total outage, in fitting units."""
    left = entry.budget.remaining_minutes
    if left is None:
        return "n/a"
    about = "about " if entry.budget.minutes_are_estimate else ""
    if left < 0:
        return f"overspent by {about}{length(-left * 60, up=True)}"
    return f"{about}{length(left * 60)}"


def runs_out(entry: Entry) -> str:
    """When nothing is left."""
    if entry.budget.remaining is None:
        return "n/a"
    if entry.exhaustion_seconds is None:
        # Nobody knows without a figure of the last hour, nor asks of a period that is over.
        return "not burning" if entry.burn_rates.get("1h") == 0 else "n/a"
    return "used up" if entry.exhaustion_seconds <= 0 else f"in {length(entry.exhaustion_seconds)}"


def trend(entry: Entry) -> str:
    """The measured share of the period before, and how much of it is known where that is little."""
    before = entry.before
    if before is None:
        return "n/a"
    known = f" ({share(before.coverage)} known)" if before.badly_known else ""
    return f"{share(before.ratio)}{known}"


def why(entry: Entry) -> str:
    """The reason of the status, with the pair of windows it is about."""
    return f"{entry.reason.value} ({entry.pair})" if entry.pair else entry.reason.value
