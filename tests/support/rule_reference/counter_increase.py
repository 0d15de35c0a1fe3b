"""Prometheus's `increase()` in Python.

Source: Prometheus 2.42, promql/functions.go, `extrapolatedRate`. Later versions differ only for a
counter that started within the range.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

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
