"""One line of a report: how an objective stood at one instant, and over which time.

Every figure is unclamped and unrounded; None is "not known" or "does not apply", never zero.
Times are epoch ms, lengths seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from mm2slo_core.objectives.status import LEAST_COVERAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.objectives import Objective
    from mm2slo_core.objectives.status import Reason, Status
    from mm2slo_core.reporting.history import SpanCounts


class WindowKind(StrEnum):
    """How the time that is reported on moves."""

    ROLLING = "rolling"
    CALENDAR = "calendar"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportWindow:
    """The time [start, end) that an entry is about; `end` is never after the instant of report.

    `seconds` is the nominal length: that of a running calendar month is the whole month's. `name`
    is what the period was asked for by: `28d`, `2026-07`, `2026-Q3`.
    """

    kind: WindowKind
    name: str
    start: int
    end: int
    seconds: float


class PairState(StrEnum):
    """Where a pair of burn windows stands."""

    QUIET = "quiet"
    RECOVERING = "recovering"
    """Only the long window exceeds."""
    BURNING = "burning"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairReading:
    """A pair of burn windows; burn rates are None without events."""

    name: str
    severity: str
    long_seconds: float
    short_seconds: float
    long: float | None
    short: float | None
    factor: float
    state: PairState
    since: int | None = None
    """From when on it has burned in every minute; None: it does not, or nobody looked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetReading:
    """The budget as a share of itself, in events, and in minutes of total outage."""

    total: float
    consumed: float | None
    remaining: float | None
    seconds: float
    """What the minutes are a share of: the window, without the time before the first datum."""
    total_events: float
    remaining_events: float
    total_minutes: float
    remaining_minutes: float | None
    minutes_are_estimate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much is known: of the whole window, and of the last hour (or of a younger life)."""

    window: float | None
    hour: float | None
    minutes: int
    """With a sample, of `expected_minutes`."""
    expected_minutes: int
    known_since: int | None
    """The first datum ever, or None: nothing was ever counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """What audits say beside a canary's figures, over the same flow and window."""

    audited_up_to: int | None
    records: int = 0
    """Judged source records."""
    faults: Mapping[str, int]
    """By verdict, those above zero alone."""
    loss_below: float | None = None
    """With 95 % confidence; None for a census or without a figure."""
    sentence: str = ""
    run_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A run of minutes with bad events, with gaps of up to 5 minutes, worst first in lists."""

    start: int
    end: int
    bad: float
    consumed: float
    """Share of the window's budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The period before: as long as a rolling one, the whole month before a month."""

    start: int
    end: int
    ratio: float
    remaining: float
    coverage: float | None
    """How much of it is known; None where it was all planned maintenance."""

    @property
    def badly_known(self) -> bool:
        """Whether too little of it is known for a comparison to be relied on."""
        return self.coverage is not None and self.coverage < LEAST_COVERAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One objective at one instant (`as_of`)."""

    id: str
    objective: Objective
    window: ReportWindow
    as_of: int
    status: Status
    reason: Reason
    pair: str
    """Of the status, if it is about one."""
    counts: SpanCounts
    excluded: SpanCounts
    """Events of planned maintenance, in no other figure."""
    ratio: float | None
    """Good of settled events."""
    budget: BudgetReading
    burn_rates: Mapping[str, float | None]
    """By the name of their window: 5m, 30m, 1h, 2h, 6h, 1d, 3d."""
    exhaustion_seconds: float | None
    projected_remaining: float | None
    pairs: tuple[PairReading, ...]
    coverage: Coverage
    before: Comparison | None
    """None where nothing was counted in it."""
    confirmation: Confirmation | None
    warnings: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def met(self) -> bool | None:
        """Whether the promise was kept; None where nothing is known."""
        return None if self.ratio is None else self.ratio >= self.objective.target
