"""Which minutes hold a sample of which series, found without looking at every sample of each.

The series of one exporter come in one page. In an hour in which all of them have equally many
samples, and as many series as in the hours beside it, they have them in the same scrapes: then
the minutes of one series are those of all. Hours of which that is not so are looked at series by
series. Prometheus counts the samples of an hour in one pass over them and sends a handful of
figures per exporter and hour.

Minutes are bits of a whole number, the lowest bit that of `base`.
"""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, groupby, pairwise
from typing import TYPE_CHECKING, Final, TypeVar

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.minute_counts import MINUTE_MS
from mm2slo_report.sources.prometheus.api import MOST_POINTS
from mm2slo_report.sources.prometheus.series import (
    OWN,
    TOTAL,
    Reader,
    Replica,
    Series,
    matchers,
    reach,
    replica,
    selector,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mm2slo_report.sources.prometheus.api import Found, PrometheusClient

T = TypeVar("T")

HOUR_MS: Final = 3_600_000
_MOST_HOURS: Final = 6
"""Of an answer that has a point per minute and series."""
_CHUNK_HOURS: Final = 24
"""Of an answer for which Prometheus reads all samples: 700 indicators take it a second or two."""
_AT_ONCE: Final = 4
_SAMPLES: Final = "samples"


@dataclass(frozen=True, slots=True)
class _Hour:
    """What one exporter published in one hour, or in the part of it that has passed."""

    span: Span
    series: int
    even: bool


@dataclass(slots=True)
class Presence:
    """The minutes with a sample, by series."""

    base: int
    _bits: dict[Series, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, series: Iterable[Series], bits: int) -> None:
        """Those *series* have a sample in the minutes *bits*."""
        for each in series:
            self._bits[each] |= bits

    @property
    def series(self) -> Iterable[Series]:
        """Those with a sample."""
        return self._bits.keys()

    def of(self, series: Series) -> int:
        """The minutes of *series*."""
        return self._bits.get(series, 0)

    def within(self, span: Span) -> int:
        """All minutes of *span*."""
        start = max(span.start, self.base)
        if start >= span.end:
            return 0
        return ((1 << (span.end - start) // MINUTE_MS) - 1) << self.bit(start)

    def bit(self, at: int) -> int:
        """The place of the minute that starts at *at*."""
        return (at - self.base) // MINUTE_MS

    def at(self, bit: int) -> int:
        """When the minute at that place starts."""
        return self.base + bit * MINUTE_MS

    def merged(self, later: Presence) -> Presence:
        """With the minutes of *later*, which has the same base."""
        bits = defaultdict(int, self._bits)
        for series, found in later._bits.items():
            bits[series] |= found
        return Presence(self.base, bits)


class PresenceScan:
    """Looks for minutes with a sample."""

    def __init__(self, client: PrometheusClient, reader: Reader, *, closed: bool) -> None:
        self._client = client
        self._reader = reader
        self._closed = closed

    def scan(self, span: Span, base: int) -> Presence:
        """The minutes of *span*, which starts on an hour. Raises SliSourceError."""
        found = Presence(base)
        for of, hours in self._hours(span).items():
            for uneven, run in _runs(hours):
                if uneven:
                    self._one_by_one(of, run, found)
                else:
                    self._together(of, run, found)
        return found

    def _hours(self, span: Span) -> Mapping[Replica, Sequence[_Hour]]:
        """Each exporter's hours with a sample, in order."""

        def ask(part: Span) -> Sequence[Found]:
            length = min(HOUR_MS, part.end - part.start)
            counted = f"count_over_time({TOTAL}{reach(Span(0, length), closed=self._closed)})"
            expression = f'count_values without ({",".join(OWN)}) ("{_SAMPLES}", {counted})'
            return self._client.query_range(expression, part.start + length, part.end, HOUR_MS)

        counts: dict[tuple[Replica, int], dict[str, float]] = defaultdict(dict)
        for each in asked_at_once(ask, parts(span)):
            of = replica(each.labels, _SAMPLES)
            for point in each.points:
                start = point.at - 1 - (point.at - 1) % HOUR_MS
                counts[of, start][each.labels[_SAMPLES]] = point.value
        found = defaultdict(list)
        for (of, start), samples in sorted(counts.items()):
            hour = Span(start, min(start + HOUR_MS, span.end))
            found[of].append(_Hour(hour, round(sum(samples.values())), even=len(samples) == 1))
        return found

    def by_minute(
        self, chosen: str, span: Span, at_once: int = MOST_POINTS * MINUTE_MS
    ) -> Iterator[Found]:
        """A point at the end of each minute of *span* with a sample, for the series *chosen*.

        *at_once*: ms that one answer is about. Raises SliSourceError.
        """
        expression = f"count_over_time({chosen}{reach(Span(0, MINUTE_MS), closed=self._closed)})"
        for start in range(span.start, span.end, at_once):
            end = min(start + at_once, span.end)
            yield from self._client.query_range(expression, start + MINUTE_MS, end, MINUTE_MS)

    def _one_by_one(self, of: Replica, run: Span, found: Presence) -> None:
        chosen = selector(TOTAL, matchers(of=of))
        for each in self.by_minute(chosen, run, _MOST_HOURS * HOUR_MS):
            series = self._reader.series(each.labels)
            if series is not None:
                found.add((series,), bits_of(each, found))

    def _together(self, of: Replica, run: Span, found: Presence) -> None:
        members = self._members(of, Span(max(run.start, run.end - HOUR_MS), run.end))
        hours = -(-(run.end - run.start) // HOUR_MS)
        if hours > 1 and members != self._members(of, Span(run.start, run.start + HOUR_MS)):
            # As many as before, but others: somewhere between, one set followed the other.
            middle = run.start + hours // 2 * HOUR_MS
            self._together(of, Span(run.start, middle), found)
            self._together(of, Span(middle, run.end), found)
            return
        if not members:
            return
        one = selector(TOTAL, matchers(min(members).indicator, of))
        bits = 0
        for each in self.by_minute(one, run):
            if replica(each.labels) == of:
                bits |= bits_of(each, found)
        found.add(members, bits)

    def _members(self, of: Replica, hour: Span) -> frozenset[Series]:
        chosen = selector(TOTAL, matchers(of=of))
        counted = f"count_over_time({chosen}{reach(hour, closed=self._closed)})"
        answer = self._client.query(counted, hour.end)
        known = (self._reader.series(each.labels) for each in answer)
        return frozenset(each for each in known if each is not None and each.replica == of)


def parts(span: Span) -> Iterator[Span]:
    """*span* in whole hours, a day of them at most at a time; then the rest of an hour."""
    whole = span.end - (span.end - span.start) % HOUR_MS
    for start in range(span.start, whole, _CHUNK_HOURS * HOUR_MS):
        yield Span(start, min(start + _CHUNK_HOURS * HOUR_MS, whole))
    if whole < span.end:
        yield Span(whole, span.end)


def asked_at_once(ask: Callable[[T], Sequence[Found]], of: Iterable[T]) -> Iterable[Found]:
    """All answers, of a few questions at a time."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(chain.from_iterable(pool.map(ask, of)))


def _runs(hours: Sequence[_Hour]) -> Iterator[tuple[bool, Span]]:
    """Neighbouring hours that can be looked at together; those that must not (True), too."""
    uneven = [not each.even for each in hours]
    for place, (one, next_) in enumerate(pairwise(hours)):
        if one.span.end == next_.span.start and one.series != next_.series:
            uneven[place] = uneven[place + 1] = True
    run = 0
    marked = []
    for place, each in enumerate(hours):
        adjacent = place > 0 and hours[place - 1].span.end == each.span.start
        if not adjacent or uneven[place] != uneven[place - 1]:
            run += 1
        marked.append((run, uneven[place], each))
    for _, group in groupby(marked, key=lambda each: each[0]):
        members = list(group)
        yield members[0][1], Span(members[0][2].span.start, members[-1][2].span.end)


def bits_of(each: Found, found: Presence) -> int:
    """The minutes of an answer by `by_minute`, as *found* places them."""
    octets = bytearray()
    bits = 0
    first = found.bit(each.points[0].at - MINUTE_MS)
    octets.extend(bytes((found.bit(each.points[-1].at - MINUTE_MS) - first) // 8 + 1))
    for point in each.points:
        place = found.bit(point.at - MINUTE_MS) - first
        octets[place >> 3] |= 1 << (place & 7)
    bits = int.from_bytes(octets, "little")
    return bits << first
