"""A metric of the catalogue with its series, as a family of prometheus-client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import prometheus_client

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.catalogue import Metric


def metric_family(
    metric: Metric, series: Iterable[tuple[tuple[str, ...], float]]
) -> prometheus_client.Metric:
    """*series* are label values in the declared order, and the value.

    Raises ValueError for missing labels.
    """
    found = prometheus_client.Metric(metric.family_name, metric.help, metric.type.value)
    for labels, value in series:
        found.add_sample(metric.name, dict(zip(metric.labels, labels, strict=True)), value)
    return found
