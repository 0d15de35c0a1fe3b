"""Records per second of each flow, from two readings of the exporters' counters."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from mm2slo_core.catalogue import REPLICATED_RECORDS_TOTAL, SOURCE_RECORDS_TOTAL
from mm2slo_core.topology import Flow
from mm2slo_report.rendering.page_views import ThroughputView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prometheus_client.samples import Sample

COUNTERS: Final = (SOURCE_RECORDS_TOTAL.name, REPLICATED_RECORDS_TOTAL.name)
_LEAST_SECONDS: Final = 60.0
"""Between two readings: some polls of the exporter."""

_Counters: TypeAlias = "dict[tuple[Flow, str, str], float]"
"""By flow, metric and topic."""


class _Reading(NamedTuple):
    at: float
    counters: _Counters


class ThroughputMeter:
    """The throughput of the flows of one exporter between its last two readings."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: _Reading | None = None
        self._found: dict[Flow, ThroughputView] = {}

    def read(self, samples: Iterable[Sample]) -> dict[Flow, ThroughputView]:
        """Throughput by flow, of readings that are a minute apart or more; else none."""
        now, last = self._clock(), self._last
        if last is not None and now - last.at < _LEAST_SECONDS:
            return self._found
        counters: _Counters = {
            (Flow(each.labels["source"], each.labels["target"]), each.name, topic): each.value
            for each in samples
            if each.name in COUNTERS
            for topic in (each.labels.get("topic", ""),)
        }
        self._last = _Reading(now, counters)
        if last is not None:
            self._found = _throughput(last.counters, counters, now - last.at)
        return self._found


def _throughput(before: _Counters, after: _Counters, seconds: float) -> dict[Flow, ThroughputView]:
    """Topics that are new, or whose counter was reset by a restart, do not count."""
    grown: defaultdict[Flow, dict[str, float]] = defaultdict(dict)
    for (flow, name, topic), value in after.items():
        records = value - before.get((flow, name, topic), value)
        if (flow, name, topic) in before and records >= 0:
            grown[flow][name] = grown[flow].get(name, 0.0) + records
    return {
        flow: ThroughputView(
            seconds,
            *(None if name not in records else records[name] / seconds for name in COUNTERS),
        )
        for flow, records in grown.items()
    }
