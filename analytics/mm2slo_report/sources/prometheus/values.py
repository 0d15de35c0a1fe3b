"""Values of all counters at the ends of minutes, and all samples of a minute."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.minute_counts import MINUTE_MS, Tally
from mm2slo_report.sources.prometheus.series import (
    ANY,
    COUNTERS,
    NAME,
    Reader,
    Series,
    matchers,
    reach,
    selector,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from mm2slo_report.sources.prometheus.api import Found, PrometheusClient
    from mm2slo_report.sources.prometheus.series import Replica

_KEPT: Final = 48
"""Snapshots; one of 1,400 series takes half a megabyte."""
_AT_ONCE: Final = 4

Samples = list[tuple[int, Tally]]
"""The counters of one series, ascending in time."""


class Values:
    """Reads values, and keeps those of the past."""

    def __init__(self, client: PrometheusClient, reader: Reader, *, closed: bool) -> None:
        self._client = client
        self._reader = reader
        self._minute = reach(Span(0, MINUTE_MS), closed=closed)
        self._kept: OrderedDict[int, Mapping[Series, Tally]] = OrderedDict()

    def at(self, minutes: Iterable[int], settled: int) -> Mapping[int, Mapping[Series, Tally]]:
        """By minute, the newest values in each of *minutes* of the series that have a sample then.

        Those before *settled* do not change any more. Raises SliSourceError.
        """
        wanted = sorted(set(minutes))
        found = {each: self._kept[each] for each in wanted if each in self._kept}
        missing = [each for each in wanted if each not in found]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found |= dict(zip(missing, pool.map(self._snapshot, missing), strict=True))
        for minute in wanted:
            if minute + MINUTE_MS <= settled:
                self._kept[minute] = found[minute]
                self._kept.move_to_end(minute)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return found

    def forget(self) -> None:
        """Keep nothing: Prometheus may have deleted what it was."""
        self._kept.clear()

    def samples(self, minute: int, replicas: Iterable[Replica]) -> Mapping[Series, Samples]:
        """All samples in the minute that starts at *minute*. Raises SliSourceError."""
        several = set(replicas)
        of = next(iter(several)) if len(several) == 1 else ()
        chosen = selector("", ANY, matchers(of=of))
        found = self._client.query(f"{chosen}{self._minute}", minute + MINUTE_MS)
        return self.joined(found)

    def joined(self, answer: Iterable[Found]) -> Mapping[Series, Samples]:
        """The three counters of each series side by side, where all three have a sample."""
        points: dict[Series, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
        for each in answer:
            series = self._reader.series(each.labels)
            if series is not None:
                for point in each.points:
                    points[series][point.at][each.labels[NAME]] = point.value
        return {
            series: [
                (at, Tally(*(values[name] for name in COUNTERS)))
                for at, values in sorted(moments.items())
                if len(values) == len(COUNTERS)
            ]
            for series, moments in points.items()
        }

    def of_one(self, conditions: str, start: int, end: int) -> Mapping[Series, Samples]:
        """The newest values in each minute of [start, end); times are the ends of minutes."""
        chosen = selector("", ANY, conditions)
        expression = f"last_over_time({chosen}{self._minute})"
        answer = self._client.query_range(expression, start + MINUTE_MS, end, MINUTE_MS)
        return self.joined(answer)

    def _snapshot(self, minute: int) -> Mapping[Series, Tally]:
        expression = f"last_over_time({selector('', ANY)}{self._minute})"
        answer = self._client.query(expression, minute + MINUTE_MS)
        columns: dict[str, dict[Series, float]] = {name: {} for name in COUNTERS}
        for each in answer:
            series = self._reader.series(each.labels)
            if series is not None:
                columns[each.labels[NAME]][series] = each.points[0].value
        good, total, unknown = (columns[name] for name in COUNTERS)
        return {
            series: Tally(good[series], value, unknown[series])
            for series, value in total.items()
            if series in good and series in unknown
        }


def grown(
    before: Tally, samples: Sequence[tuple[int, Tally]], restarts: Collection[int] = ()
) -> Tally:
    """What was counted from *before* through *samples*.

    The three counters live in one process: where one of them falls, all restarted at zero, and
    at the times *restarts* in any case.
    """
    good = total = unknown = 0.0
    for at, now in samples:
        fell = now.good < before.good or now.total < before.total or now.unknown < before.unknown
        base = Tally() if fell or at in restarts else before
        good += now.good - base.good
        total += now.total - base.total
        unknown += now.unknown - base.unknown
        before = now
    return Tally(good, total, unknown)
