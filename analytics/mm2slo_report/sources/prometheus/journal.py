"""What differences of a counter's values hide: its resets, and its start.

An exporter's counters fall when its process restarts, and every page shows when that was: one
series for all of them. Only of an exporter whose pages lack it are all samples read. So the hours
with a reset are found, then the minutes in these hours; the samples of these minutes alone are
fetched.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import TYPE_CHECKING, Final

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.minute_counts import MINUTE_MS, Tally
from mm2slo_core.reporting.tally_arithmetic import minus, plus
from mm2slo_report.sources.prometheus.pooling import NOTHING, below
from mm2slo_report.sources.prometheus.presence import (
    HOUR_MS,
    PresenceScan,
    asked_at_once,
    bits_of,
    parts,
)
from mm2slo_report.sources.prometheus.series import (
    COUNTERS,
    START,
    Reader,
    Replica,
    Series,
    jobs,
    matchers,
    reach,
    replica,
    selector,
)
from mm2slo_report.sources.prometheus.values import grown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from mm2slo_report.sources.prometheus.api import Found, Point, PrometheusClient
    from mm2slo_report.sources.prometheus.presence import Presence
    from mm2slo_report.sources.prometheus.values import Values

_LONG_GAP: Final = 8
"""Minutes: a reset after a longer one is looked for in any case."""
_OVERLAP: Final = (_LONG_GAP + 2) * MINUTE_MS
"""How far before an hour the sample may lie that its first one falls from."""


_Test = tuple[str, str]
"""A function of PromQL, and the series that it is applied to."""


@dataclass(slots=True)
class Journal:
    """By series: from which minute on how much is to be added to its value."""

    _minutes: dict[Series, list[int]] = field(default_factory=lambda: defaultdict(list))
    _sums: dict[Series, list[Tally]] = field(default_factory=lambda: defaultdict(list))

    def add(self, series: Series, minute: int, hidden: Tally) -> None:
        """From *minute* on, later than all before of this series, *hidden* is added."""
        self._minutes[series].append(minute)
        self._sums[series].append(plus(self._sum(series), hidden))

    def until(self, series: Series, minute: int) -> Tally:
        """What is to be added to the value of *series* in *minute*."""
        minutes = self._minutes.get(series)
        if not minutes:
            return NOTHING
        place = bisect_right(minutes, minute) - 1
        return self._sums[series][place] if place >= 0 else NOTHING

    def copy(self) -> Journal:
        """One that can be added to."""
        found = Journal()
        for series, minutes in self._minutes.items():
            found._minutes[series] = list(minutes)
            found._sums[series] = list(self._sums[series])
        return found

    def _sum(self, series: Series) -> Tally:
        sums = self._sums.get(series)
        return sums[-1] if sums else NOTHING


@dataclass(frozen=True, slots=True)
class Known:
    """How far knowledge reaches."""

    settled: int
    """What is before it does not change any more."""
    whole_from: int
    """What starts after it had nothing before."""


class JournalScan:
    """Looks for resets and beginnings."""

    def __init__(
        self, client: PrometheusClient, reader: Reader, values: Values, *, closed: bool
    ) -> None:
        self._client = client
        self._reader = reader
        self._values = values
        self._closed = closed
        self._presences = PresenceScan(client, reader, closed=closed)

    def scan(self, span: Span, presence: Presence, journal: Journal, known: Known) -> None:
        """Add what is hidden in *span*, which starts on an hour. Raises SliSourceError.

        *presence* is that of all time looked at, not of *span* alone.
        """
        doubtful = self._doubtful(span, presence)
        if not doubtful:
            return
        first = _firsts(presence)
        wanted = {
            minute: {each: below(presence.of(each), presence.bit(minute)) for each in several}
            for minute, several in doubtful.items()
        }
        minutes = {
            presence.at(bit) for each in wanted.values() for bit in each.values() if bit is not None
        }
        values = self._values.at(minutes, known.settled)
        processes = self._processes({*minutes, *wanted}, presence)
        for minute, several in sorted(wanted.items()):
            samples = self._values.samples(minute, {each.replica for each in several})
            for series, bit in several.items():
                found = samples.get(series)
                if not found:
                    continue
                if bit is not None:
                    base = values[presence.at(bit)].get(series)
                    if base is None:
                        continue
                    before = processes[presence.at(bit)].get(series.replica, ())
                    started = processes[minute].get(series.replica, ())
                    restarts = _restarts((*before[-1:], *started))
                    hidden = minus(grown(base, found, restarts), minus(found[-1][1], base))
                else:
                    # A page that had no such counter, and then has it, had it from zero on.
                    follows = first[series.replica] < presence.bit(minute)
                    base = NOTHING if follows and minute >= known.whole_from else found[0][1]
                    hidden = minus(grown(base, found), found[-1][1])
                if hidden != NOTHING:
                    journal.add(series, minute, hidden)

    def _processes(
        self, minutes: Iterable[int], presence: Presence
    ) -> Mapping[int, Mapping[Replica, Sequence[Point]]]:
        """By minute: when each exporter's process started, as each scrape in it says."""
        chosen = selector(START, jobs({each.replica for each in presence.series}))
        minute = reach(Span(0, MINUTE_MS), closed=self._closed)
        return {
            at: {
                replica(each.labels): each.points
                for each in self._client.query(f"{chosen}{minute}", at + MINUTE_MS)
            }
            for at in minutes
        }

    def _doubtful(self, span: Span, presence: Presence) -> Mapping[int, set[Series]]:
        """Minutes in which a series may start or restart."""
        found: dict[int, set[Series]] = defaultdict(set)
        within = presence.within(span)
        returned: dict[int, tuple[int, int]] = {}
        for series in presence.series:
            bits = presence.of(series)
            if bits not in returned:
                late = bits & ~_spread(bits, _LONG_GAP) & within
                returned[bits] = late, bits & ~(bits << 1) & within
            for bit in _places(returned[bits][0]):
                found[presence.at(bit)].add(series)
        falls = [
            ("resets", selector(name, matchers(of=each)))
            for each, name in product(sorted(self._silent(span, presence)), COUNTERS)
        ]
        for hour, several in self._hours(span, presence, falls).items():
            part = Span(hour, min(hour + HOUR_MS, span.end))
            of_hour = presence.within(part)
            for series in several:
                bits = presence.of(series)
                after_gap = returned.get(bits, (0, bits & ~(bits << 1)))[1] & of_hour
                for bit in _places(after_gap):
                    found[presence.at(bit)].add(series)
            for fallen, minute in self._resets([part], MINUTE_MS, MINUTE_MS, presence, falls):
                bit = presence.bit(minute)
                found[minute].update(
                    each for each in fallen if each in several and presence.of(each) >> bit & 1
                )
        return {minute: several for minute, several in found.items() if several}

    def _hours(
        self, span: Span, presence: Presence, falls: Sequence[_Test]
    ) -> Mapping[int, set[Series]]:
        found: dict[int, set[Series]] = defaultdict(set)
        for series, at in self._resets(parts(span), HOUR_MS, _OVERLAP, presence, falls):
            found[at].update(series)
        return found

    def _silent(self, span: Span, presence: Presence) -> set[Replica]:
        """The exporters whose process start time is missing in some of their minutes."""
        within = presence.within(span)
        there: dict[Replica, int] = defaultdict(int)
        for series in presence.series:
            there[series.replica] |= presence.of(series) & within
        timed: dict[Replica, int] = defaultdict(int)
        for each in self._presences.by_minute(selector(START, jobs(there)), span):
            timed[replica(each.labels)] |= bits_of(each, presence)
        return {each for each, bits in there.items() if bits & ~timed[each]}

    def _resets(
        self,
        spans: Iterable[Span],
        step: int,
        overlap: int,
        presence: Presence,
        falls: Sequence[_Test],
    ) -> Iterator[tuple[Collection[Series], int]]:
        """Which series fell in which steps; what fell shortly before a step shows up, too.

        *falls* find it by the counters themselves. Where a process restarted, all
        of its series may have fallen, and have risen since.
        """
        of_process: dict[Replica, list[Series]] = defaultdict(list)
        for series in presence.series:
            of_process[series.replica].append(series)
        tests = [*falls, ("changes", selector(START, jobs(of_process)))]

        def ask(question: tuple[Span, _Test]) -> Sequence[Found]:
            part, (function, chosen) = question
            length = min(step, part.end - part.start)
            window = reach(Span(0, length + overlap), closed=self._closed)
            expression = f"{function}({chosen}{window}) > 0"
            return self._client.query_range(expression, part.start + length, part.end, step)

        for each in asked_at_once(ask, product(spans, tests)):
            one = self._reader.series(each.labels)
            found = of_process.get(replica(each.labels), ()) if one is None else (one,)
            for point in each.points:
                yield found, point.at - 1 - (point.at - 1) % step


def _restarts(points: Sequence[Point]) -> frozenset[int]:
    """The scrapes of a process that is another than that of the scrape before."""
    return frozenset(now.at for before, now in pairwise(points) if now.value != before.value)


def _firsts(presence: Presence) -> Mapping[tuple[tuple[str, str], ...], int]:
    found: dict[tuple[tuple[str, str], ...], int] = {}
    for series in presence.series:
        bits = presence.of(series)
        if bits:
            lowest = (bits & -bits).bit_length() - 1
            found[series.replica] = min(lowest, found.get(series.replica, lowest))
    return found


def _spread(bits: int, reach_: int) -> int:
    """The bits within *reach_* places above one of *bits*."""
    spread, done = bits << 1, 1
    while done < reach_:
        step = min(done, reach_ - done)
        spread |= spread << step
        done += step
    return spread


def _places(bits: int) -> list[int]:
    found = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found
