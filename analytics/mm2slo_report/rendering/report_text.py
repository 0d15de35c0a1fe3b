"""Text of reports for people: sentences, descriptions, definitions and formatted values.

Shared by HTML, Markdown and the digest. Values are never rounded to a better one.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import isfinite
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from mm2slo_core.indicators.sli_counters import ALL, Sli, SliKey
from mm2slo_core.objectives.error_budget import Status
from mm2slo_core.quantity_text import parse_shorthand, percent, share_text, signed_share_text
from mm2slo_core.reporting.report_entry import Entry, count_by_status, headline
from mm2slo_core.reporting.slo_report import Report


def status_text(status: Status) -> str:
    """`at risk` for `at_risk`."""
    return status.value.replace("_", " ")


def status_counts(report: Report) -> str:
    """`2 breached, 0 at risk, 1 no data, 18 met, 0 idle`."""
    found = count_by_status(report.entries).items()
    return ", ".join(f"{number} {status_text(status)}" for status, number in found)


def verdict_text(report: Report) -> str:
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


def stopped_flows_text(states: Sequence[str | None]) -> str:
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


def period_text(report: Report, zone: tzinfo) -> str:
    """The period of the report."""
    if report.window is None:
        return "Each objective over its own window"
    window = report.window
    start, end = moment_text(window.start, zone), moment_text(window.end, zone)
    return f"Period {window.name}, {start} to {end}"


def budget_left(entry: Entry) -> str:
    """`61.2 % (about 3.3 h)`."""
    left = signed_share_text(entry.budget.remaining)
    return left if entry.budget.remaining is None else f"{left} ({budget_time(entry)})"


def budget_time(entry: Entry) -> str:
    """`about 3.3 h`, `overspent by about 12 min`: the budget as time of total outage."""
    left = entry.budget.remaining_minutes
    if left is None:
        return "n/a"
    about = "about " if entry.budget.minutes_are_estimate else ""
    if left < 0:
        return f"overspent by {about}{duration_text(-left * 60, up=True)}"
    return f"{about}{duration_text(left * 60)}"


def exhaustion_text(entry: Entry) -> str:
    """When the budget will be exhausted at the current burn rate."""
    if entry.budget.remaining is None:
        return "n/a"
    if entry.exhaustion_seconds is None:
        # Unknown without a burn rate of the last hour; irrelevant for a past period.
        return "not burning" if entry.burn_rates.get("1h") == 0 else "n/a"
    return (
        "exhausted"
        if entry.exhaustion_seconds <= 0
        else f"in {duration_text(entry.exhaustion_seconds)}"
    )


def trend_text(entry: Entry) -> str:
    """The measured share of the previous period, with its coverage if low."""
    before = entry.before
    if before is None:
        return "n/a"
    note = f" (coverage {share_text(before.coverage)})" if before.has_low_coverage else ""
    return f"{share_text(before.ratio)}{note}"


def reason_text(entry: Entry) -> str:
    """The reason of the status, with its window pair, and since when it is not current."""
    text = f"{entry.reason.value} ({entry.pair})" if entry.pair else entry.reason.value
    stale = stale_text(entry)
    return f"{text}; {stale}" if stale else text


def stale_text(entry: Entry) -> str:
    """`stale: no samples since 2026-07-14 10:30 UTC`; empty for a current status."""
    if entry.stale_since is None:
        return ""
    return f"stale: no samples since {moment_text(entry.stale_since, UTC)}"


class SliDescription(NamedTuple):
    """What a good event is, and how events are counted."""

    description: str
    method: str
    """`events`, or `slices` (of time)."""
    unit: str


_CANARY: Final = "canaries"

_DESCRIPTIONS: Final[dict[Sli, SliDescription]] = {
    Sli.AVAILABILITY: SliDescription(
        "A canary arrives on the target before its deadline.",
        "events",
        _CANARY,
    ),
    Sli.LATENCY: SliDescription(
        "A canary is readable on the target within the threshold.", "events", _CANARY
    ),
    Sli.DATA_FRESHNESS: SliDescription(
        "During a time slice, a partition's lag in seconds stays within its threshold.",
        "slices",
        "partition slices",
    ),
    Sli.COMPLETENESS: SliDescription(
        "A canary that the flow's position has passed is on the target.", "events", _CANARY
    ),
    Sli.UNIQUENESS: SliDescription("A canary arrives on the target only once.", "events", _CANARY),
    Sli.ORDER: SliDescription(
        "A canary arrives after all canaries sent before it.", "events", _CANARY
    ),
    Sli.AFFINITY: SliDescription(
        "A canary is in the same partition as on the source.", "events", _CANARY
    ),
    Sli.CHECKPOINT_FRESHNESS: SliDescription(
        "During a time slice, the newest checkpoint of an active group is recent enough.",
        "slices",
        "group slices",
    ),
}


def sli_description(key: SliKey) -> SliDescription:
    return _DESCRIPTIONS[key.sli]


def sli_name(key: SliKey) -> str:
    """`availability`, `latency within 10s`, `data freshness (default)`."""
    text = key.sli.value.replace("_", " ")
    if key.tier == ALL:
        return text
    return f"{text} within {key.tier}" if key.sli is Sli.LATENCY else f"{text} ({key.tier})"


def sli_threshold(key: SliKey) -> float | None:
    """Seconds from the tier; None for an SLI without tiers."""
    if key.tier == ALL:
        return None
    found = parse_shorthand(key.tier)
    if found is not None:
        return found
    try:
        return float(key.tier.removesuffix("s"))
    except ValueError:
        return None


DEFINITIONS: Final = (
    ("Objective", "The share of good events that a flow's SLI must reach over a window."),
    ("Measured", "Good events divided by all settled events. Unknown events count in neither."),
    (
        "Error budget",
        (
            "The share of events that may be bad: 100 % minus the objective. A negative "
            "remaining budget is overspent."
        ),
    ),
    (
        "Budget in minutes",
        (
            "The error budget as minutes of total outage of the whole window. For "
            "SLIs that count events it is an estimate (about), at the mean event rate."
        ),
    ),
    (
        "Burn rate",
        (
            "Speed at which the error budget is spent: 1x spends it exactly by the end of the "
            "window, 10x in a tenth of the window."
        ),
    ),
    ("Exhausted", "When the error budget will be exhausted at the burn rate of the last hour."),
    (
        "Coverage",
        (
            "The measured share of the time, times the share of events with a known outcome. "
            "Planned maintenance does not lower it, nor does the time before the first data, "
            "except in a previous period."
        ),
    ),
    (
        "met, at risk, breached",
        (
            "Within budget; burning too fast, less than 25 % remaining, or an audit found faults; "
            "budget exhausted."
        ),
    ),
    (
        "no data, idle",
        ("No event of the window could be measured; no events occurred in it."),
    ),
    (
        "stale",
        (
            "No recent samples: the status is about the time before. A finished period is never "
            "stale."
        ),
    ),
    (
        "Incident",
        (
            "A run of 5-minute steps with bad events, with gaps of up to 5 minutes, of at least 3 "
            "bad events and 0.5 % of the budget; a lost record always is one."
        ),
    ),
    (
        "Audited",
        "Result of comparing the records on both clusters, independent of canaries.",
    ),
)
"""Term and meaning, in the order of reading."""
UNKNOWN: Final = "n/a"


def zone_of(name: str) -> tzinfo:
    """The time zone with the IANA *name*."""
    return UTC if name == "UTC" else ZoneInfo(name)


def moment_text(at: int, zone: tzinfo) -> str:
    """`2026-07-14 10:30 UTC`."""
    return f"{datetime.fromtimestamp(at / 1000, zone):%Y-%m-%d %H:%M %Z}"


def day_text(at: int, zone: tzinfo) -> str:
    """`14 Jul`, in English whatever the locale."""
    found = datetime.fromtimestamp(at / 1000, zone)
    return f"{found.day} {_MONTHS[found.month - 1]}"


_MONTHS: Final = (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)  # fmt: skip


def count_text(value: float | None) -> str:
    """A number of events; a fraction (from averaged replicas) is never shown as 0."""
    if value is None:
        return UNKNOWN
    if value == round(value):
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 1 else f"{value:.2g}"


def percent_text(target: float) -> str:
    """A target as configured: `99.9 %`."""
    return f"{percent(target):f} %"


def burn_rate_text(rate: float | None) -> str:
    """`14.4x`; `n/a` without events."""
    if rate is None:
        return UNKNOWN
    if rate == 0 or rate >= 100:
        return f"{rate:,.0f}x"
    return f"{rate:.3g}x"


def duration_text(seconds: float | None, *, up: bool = False) -> str:
    """A duration with one decimal in a fitting unit: `3.4 h`, `-12 min`.

    Rounded down, as for remaining time; with *up* rounded up, as for latencies.
    """
    if seconds is None:
        return UNKNOWN
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if abs(seconds) >= (2 * size if unit == "d" else size):
            return f"{_tenths(Decimal(repr(seconds)) / size, up)} {unit}"
    if seconds == 0:
        return "0 s"
    if abs(seconds) >= 1:
        return f"{_tenths(Decimal(repr(seconds)), up)} s"
    return f"{seconds * 1000:.3g} ms"


def every_digit(value: float | None) -> str:
    """Every digit of *value*, without an exponent; empty if unknown."""
    if value is None or not isfinite(value):
        return ""
    if isinstance(value, int):
        return str(value)
    return f"{Decimal(repr(value)):f}"


def _tenths(value: Decimal, up: bool) -> str:
    found = value.quantize(Decimal("0.1"), ROUND_CEILING if up else ROUND_FLOOR)
    return f"{found.to_integral() if found == found.to_integral() else found:,f}"
