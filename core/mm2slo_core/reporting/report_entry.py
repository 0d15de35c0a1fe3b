"""One entry of a report: the state of an objective at one instant; the order of entries.

Values are neither clamped nor rounded; None means unknown or not applicable. Times are epoch ms,
lengths seconds.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from mm2slo_core.objectives.error_budget import MIN_COVERAGE, Reason, Status
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.objectives.objective import Objective
from mm2slo_core.reporting.step_counts import SpanCounts


class WindowKind(StrEnum):
    """The kind of a report window."""

    ROLLING = "rolling"
    CALENDAR = "calendar"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportWindow:
    """The time [start, end) of an entry; `end` is not after the instant of the report.

    `seconds` is the nominal length, for a running month that of the whole month. `name` is the
    requested period: `28d`, `2026-07`, `2026-Q3`.
    """

    kind: WindowKind
    name: str
    start: int
    end: int
    seconds: float

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PairReading:
    """The burn rates of a window pair, None without events."""

    name: str
    severity: str
    long_seconds: float
    short_seconds: float
    long: float | None
    short: float | None
    factor: float
    state: PairState
    since: int | None = None
    """Start of uninterrupted burning; None if it does not burn or was not computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetReading:
    """The error budget as a share of itself, in events, and in minutes of total outage."""

    total: float
    consumed: float | None
    remaining: float | None
    seconds: float
    """Length of the whole window without planned maintenance."""
    total_events: float
    remaining_events: float
    total_minutes: float
    remaining_minutes: float | None
    minutes_are_estimate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Coverage of the window and of the last hour, without the time before the first sample."""

    window: float | None
    hour: float | None
    minutes: int
    """Minutes with a sample, of `expected_minutes`."""
    expected_minutes: int
    known_since: int | None
    """Time of the first sample; None without samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """Summary of the audits of the same flow and window."""

    audited_up_to: int | None
    records: int = 0
    """Audited source records."""
    faults: Mapping[str, int]
    """By verdict, without zeros."""
    loss_below: float | None = None
    """With 95 % confidence; None for a census or if unknown."""
    sentence: str = ""
    run_ids: tuple[str, ...] = ()


class BudgetPart(NamedTuple):
    """The budget spent by the part [start, end) of a window, usually a day."""

    start: int
    end: int
    bad: float
    consumed: float | None
    """Share of the window's budget; None without events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A run of minutes or steps with bad events, with gaps of up to 5 minutes."""

    start: int
    end: int
    bad: float
    consumed: float
    """Share of the window's budget."""
    equivalent_minutes: float
    """Minutes of total outage that cost as much."""

    @property
    def duration_seconds(self) -> float:
        return (self.end - self.start) / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodComparison:
    """The period before: of the same length if rolling, or the previous calendar period."""

    start: int
    end: int
    ratio: float
    remaining: float
    coverage: float | None
    """None if all of it was planned maintenance."""

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
    found = Counter(each.status for each in entries)
    return {status: found[status] for status in _ORDER}


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
