"""One entry of a report: the state of an objective at one instant; the order of entries.

Values are neither clamped nor rounded; None means unknown or not applicable. Times are epoch ms,
lengths seconds. A part of a response is a dataclass whose fields have the types below, which say
how instants, figures and counts are written in JSON; its `serialization_alias` is the name there.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from math import isfinite
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field, PlainSerializer, with_config

from mm2slo_core.objectives.error_budget import MIN_COVERAGE, Reason, Status
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.objectives.objective import Objective, Severity
from mm2slo_core.reporting.step_counts import SpanCounts


@lru_cache(maxsize=4096)
def utc_text(at: int) -> str:
    """*at* (epoch ms) as RFC 3339 in UTC: `2026-07-14T10:30:00Z`, with ms if not zero."""
    moment = datetime.fromtimestamp(at / 1000, UTC).replace(tzinfo=None)
    precision = "milliseconds" if at % 1000 else "seconds"
    return f"{moment.isoformat(timespec=precision)}Z"


def int_if_whole(value: float | None) -> float | int | None:
    """*value*, as an int if whole; None for NaN and infinities."""
    if value is None or not isfinite(value):
        return None
    return int(value) if value == int(value) else value


def _finite_or_none(value: float | None) -> float | None:
    # JSON (RFC 8259, section 6) has neither NaN nor infinities.
    return None if value is None or not isfinite(value) else float(value)


def _seconds_of_minutes(minutes: float | None) -> float | None:
    return None if minutes is None else _finite_or_none(minutes * 60)


def _maybe_utc_text(at: int | None) -> str | None:
    return None if at is None else utc_text(at)


Instant = Annotated[
    int,
    PlainSerializer(utc_text, return_type=str),
    Field(json_schema_extra={"format": "date-time"}),
]
"""Epoch ms."""

MaybeInstant = Annotated[int | None, PlainSerializer(_maybe_utc_text, return_type=str | None)]

Seconds = Annotated[float, PlainSerializer(float, return_type=float)]

Minutes = Annotated[float | None, PlainSerializer(_seconds_of_minutes, return_type=float | None)]
"""Seconds in JSON."""

_finite = PlainSerializer(_finite_or_none, return_type=float | None)
Figure = Annotated[float | None, _finite]
"""Null for NaN and infinities."""
KnownFigure = Annotated[float, _finite]

_whole = PlainSerializer(int_if_whole, return_type=int | float | None)
Count = Annotated[float | None, _whole]
"""A number of events or records; a fraction comes from averaged replicas."""
KnownCount = Annotated[float, _whole]


def _without_defaults(schema: dict[str, Any]) -> None:
    # A response always has all its fields, so that defaults would only mislead its readers.
    for each in schema["properties"].values():
        each.pop("default", None)


json_part = with_config(
    ConfigDict(
        extra="forbid",
        serialize_by_alias=True,
        json_schema_serialization_defaults_required=True,
        json_schema_extra=_without_defaults,
    )
)
"""Decorates a dataclass that is a part of a response."""


class WindowKind(StrEnum):
    """The kind of a report window."""

    ROLLING = "rolling"
    CALENDAR = "calendar"


@json_part
@dataclass(frozen=True, slots=True, kw_only=True)
class ReportWindow:
    """The time [start, end) of an entry, as requested: `28d`, `2026-07`, `2026-Q3`.

    `end` is not after the instant of the report.
    """

    name: str
    kind: WindowKind
    seconds: Annotated[
        Seconds,
        Field(
            serialization_alias="duration_seconds",
            description="Nominal: of the whole month in a running month.",
        ),
    ]
    start: Instant
    end: Instant

    @property
    def is_finished(self) -> bool:
        """Whether it is a calendar period that is over."""
        return self.kind is WindowKind.CALENDAR and self.end >= self.whole.end

    @property
    def whole(self) -> Span:
        """The whole period, also what is still to come."""
        return Span(self.start, self.start + round(self.seconds * 1000))


class PairState(StrEnum):
    """The state of a window pair."""

    QUIET = "quiet"
    RECOVERING = "recovering"
    """Only the long window exceeds the threshold."""
    BURNING = "burning"


@json_part
@dataclass(frozen=True, slots=True, kw_only=True)
class PairReading:
    """A pair burns if both windows burn faster than the threshold."""

    name: str
    severity: Severity
    long_seconds: Seconds
    short_seconds: Seconds
    long: Annotated[Figure, Field(serialization_alias="long_burn_rate")]
    """None without events, as `short`."""
    short: Annotated[Figure, Field(serialization_alias="short_burn_rate")]
    factor: Annotated[Seconds, Field(serialization_alias="threshold", description="A burn rate.")]
    state: PairState
    since: MaybeInstant = None
    """Start of uninterrupted burning; None if it does not burn or was not computed."""


@json_part
@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetReading:
    """The error budget of the whole window."""

    total: Annotated[Seconds, Field(serialization_alias="allowed_error_ratio")]
    consumed: Annotated[Figure, Field(serialization_alias="consumed_ratio")]
    remaining: Annotated[
        Figure,
        Field(serialization_alias="remaining_ratio", description="Negative if overspent."),
    ]
    total_events: KnownCount
    remaining_events: KnownCount
    total_seconds: Annotated[Seconds, Field(description="Of total outage.")]
    remaining_minutes: Annotated[Minutes, Field(serialization_alias="remaining_seconds")]
    """Of total outage, as `total_minutes`."""
    minutes_are_estimate: Annotated[
        bool,
        Field(serialization_alias="is_estimate", description="Whether the seconds are estimated."),
    ]
    seconds: Annotated[float, Field(exclude=True)]
    """Length of the whole window without planned maintenance."""
    total_minutes: Annotated[float, Field(exclude=True)]


@json_part
@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Coverage of the window and of the last hour, without the time before the first sample."""

    window: Annotated[Figure, Field(serialization_alias="ratio")]
    hour: Annotated[Figure, Field(serialization_alias="last_hour_ratio")]
    expected_minutes: Annotated[int, Field(serialization_alias="expected_samples")]
    minutes: Annotated[int, Field(serialization_alias="samples")]
    """Minutes with a sample, of `expected_minutes`."""
    known_since: MaybeInstant
    """Time of the first sample; None without samples."""


@json_part
@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """Audits of the flow in the window."""

    audited_up_to: MaybeInstant
    records: int = 0
    """Audited source records."""
    faults: Mapping[str, int]
    """By verdict, without zeros."""
    loss_below: Annotated[
        Figure,
        Field(serialization_alias="loss_below_ratio", description="With 95 % confidence."),
    ] = None
    """None for a census or if unknown."""
    sentence: str = ""
    run_ids: tuple[str, ...] = ()


@json_part
@dataclass(frozen=True, slots=True)
class BudgetPart:
    """A day of the window, or a step if its data starts less than two days before its end."""

    start: Instant
    end: Instant
    bad: Annotated[KnownCount, Field(serialization_alias="bad_events")]
    consumed: Annotated[Figure, Field(serialization_alias="consumed_ratio")]
    """Share of the window's budget; None without events."""


@json_part
@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A run of minutes or steps with bad events, with gaps of up to 5 minutes."""

    start: Instant
    end: Instant
    duration_seconds: Seconds = field(init=False, default=0.0)
    bad: Annotated[KnownCount, Field(serialization_alias="bad_events")]
    consumed: Annotated[
        KnownFigure, Field(serialization_alias="consumed_ratio", description="Of the budget.")
    ]
    equivalent_minutes: Annotated[
        KnownFigure, Field(description="Of total outage that cost as much.")
    ]

    def __post_init__(self) -> None:
        object.__setattr__(self, "duration_seconds", (self.end - self.start) / 1000)


@json_part
@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodComparison:
    """The previous window, of the same length if rolling, and the change since."""

    start: Instant
    end: Instant
    ratio: Annotated[KnownFigure, Field(serialization_alias="sli_ratio")]
    ratio_change: Annotated[Figure, Field(serialization_alias="sli_ratio_change")] = None
    """Of the entry, since; None if it has no ratio."""
    remaining: Annotated[KnownFigure, Field(serialization_alias="remaining_ratio")]
    coverage: Annotated[Figure, Field(serialization_alias="coverage_ratio")]
    """The time before the first sample lowers it, too; None if all was planned maintenance."""

    @property
    def has_low_coverage(self) -> bool:
        """Whether its coverage is too low for a reliable comparison."""
        return self.coverage is not None and self.coverage < MIN_COVERAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One objective as of `as_of`."""

    id: str
    objective: Objective
    window: ReportWindow
    as_of: int
    status: Status
    reason: Reason
    pair: str
    """The window pair that caused the status, or empty."""
    stale_since: int | None
    """End of the last sample, if it is not recent; None for current data or without samples."""
    counts: SpanCounts
    excluded: SpanCounts
    """Events of planned maintenance, in no other value."""
    ratio: float | None
    """Share of settled events that were good."""
    budget: BudgetReading
    burn_rates: Mapping[str, float | None]
    """By window name: 5m, 1h, 2h, 6h, 1d, 3d."""
    exhaustion_seconds: float | None
    projected_remaining: float | None
    pairs: tuple[PairReading, ...]
    coverage: Coverage
    before: PeriodComparison | None
    """None without events."""
    confirmation: Confirmation | None
    warnings: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def is_current(self) -> bool:
        """Whether the status includes recent samples, or is that of a finished period."""
        return self.stale_since is None and not self.errors and self.reason not in _UNSEEN


_UNSEEN = frozenset({Reason.NO_SAMPLES})

_ORDER: Final = (
    Status.BREACHED,
    Status.AT_RISK,
    Status.NO_DATA,
    Status.MET,
    Status.IDLE,
)


def worst_first(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Sort by status, remaining budget and id."""
    return tuple(sorted(entries, key=_badness))


def count_by_status(entries: Iterable[Entry]) -> Mapping[Status, int]:
    """The number of entries by status; all statuses, the worst first."""
    numbers = Counter(each.status for each in entries)
    return {status: numbers[status] for status in _ORDER}


def headline(entries: Collection[Entry]) -> dict[str, int]:
    """The number of objectives, of each status, and of verdicts that are not current."""
    return {
        "objectives": len(entries),
        **{status.value: number for status, number in count_by_status(entries).items()},
        "stale": sum(not each.is_current and each.status is not Status.NO_DATA for each in entries),
    }


def _badness(entry: Entry) -> tuple[int, float, str]:
    remaining = entry.budget.remaining
    return (_ORDER.index(entry.status), 1.0 if remaining is None else remaining, entry.id)
