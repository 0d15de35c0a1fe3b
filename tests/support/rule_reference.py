"""The recording rules in Python: increases and steps of counters, and sums of steps.

The counterpart of `mm2slo_alerts.recording_rules`; a test compares both. Times are epoch ms,
lengths
seconds. Bad and all events are averaged over the replicas of an exporter.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from mm2slo_core.objectives.error_budget import Counts

STEP: Final = 300.0
"""Length of a recorded step, and interval between steps."""

EVENTS_INTERVAL: Final = 30.0
"""Interval between evaluations of the short windows."""

SETTLES: Final = 120.0
"""After planned maintenance, its events still settle for this time."""
_INNER: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """The counters of one indicator from one replica of the exporter, ascending in time."""

    good: Sequence[Sample] = ()
    total: Sequence[Sample] = ()
    unknown: Sequence[Sample] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Increments of five minutes; None is a series without a sample."""

    at: int
    counts: Counts | None = None
    unknown: float | None = None
    excluded: float | None = None


def increases(replicas: Iterable[Counters], at: int, length: float) -> Counts | None:
    """Increases over *length*; None if no replica has two samples of `total`.

    Without a counter of good events, all events are bad. Bad events are never below zero.
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

    *active* are the times at which planned maintenance was recorded, ascending. A window that
    overlaps maintenance is the sum of the 5-minute increments, recorded every 30 seconds, that do
    not; the 5-minute window then has no counts.
    """
    if not overlaps_maintenance(active, at, length):
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
    """The increments that are recorded at *at*; events of maintenance are in `excluded` only."""
    counts = increases(replicas, at, STEP)
    if overlaps_maintenance(active, at, STEP):
        return Step(at=at, excluded=None if counts is None else counts.events)
    return Step(
        at=at,
        counts=counts,
        unknown=_pooled((each.unknown for each in replicas), at, STEP),
    )


def measured_share(replicas: Sequence[Counters], at: int, length: float) -> float:
    """The measured share of a window without maintenance, by evaluations every 30 seconds."""
    moments = [each for each in _grid(at, length, EVENTS_INTERVAL) if each >= 0]
    found = sum(short_window(replicas, each, _INNER) is not None for each in moments)
    return found / round(length / EVENTS_INTERVAL)


def step_share(steps: Sequence[Step], at: int, length: float) -> float:
    """The measured share of the steps of the last *length* seconds without maintenance."""
    recent = _recent(steps, at, length)
    excluded = sum(each.excluded is not None for each in recent)
    return sum(each.counts is not None for each in recent) / (round(length / STEP) - excluded)


def step_sum(steps: Sequence[Step], at: int, length: float) -> Counts | None:
    """The sum of the *steps* (ascending) of the last *length* seconds; None without steps."""
    found = [each.counts for each in _recent(steps, at, length) if each.counts is not None]
    if not found:
        return None
    return Counts(sum(each.bad for each in found), sum(each.events for each in found))


def step_coverage(steps: Sequence[Step], due: int, at: int, length: float) -> float | None:
    """Coverage of the last *length* seconds: the known share of events times that of steps.

    *due* is the number of expected steps. None without expected steps or without events.
    """
    if not due:
        return None
    recent = _recent(steps, at, length)
    scraped = sum(each.counts is not None for each in recent)
    if not scraped:
        return 0.0
    events = sum(each.counts.events for each in recent if each.counts is not None)
    unknown = sum(each.unknown or 0.0 for each in recent)
    if events + unknown <= 0:
        return None
    return events / (events + unknown) * min(scraped / due, 1.0)


def overlaps_maintenance(active: Sequence[int], at: int, length: float) -> bool:
    """Whether the last *length* seconds and the settling time before overlap maintenance."""
    start = at - round((length + SETTLES) * 1000)
    return bisect_left(active, start) < bisect_right(active, at)


def _pooled(series: Iterable[Sequence[Sample]], at: int, length: float) -> float | None:
    found = [grown for samples in series if (grown := increase(samples, at, length)) is not None]
    return sum(found) / len(found) if found else None


def _grid(at: int, length: float, interval: float) -> range:
    """The evaluation times in a range of *length*, shortened by half an *interval*."""
    pace = round(interval * 1000)
    return range(at - (round(length * 1000) // pace - 1) * pace, at + 1, pace)


def _recent(steps: Sequence[Step], at: int, length: float) -> Sequence[Step]:
    # Shortened by half a step, like the rules, so that no step is exactly at an edge.
    start = at - round((length - STEP / 2) * 1000)
    key: Callable[[Step], int] = lambda each: each.at  # noqa: E731 - typed for bisect
    first = bisect_left(steps, start, key=key)
    return steps[first : bisect_right(steps, at, lo=first, key=key)]


_NEARBY: Final = 1.1
"""Mean scrape intervals up to which the growth is extrapolated to the edge of the range."""


class Sample(NamedTuple):
    """A counter value at `at` (epoch ms)."""

    at: int
    value: float


def within(samples: Sequence[Sample], start: int, end: int) -> Sequence[Sample]:
    """The samples (ascending) in [start, end]; Prometheus 3 excludes *start*."""
    first = bisect_left(samples, start, key=_time)
    return samples[first : bisect_right(samples, end, lo=first, key=_time)]


def increase(samples: Sequence[Sample], at: int, length: float) -> float | None:
    """`increase(counter[length])` at *at* (epoch ms), *length* in seconds; None without a result.

    A falling counter was reset. The growth between the first and the last sample is extrapolated to
    the edges of the range if samples are close to them, by half an interval otherwise, and at the
    start not beyond the point where the counter would have been zero.
    """
    start = at - round(length * 1000)
    found = within(samples, start, at)
    if len(found) < 2:
        return None
    first, last = found[0], found[-1]
    grown = last.value - first.value + sum(_resets(found))
    sampled = (last.at - first.at) / 1000
    mean = sampled / (len(found) - 1)
    to_start, to_end = (first.at - start) / 1000, (at - last.at) / 1000
    if grown > 0 and first.value >= 0:
        to_start = min(to_start, sampled * (first.value / grown))
    reach = sampled
    for edge in (to_start, to_end):
        reach += edge if edge < mean * _NEARBY else mean / 2
    return grown * (reach / sampled)


def extrapolation_bound(scrape_interval: float, window: float) -> float:
    """The maximum error of `increase()`, as a share of the events of *window* at the peak rate.

    |increase - count| <= bound x peak rate x window, times in seconds.

    Derivation: with a sample every `s` seconds, the edges without samples are e <= 2s together.
    M of N events are seen, E = N - M in the edges; with the peak rate r, E <= r e and
    M <= r (w - e). The result lies between M and M w / (w - e), so its difference from N lies
    between -E >= -r e and M e / (w - e) <= r e. Hence r e <= r 2s, and 2s / w is the bound.

    Sums of recorded steps have the bound of their step, because each step has its own edges. The
    ratio of two counters of one scrape is exact between the first and the last sample, so that its
    error is within the same bound at an even event rate.

    Raises ValueError if the window may contain less than two samples.
    """
    if not 0 < 2 * scrape_interval <= window:
        raise ValueError(
            f"scrape interval is {scrape_interval!r} s and window {window!r} s; expected a "
            "positive interval of at most half the window"
        )
    return 2 * scrape_interval / window


def _resets(found: Iterable[Sample]) -> Iterable[float]:
    """The last value before each reset."""
    before: Sample | None = None
    for each in found:
        if before is not None and each.value < before.value:
            yield before.value
        before = each


def _time(sample: Sample) -> int:
    return sample.at
