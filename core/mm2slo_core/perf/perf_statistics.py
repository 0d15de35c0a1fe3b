"""Latencies as histograms that can be merged, and comparisons of repeated runs.

Percentiles of several runs or windows come from merged histograms: an average of percentiles is
a percentile of nothing. Two settings are compared by pairs of neighbouring runs, as ratios, with
Student's interval over the pairs: "no difference shown" is an answer.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, exp, log, sqrt
from statistics import fmean, stdev
from typing import Final, Self

RESOLUTION: Final = 0.005
"""Relative width of a bucket: what a percentile is rounded to."""
_STEP: Final = log(1 + RESOLUTION)
_SHORTEST: Final = 1e-6

LEVEL: Final = 0.99
"""Of all intervals: one comparison of a hundred finds a difference that is not there."""

MIN_PAIRS: Final = 3
"""Two pairs have an interval as wide as anything."""

# Quantiles of Student's t for two-sided intervals at LEVEL, for 1, 2, 3 ... degrees of freedom.
_STUDENT: Final = (
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169,
    3.106, 3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845,
)  # fmt: skip


def bucket_of(seconds: float) -> int:
    """The number of the bucket that holds a latency."""
    return int(log(max(seconds, _SHORTEST) / _SHORTEST) / _STEP)


@dataclass(slots=True)
class Latencies:
    """A histogram with buckets of equal relative width, from a microsecond on."""

    counts: Counter[int] = field(default_factory=Counter)

    @classmethod
    def merged(cls, parts: Sequence[Self]) -> Self:
        """All records of several histograms."""
        found = cls()
        for each in parts:
            found.counts.update(each.counts)
        return found

    @property
    def count(self) -> int:
        return self.counts.total()

    def percentile(self, percent: float, sent: int | None = None) -> float | None:
        """Seconds; of the record with the nearest rank. None without records.

        Of *sent* records, those that have not arrived take longest: None if it is one of them.
        """
        left = max(ceil((sent or self.count) * percent / 100), 1)
        for bucket in sorted(self.counts):
            left -= self.counts[bucket]
            if left <= 0:
                return _SHORTEST * exp((bucket + 0.5) * _STEP)
        return None

    def by_bound(self) -> Mapping[float, int]:
        """Records by the upper bound of their bucket, in seconds."""
        found = sorted(self.counts.items())
        return {_SHORTEST * exp((bucket + 1) * _STEP): count for bucket, count in found}


@dataclass(frozen=True, slots=True)
class PairedRatio:
    """How a figure of one setting compares to that of another, over pairs of runs."""

    ratio: float
    low: float
    high: float
    pairs: int

    @property
    def is_different(self) -> bool:
        """Whether a difference was shown at LEVEL."""
        return not self.low <= 1 <= self.high


def compare_pairs(base: Sequence[float], other: Sequence[float]) -> PairedRatio | None:
    """The ratio of *other* to *base*, figure by figure; None with less than MIN_PAIRS.

    Ratios are averaged as logarithms: times as long and as short cancel out. The interval is
    never narrower than the buckets of the figures.
    """
    logs = [log(b / a) for a, b in zip(base, other, strict=False) if a > 0 and b > 0]
    if len(logs) < MIN_PAIRS:
        return None
    quantile = _STUDENT[min(len(logs) - 1, len(_STUDENT)) - 1]
    middle = fmean(logs)
    half = max(quantile * stdev(logs) / sqrt(len(logs)), _STEP)
    return PairedRatio(exp(middle), exp(middle - half), exp(middle + half), len(logs))
