"""Metrics are declared under their subject."""

from __future__ import annotations

from mm2slo_core.catalogue.metric import FLOW_LABELS, Granularity, Metric, MetricType, Rollup

TOPIC = ("topic",)
PARTITION = ("topic", "partition")


class MetricSubject:
    """Declares the metrics about one subject, and lists them in the order of the documentation."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._metrics: list[Metric] = []

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics declared so far."""
        return tuple(self._metrics)

    def counter(
        self,
        name: str,
        text: str,
        labels: tuple[str, ...] = (),
        *,
        unit: str = "",
        per_flow: bool = True,
    ) -> Metric:
        """Create a counter; values of dropped labels are summed."""
        return self._declare(name, MetricType.COUNTER, text, labels, unit=unit, per_flow=per_flow)

    def gauge(
        self,
        name: str,
        text: str,
        labels: tuple[str, ...] = (),
        *,
        unit: str = "",
        rollup: Rollup = Rollup.SUM,
        coarsest: Granularity = Granularity.FLOW,
        per_flow: bool = True,
    ) -> Metric:
        """Create a gauge; *rollup* combines the values of dropped labels."""
        return self._declare(
            name,
            MetricType.GAUGE,
            text,
            labels,
            unit=unit,
            per_flow=per_flow,
            coarsest=coarsest,
            rollup=rollup,
        )

    def histogram(
        self,
        name: str,
        text: str,
        labels: tuple[str, ...] = (),
        *,
        buckets: tuple[float, ...],
        per_flow: bool = True,
    ) -> Metric:
        """Create a histogram in seconds."""
        return self._declare(
            name,
            MetricType.HISTOGRAM,
            text,
            labels,
            unit="seconds",
            per_flow=per_flow,
            buckets=buckets,
        )

    def _declare(
        self,
        name: str,
        metric_type: MetricType,
        text: str,
        labels: tuple[str, ...],
        *,
        unit: str,
        per_flow: bool,
        coarsest: Granularity = Granularity.FLOW,
        rollup: Rollup = Rollup.SUM,
        buckets: tuple[float, ...] = (),
    ) -> Metric:
        drops_topic = "topic" in labels and coarsest < Granularity.TOPIC
        drops_partition = "partition" in labels and coarsest < Granularity.PARTITION
        metric = Metric(
            name=name,
            type=metric_type,
            help=text,
            unit=unit,
            labels=(*FLOW_LABELS, *labels) if per_flow else labels,
            coarsest=coarsest,
            rollup=rollup if drops_topic or drops_partition else None,
            buckets=buckets,
        )
        self._metrics.append(metric)
        return metric
