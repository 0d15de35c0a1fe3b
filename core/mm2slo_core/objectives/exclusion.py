"""Planned maintenance: times whose events are counted as excluded, neither good nor bad.

Two readers see an exclusion differently. Burn rules learn of it while they run and never count
the past again: they know it from when it was added until it ended or was removed. Reports count
anew each time: they know all of it, and nothing of one that was taken back after its end. Where
the two differ, a report says so by a mark.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.topology import Flow


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The time [start, end), epoch ms. Raises ValueError when it holds nothing."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise ValueError(f"a span of [{self.start}, {self.end}) ms holds nothing")

    def overlaps(self, other: Span) -> bool:
        """Whether they have a moment in common; spans that touch have none."""
        return self.start < other.end and other.start < self.end


class ExclusionState(StrEnum):
    """Where an exclusion stands at a moment."""

    PLANNED = "planned"
    RUNNING = "running"
    PAST = "past"
    REMOVED = "removed"
    """It excludes nothing: removed before it started, or taken back after it ended."""


class Mark(StrEnum):
    """Why reports and burn rules see different times."""

    ADDED_LATE = "added late"
    """Added after its start: burn rules counted what had passed by then."""
    TAKEN_BACK = "taken back"
    """Removed after its end: burn rules had left it out already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """Planned maintenance of the flows whose label matches one of the patterns `flows`.

    Patterns are as those of objectives: `us->eu`, `us->*` or `*`. Times are epoch ms. `silence` is
    the id of the silence in Alertmanager that was made along with it. Raises ValueError when it
    ends before it starts.
    """

    id: str
    flows: tuple[str, ...]
    start: int
    end: int
    reason: str
    who: str
    added_at: int
    removed_at: int | None = None
    removed_by: str | None = None
    silence: str | None = None

    def __post_init__(self) -> None:
        Span(self.start, self.end)

    def covers(self, flow: Flow) -> bool:
        """Whether one of the patterns matches the flow's label."""
        return any(fnmatchcase(flow.label, pattern) for pattern in self.flows)

    @property
    def in_reports(self) -> Span | None:
        """What reports leave out: cut where it was removed, None when it was taken back."""
        if self.removed_at is None:
            return Span(self.start, self.end)
        if self.removed_at >= self.end:
            return None
        return _span(self.start, self.removed_at)

    @property
    def in_rules(self) -> Span | None:
        """What burn rules left out, or will leave out."""
        end = self.end if self.removed_at is None else min(self.end, self.removed_at)
        return _span(max(self.start, self.added_at), end)

    @property
    def mark(self) -> Mark | None:
        """Why reports and burn rules differ about it; None: they do not."""
        if self.in_reports == self.in_rules:
            return None
        return Mark.TAKEN_BACK if self.in_reports is None else Mark.ADDED_LATE

    def state(self, now: int) -> ExclusionState:
        """Where it stands at *now*, epoch ms. One that was ended early is past."""
        span = self.in_reports
        if span is None:
            return ExclusionState.REMOVED
        if now < span.start:
            return ExclusionState.PLANNED
        return ExclusionState.RUNNING if now < span.end else ExclusionState.PAST


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same time in the fewest spans, in order; those that touch become one."""
    found: list[Span] = []
    for span in sorted(spans):
        if found and span.start <= found[-1].end:
            found[-1] = Span(found[-1].start, max(found[-1].end, span.end))
        else:
            found.append(span)
    return tuple(found)


def excluded_from_reports(exclusions: Iterable[Exclusion], flow: Flow) -> tuple[Span, ...]:
    """What reports leave out of *flow*, in order and without overlaps."""
    return merged(
        span for each in exclusions if each.covers(flow) and (span := each.in_reports) is not None
    )


def excluded_from_rules(exclusions: Iterable[Exclusion], flow: Flow) -> tuple[Span, ...]:
    """What burn rules leave out of *flow*, in order and without overlaps."""
    return merged(
        span for each in exclusions if each.covers(flow) and (span := each.in_rules) is not None
    )


def clash(
    new: Exclusion, existing: Iterable[Exclusion], flows: Iterable[Flow]
) -> tuple[Exclusion, Flow] | None:
    """The first of *existing* that already excludes a part of *new*, and for which of *flows*."""
    wanted = new.in_reports
    if wanted is None:
        return None
    covered = [flow for flow in flows if new.covers(flow)]
    for each in existing:
        span = each.in_reports
        if span is None or not span.overlaps(wanted):
            continue
        for flow in covered:
            if each.covers(flow):
                return each, flow
    return None


def _span(start: int, end: int) -> Span | None:
    return Span(start, end) if start < end else None


SHORTEST_MS: Final = 60_000
"""Burn rules look every 30 s; what is shorter could fall between two looks."""
LONGEST_MS: Final = 7 * 86_400_000
"""A quarter of the default window: with more left out, a promise over 28 days says little."""
