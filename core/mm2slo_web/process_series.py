"""Series of the process and of Python, from the collectors of prometheus-client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import PlatformCollector, ProcessCollector

from mm2slo_core.catalogue import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.catalogue import Metric

_COLLECTORS: Final = (ProcessCollector(registry=None), PlatformCollector(registry=None))


def process_series() -> Mapping[Metric, list[tuple[tuple[str, ...], float]]]:
    """Label values and value of each process metric; without /proc, only of Python."""
    found: dict[Metric, list[tuple[tuple[str, ...], float]]] = {}
    for collector in _COLLECTORS:
        for sample in (sample for family in collector.collect() for sample in family.samples):
            metric = BY_NAME[sample.name]
            labels = tuple(sample.labels[name] for name in metric.labels)
            found.setdefault(metric, []).append((labels, sample.value))
    return found
