"""What a counter counted within a range of time, as Prometheus tells it from its samples.

Source of the formula: Prometheus 2.42, promql/functions.go, `extrapolatedRate`, as `increase()`
calls it. Later versions differ only for a counter that started within the range.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_NEARBY: Final = 1.1
"""An edge closer than so many mean scrape intervals is taken for covered."""


class Sample(NamedTuple):
    """A counter's value at one moment (epoch ms)."""

    at: int
    value: float


def within(samples: Sequence[Sample], start: int, end: int) -> Sequence[Sample]:
    """The samples (ascending) of [start, end]: Prometheus 2 takes both edges, 3 not `start`."""
    first = bisect_left(samples, start, key=_time)
    return samples[first : bisect_right(samples, end, lo=first, key=_time)]


def increase(samples: Sequence[Sample], at: int, length: float) -> float | None:
    """`increase(counter[length])` at *at* (epoch ms), *length* in seconds; None without a result.

    A counter that falls was reset. The growth between the first and the last sample is stretched
    to the whole range where samples come close to its edges, by half an interval where not, and
    at its start never below the point where the counter would have been zero.
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
    """The largest error of `increase()`, as a share of what *window* holds at the peak rate.

    |increase - count| <= bound x peak rate x window, times in seconds.

    Derivation: with a sample every `s` seconds, the edges without samples are e <= 2s together.
    M of N events are seen, E = N - M in the edges; with the peak rate r, E <= r e and
    M <= r (w - e). The result lies between M and M w / (w - e), so its difference from N lies
    between -E >= -r e and M e / (w - e) <= r e. Hence r e <= r 2s, and 2s / w is the bound.

    Sums of recorded steps have the bound of their step, not of the sum's window: each step has
    edges of its own. The ratio of two counters of one scrape is exact for the events between the
    first and the last sample, so with even traffic its error is at most this bound, too.

    Raises ValueError when the window does not hold two samples for certain.
    """
    if not 0 < 2 * scrape_interval <= window:
        raise ValueError(
            f"scrape interval is {scrape_interval!r} s and window {window!r} s: expected a "
            "positive interval that fits twice into the window"
        )
    return 2 * scrape_interval / window


def _resets(found: Iterable[Sample]) -> Iterable[float]:
    """The value that was reached before each reset."""
    before: Sample | None = None
    for each in found:
        if before is not None and each.value < before.value:
            yield before.value
        before = each


def _time(sample: Sample) -> int:
    return sample.at
