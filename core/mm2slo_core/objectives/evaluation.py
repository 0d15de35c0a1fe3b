"""The recording rules in Python: from samples of counters to increases, steps and their sums.

The twin of `mm2slo_alerts.recording`, for reports that have no Prometheus and for the test that
both say the same. Times are epoch ms, lengths seconds. Averages over the replicas of an exporter
are taken of bad and all events alike.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.objectives.increase import Sample, increase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

STEP: Final = 300.0
"""Between two recorded steps, and the length of each."""
EVENTS_INTERVAL: Final = 30.0
"""Between two evaluations of the short windows."""
SETTLES: Final = 120.0
"""After planned maintenance: its events still settle."""
_INNER: Final = 300.0


class Counts(NamedTuple):
    """Bad events and all settled ones; shares of events, where replicas were averaged."""

    bad: float
    events: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What one replica of the exporter published of one indicator, ascending in time."""

    good: Sequence[Sample] = ()
    total: Sequence[Sample] = ()
    unknown: Sequence[Sample] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Increments of five minutes; None is a series without a sample at that time."""

    at: int
    counts: Counts | None = None
    unknown: float | None = None
    excluded: float | None = None


def increases(replicas: Iterable[Counters], at: int, length: float) -> Counts | None:
    """Direct increases over *length*; None where no replica has two samples of `total`.

    A missing counter of good events makes all events bad, and bad events are never below zero.
    """
    known = tuple(replicas)
    events = _pooled((each.total for each in known), at, length)
    if events is None:
        return None
    good = _pooled((each.good for each in known), at, length)
    return Counts(max(events - (good or 0.0), 0.0), events)


def short_window(
    replicas: Sequence[Counters], at: int, length: float, active: Sequence[int] = ()
) -> Counts | None:
    """The counts of a window of 5 minutes to an hour, as recorded at *at*.

    *active* are the times at which planned maintenance was recorded, ascending. A window that it
    touches is the sum of the increments of 5 minutes that it does not touch, recorded every 30
    seconds; the shortest window has no counts then.
    """
    if not touched(active, at, length):
        return increases(replicas, at, length)
    if length <= _INNER:
        return None
    inner = [
        found
        for moment in _grid(at, length, EVENTS_INTERVAL)
        if (found := short_window(replicas, moment, _INNER, active)) is not None
    ]
    if not inner:
        return None
    overlap = _INNER / EVENTS_INTERVAL
    return Counts(
        sum(each.bad for each in inner) / overlap, sum(each.events for each in inner) / overlap
    )


def step(replicas: Sequence[Counters], at: int, active: Sequence[int] = ()) -> Step:
    """The increments that are recorded at *at*, with maintenance in `excluded` alone."""
    counts = increases(replicas, at, STEP)
    if touched(active, at, STEP):
        return Step(at=at, excluded=None if counts is None else counts.events)
    return Step(
        at=at,
        counts=counts,
        unknown=_pooled((each.unknown for each in replicas), at, STEP),
    )


def step_sum(steps: Sequence[Step], at: int, length: float) -> Counts | None:
    """The chain: the sum of the *steps* (ascending) of the last *length* seconds; None of none."""
    found = [each.counts for each in _lately(steps, at, length) if each.counts is not None]
    if not found:
        return None
    return Counts(sum(each.bad for each in found), sum(each.events for each in found))


def step_coverage(steps: Sequence[Step], due: int, at: int, length: float) -> float | None:
    """How much of the last *length* seconds is known: of the events, times that of the steps.

    *due* steps should have been recorded. None where nothing was due, or nothing happened.
    """
    if not due:
        return None
    lately = _lately(steps, at, length)
    scraped = sum(each.counts is not None for each in lately)
    if not scraped:
        return 0.0
    events = sum(each.counts.events for each in lately if each.counts is not None)
    unknown = sum(each.unknown or 0.0 for each in lately)
    if events + unknown <= 0:
        return None
    return events / (events + unknown) * min(scraped / due, 1.0)


def touched(active: Sequence[int], at: int, length: float) -> bool:
    """Whether maintenance was recorded in the last *length* seconds, or while it settled."""
    start = at - round((length + SETTLES) * 1000)
    return bisect_left(active, start) < bisect_right(active, at)


def _pooled(series: Iterable[Sequence[Sample]], at: int, length: float) -> float | None:
    found = [grown for samples in series if (grown := increase(samples, at, length)) is not None]
    return sum(found) / len(found) if found else None


def _grid(at: int, length: float, interval: float) -> range:
    """The evaluations that a range of *length*, half an *interval* short, holds."""
    pace = round(interval * 1000)
    return range(at - (round(length * 1000) // pace - 1) * pace, at + 1, pace)


def _lately(steps: Sequence[Step], at: int, length: float) -> Sequence[Step]:
    # Half a step short, as the rules are: the edges of a range never decide.
    start = at - round((length - STEP / 2) * 1000)
    key: Callable[[Step], int] = lambda each: each.at  # noqa: E731 - typed for bisect
    first = bisect_left(steps, start, key=key)
    return steps[first : bisect_right(steps, at, lo=first, key=key)]
