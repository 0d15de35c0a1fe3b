"""Exclusions: planned maintenance whose events are neither good nor bad.

Recording rules exclude only the time from when an exclusion was added until it ended or was
removed, because they do not recompute the past. Reports exclude all of it, or nothing if it was
removed after its end. If the two differ, reports show a mark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Final

from mm2slo_core.topology import Flow


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The time [start, end), epoch ms. Raises ValueError if it is empty."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.start >= self.end:
            name = type(self).__name__.lower()
            raise ValueError(f"{name} [{self.start}, {self.end}) ms is empty; expected start < end")

    def overlaps(self, other: Span) -> bool:
        """Whether both have a common instant; adjacent spans do not."""
        return self.start < other.end and other.start < self.end


class ExclusionState(StrEnum):
    """The state of an exclusion at an instant."""

    PLANNED = "planned"
    RUNNING = "running"
    PAST = "past"
    REMOVED = "removed"
    """Excludes nothing: removed before its start or after its end."""


class ExclusionMark(StrEnum):
    """Why reports and recording rules exclude different times."""

    ADDED_LATE = "added late"
    """Added after its start: recording rules counted the events until then."""
    REMOVED_LATE = "removed late"
    """Removed after its end: recording rules had excluded it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """Planned maintenance of the flows whose label matches one of the patterns `flows`.

    Patterns are as in objectives: `us->eu`, `us->*` or `*`. Times are epoch ms. `silence` is the id
    of its Alertmanager silence. Raises ValueError if it ends before it starts.
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
        return _matches(self.flows, flow)

    @property
    def in_reports(self) -> Span | None:
        """The time that reports exclude; None if it was removed after its end."""
        if self.removed_at is None:
            return Span(self.start, self.end)
        if self.removed_at >= self.end:
            return None
        # Ended early: what has passed was maintenance.
        return _span(self.start, self.removed_at)

    @property
    def in_rules(self) -> Span | None:
        """The time that recording rules exclude."""
        # Prometheus evaluates a recording rule once for each instant: samples that were recorded
        # before the rule file changed stay as they are.
        end = self.end if self.removed_at is None else min(self.end, self.removed_at)
        return _span(max(self.start, self.added_at), end)

    @property
    def mark(self) -> ExclusionMark | None:
        """Why reports and recording rules differ; None if they do not."""
        if self.in_reports == self.in_rules:
            return None
        return ExclusionMark.REMOVED_LATE if self.in_reports is None else ExclusionMark.ADDED_LATE

    def state(self, now: int) -> ExclusionState:
        """The state at *now* (epoch ms). An exclusion that was ended early is past."""
        span = self.in_reports
        if span is None:
            return ExclusionState.REMOVED
        if now < span.start:
            return ExclusionState.PLANNED
        return ExclusionState.RUNNING if now < span.end else ExclusionState.PAST


def merge_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    """*spans* in order, with overlapping and adjacent ones merged."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return tuple(merged)


def excluded_from_reports(exclusions: Iterable[Exclusion], flow: Flow) -> tuple[Span, ...]:
    """The times of *flow* that reports exclude, in order and without overlaps."""
    return merge_spans(
        span for each in exclusions if each.covers(flow) and (span := each.in_reports) is not None
    )


def excluded_from_rules(exclusions: Iterable[Exclusion], flow: Flow) -> tuple[Span, ...]:
    """The times of *flow* that recording rules exclude, in order and without overlaps."""
    return merge_spans(
        span for each in exclusions if each.covers(flow) and (span := each.in_rules) is not None
    )


def find_overlap(
    new: Exclusion, existing: Iterable[Exclusion], flows: Iterable[Flow]
) -> tuple[Exclusion, Flow] | None:
    """The first of *existing* that overlaps *new*, and the affected one of *flows*."""
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


def _matches(patterns: Iterable[str], flow: Flow) -> bool:
    return any(fnmatchcase(flow.label, pattern) for pattern in patterns)


def _span(start: int, end: int) -> Span | None:
    return Span(start, end) if start < end else None


MIN_EXCLUSION_MS: Final = 60_000
"""Recording rules are evaluated every 30 s and could miss a shorter exclusion."""

MAX_EXCLUSION_MS: Final = 7 * 86_400_000
"""A quarter of the default window: excluding more makes an objective over 28 days meaningless."""
MAX_REASON_LENGTH: Final = 200
MAX_NAME_LENGTH: Final = 80

MAX_TIMESTAMP_MS: Final = 253_370_764_800_000
"""Start of the year 9999 (epoch ms): earlier timestamps are valid dates in any time zone."""


def exclusion_id(start: int, suffix: str) -> str:
    """An id that sorts by the date of *start* (epoch ms) and is valid in URL paths."""
    return f"{datetime.fromtimestamp(start / 1000, UTC):%Y%m%d}-{suffix}"


def matching_flows(patterns: tuple[str, ...], flows: Iterable[Flow]) -> tuple[Flow, ...]:
    """Those of *flows* whose label matches one of *patterns*, with `*` and `?` as wildcards."""
    return tuple(flow for flow in flows if _matches(patterns, flow))


def exclusion_document(
    exclusion: Exclusion, now: int, moment: Callable[[int], int | str]
) -> dict[str, Any]:
    """*exclusion* at *now* as JSON types; *moment* formats times."""
    mark, removed = exclusion.mark, exclusion.removed_at
    return {
        "id": exclusion.id,
        "state": exclusion.state(now).value,
        "flows": list(exclusion.flows),
        "from": moment(exclusion.start),
        "to": moment(exclusion.end),
        "reason": exclusion.reason,
        "added_by": exclusion.who,
        "added_at": moment(exclusion.added_at),
        "removed_by": exclusion.removed_by,
        "removed_at": None if removed is None else moment(removed),
        "mark": None if mark is None else mark.value,
        "silence": exclusion.silence,
    }
