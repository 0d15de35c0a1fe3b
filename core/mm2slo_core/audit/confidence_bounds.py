"""Confidence bounds of rates and quantiles from a sample, as numbers and as text.

Clopper-Pearson assumes only independent draws, which sampling by hash gives for records. Keys are
sampled whole, so per-record rates of the key stratum are bootstrapped over keys.
"""

import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

CONFIDENCE: Final = 0.95
_Z: Final = 1.959963984540054
_HALVINGS: Final = 100
_RELATIVE: Final = 1e-12

_CLUSTERS: Final = 2_000
"""Clusters that are resampled; more are first merged into this many groups."""


@dataclass(frozen=True, slots=True)
class Interval:
    lower: float
    upper: float

    def contains(self, rate: float) -> bool:
        return self.lower <= rate <= self.upper


def clopper_pearson(events: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Return the two-sided exact interval of a rate: *events* in *n* independent draws.

    Raises ValueError unless 0 <= events <= n and n >= 1.
    """
    _check_events(events, n)
    error = (1 - confidence) / 2
    return Interval(_lower(events, n, error), _upper(events, n, error))


def upper_bound(events: int, n: int, confidence: float = CONFIDENCE) -> float:
    """Return the one-sided exact upper bound of a rate; without events about 3 / n.

    Raises ValueError unless 0 <= events <= n and n >= 1.
    """
    _check_events(events, n)
    return _upper(events, n, 1 - confidence)


def order_statistic_ranks(
    n: int, q: float, confidence: float = CONFIDENCE
) -> tuple[int | None, int | None]:
    """Return the ranks (from 1) of a sorted sample of *n* that enclose the q-quantile of all.

    Exact, from the binomial distribution: Bin(n, q) of *n* draws are below the quantile. None: no
    rank of the sample is low or high enough.
    """
    error = (1 - confidence) / 2
    # The largest low with P(Bin <= low - 1) <= error; the smallest high with P(Bin >= high) <= it.
    spread = math.ceil((_Z + 3) * math.sqrt(n * q * (1 - q))) + 3
    centre = math.floor(n * q)
    # Both probabilities are monotonic in the rank, so binary search finds them.
    lows = range(max(0, centre - spread) + 1, centre + 2)
    highs = range(centre, min(n, centre + spread) + 1)
    low = bisect_right(lows, error, key=lambda rank: _cdf(rank - 1, n, q))
    high = bisect_left(highs, -error, key=lambda rank: -_sf(rank, n, q))
    return lows[low - 1] if low else None, highs[high] if high < len(highs) else None


def cluster_bootstrap(
    clusters: Sequence[tuple[float, float]],
    *,
    seed: int,
    replicates: int = 1000,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Return the percentile interval of events per record, for keys that are drawn whole.

    *clusters* has (events, records) of each sampled key. Without clusters the interval is [0, 1].
    Without events every resample is 0, so the upper bound is that of the keys (one-sided, as if
    all records of a key with an event had one). More than 2,000 keys are first merged into 2,000
    random groups, and groups are drawn: their sums vary as those of keys do (random groups;
    Wolter, Introduction to Variance Estimation, 2.2), at constant cost.
    """
    if not clusters or not any(records for _, records in clusters):
        return Interval(0.0, 1.0)
    if not any(events for events, _ in clusters):
        return Interval(0.0, upper_bound(0, len(clusters), confidence))
    draw = random.Random(seed)
    # Complex numbers add events (real) and records (imaginary) at once.
    drawn = _grouped([complex(*each) for each in clusters], draw)
    rates = sorted(_resampled_rate(drawn, draw) for _ in range(replicates))
    cut = (1 - confidence) / 2
    last = replicates - 1
    return Interval(rates[math.floor(cut * last)], rates[math.ceil((1 - cut) * last)])


def statement(
    what: str,
    events: int,
    n: int,
    *,
    counted: str,
    census: bool,
    of: str = "record",
) -> str:
    """Return the rate as text, as in "loss is 0.01% (95 %: 0% to 0.04%; ..., 1 lost)".

    *what* is measured (`loss`), *counted* are the events by verdict (`1 lost`), *of* is what was
    drawn. A census has no bounds, only counts.
    """
    if n == 0:
        return f"{what} is unknown: no {of} was compared"
    drawn = plural(n, of)
    if census:
        return f"{what} is {percent(events / n)} (census of {drawn}, {counted})"
    found = spread(clopper_pearson(events, n))
    return f"{what} is {percent(events / n)} (95 %: {found}; {drawn} sampled, {counted})"


def plural(count: int, noun: str) -> str:
    """`1 record`, `1,200 records`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def spread(interval: Interval) -> str:
    """Format the bounds as in "0.3% to 0.8%"."""
    return f"{percent(interval.lower)} to {percent(interval.upper, up=True)}"


def percent(rate: float, *, up: bool = False) -> str:
    """Format a rate with three significant digits; *up* rounds up."""
    percent = rate * 100
    if percent == 0:
        return "0%"
    digits = 2 - math.floor(math.log10(percent))
    if up:
        # Rounded to nearest, an upper bound could claim more than the sample shows.
        percent = min(100.0, math.ceil(percent * 10.0**digits - 1e-9) / 10.0**digits)
    text = f"{percent:.{max(0, digits)}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}%"


def _grouped(clusters: list[complex], draw: random.Random) -> list[complex]:
    if len(clusters) <= _CLUSTERS:
        return clusters
    draw.shuffle(clusters)
    return [sum(clusters[first::_CLUSTERS]) for first in range(_CLUSTERS)]


def _resampled_rate(clusters: Sequence[complex], draw: random.Random) -> float:
    total = sum(draw.choices(clusters, k=len(clusters)))
    return total.real / total.imag if total.imag else 0.0


def _check_events(events: int, n: int) -> None:
    if n < 1 or not 0 <= events <= n:
        raise ValueError(f"{events} events in {n} draws; expected 0 <= events <= draws, draws >= 1")


def _lower(events: int, n: int, error: float) -> float:
    if events == 0:
        return 0.0
    # P(Bin(n, p) >= events) increases with p.
    return _bisect(lambda p: _sf(events, n, p) > error, events / n)


def _upper(events: int, n: int, error: float) -> float:
    if events == n:
        return 1.0
    if events == 0:
        # (1 - p)^n = error, solved for p; about 3 / n for 95 % (rule of three).
        return -math.expm1(math.log(error) / n)
    return _bisect(lambda p: _cdf(events, n, p) < error, 1.0)


def _bisect(beyond: Callable[[float], bool], high: float) -> float:
    """Return the rate at which *beyond* becomes true, in (0, high]."""
    low = 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if beyond(middle):
            high = middle
        else:
            low = middle
        if high - low <= _RELATIVE * high:
            break
    return (low + high) / 2


def _cdf(k: int, n: int, p: float) -> float:
    """Return P(Bin(n, p) <= k)."""
    if k < 0:
        return 0.0
    if k >= n:
        return 1.0
    # Always the smaller tail: its terms decrease from the first on, and 1 - x loses no digits.
    if k > n * p:
        return 1.0 - _tail_up(k + 1, n, p)
    return _tail_down(k, n, p)


def _sf(k: int, n: int, p: float) -> float:
    """Return P(Bin(n, p) >= k)."""
    return 1.0 - _cdf(k - 1, n, p) if k <= n * p else (_tail_up(k, n, p) if k <= n else 0.0)


def _tail_down(k: int, n: int, p: float) -> float:
    """Sum the probabilities of k, k - 1, ...; they decrease, since k is below the mean."""
    term = _pmf(k, n, p)
    total, i = term, k
    while i > 0 and term > total * 1e-17:
        term *= i / (n - i + 1) * (1 - p) / p
        total += term
        i -= 1
    return total


def _tail_up(k: int, n: int, p: float) -> float:
    """Sum the probabilities of k, k + 1, ...; they decrease, since k is above the mean."""
    term = _pmf(k, n, p)
    total, i = term, k
    while i < n and term > total * 1e-17:
        term *= (n - i) / (i + 1) * p / (1 - p)
        total += term
        i += 1
    return total


def _pmf(k: int, n: int, p: float) -> float:
    if p <= 0 or p >= 1:
        return float(k == (0 if p <= 0 else n))
    chosen = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(chosen + k * math.log(p) + (n - k) * math.log1p(-p))
