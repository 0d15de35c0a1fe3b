"""`Metric`: name, type, unit, labels and granularity; and the functions that create metrics.

Names follow the naming conventions of Prometheus and OpenMetrics 1.0: a counter ends in `_total`,
its family name does not; the family name ends in the unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import partialmethod
from itertools import pairwise

FLOW_LABELS = ("flow", "source", "target")
"""The first labels of all series of a flow, in this order."""
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")
# Set by the exposition format (`le`, `quantile`) and by Prometheus when it scrapes (`job`,
# `instance`); one of these in the exposition becomes `exported_job`.
_RESERVED_LABELS = frozenset({"le", "quantile", "job", "instance"})
_BASE_UNITS = frozenset({"seconds", "records", "bytes", "ratio"})


class MetricType(StrEnum):
    """Metric types; the values are those of a `# TYPE` line."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


TOPIC = ("topic",)
PARTITION = ("topic", "partition")


class Granularity(IntEnum):
    """The granularity of series; a greater level is finer."""

    FLOW = 0
    TOPIC = 1
    PARTITION = 2

    @property
    def label(self) -> str:
        """The value in the configuration and of the label `granularity`."""
        return self.name.lower()

    @classmethod
    def parse(cls, text: str) -> Granularity:
        """Parse `flow`, `topic` or `partition`. Raises ValueError for anything else."""
        for level in cls:
            if level.label == text:
                return level
        raise ValueError(f"unknown granularity {text!r}; expected flow, topic or partition")

    @property
    def coarser(self) -> Granularity | None:
        """The next coarser level; None for FLOW."""
        return Granularity(self - 1) if self else None


_LEVEL_LABELS = {"topic": Granularity.TOPIC, "partition": Granularity.PARTITION}


def _has_finer_label(labels: Iterable[str], coarsest: Granularity) -> bool:
    return any(_LEVEL_LABELS.get(label, coarsest) > coarsest for label in labels)


class Rollup(StrEnum):
    """How the values of several series are combined when a label is dropped."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric, for exporter, rules, dashboards, documentation and tests.

    `labels` are those at the finest granularity; `labels_at` drops `partition` and `topic` at
    coarser ones. `coarsest` is the coarsest granularity at which the metric is published. `rollup`
    combines values when a label is dropped; None if none is. `buckets` are upper bounds without
    +Inf.

    Raises ValueError for an inconsistent declaration.
    """

    name: str
    type: MetricType
    help: str
    labels: tuple[str, ...] = ()
    coarsest: Granularity = Granularity.FLOW
    rollup: Rollup | None = None
    buckets: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise ValueError(f"metric {self.name!r} {problem}")

    def _problems(self) -> list[str]:
        names = (self.name, *self.labels)
        problems = [f"has the invalid name {name!r}" for name in names if not _NAME.match(name)]
        if (self.type is MetricType.COUNTER) != self.name.endswith("_total"):
            problems.append("must end in _total if and only if it is a counter")
        if len(set(self.labels)) != len(self.labels) or _RESERVED_LABELS & set(self.labels):
            problems.append(f"has a repeated or reserved label in {self.labels}")
        if (self.type is MetricType.HISTOGRAM) != bool(self.buckets):
            problems.append("must have buckets if and only if it is a histogram")
        if any(lower >= upper for lower, upper in pairwise(self.buckets)):
            problems.append(f"has buckets that do not ascend: {self.buckets}")
        if _has_finer_label(self.labels, self.coarsest) != (self.rollup is not None):
            problems.append(
                "must have a rollup if and only if a coarser level drops one of its labels"
            )
        return problems

    @property
    def family_name(self) -> str:
        """The name of the OpenMetrics family, without `_total`."""
        if self.type is MetricType.COUNTER:
            return self.name.removesuffix("_total")
        return self.name

    @property
    def unit(self) -> str:
        """The base unit that the family name ends in; empty for counts of other things."""
        # OpenMetrics 1.0: a family with a unit has it as the suffix of its name.
        suffix = self.family_name.rpartition("_")[2]
        return suffix if suffix in _BASE_UNITS else ""

    @property
    def per_flow(self) -> bool:
        return self.labels[: len(FLOW_LABELS)] == FLOW_LABELS

    @property
    def sample_names(self) -> tuple[str, ...]:
        if self.type is MetricType.HISTOGRAM:
            return tuple(f"{self.name}_{suffix}" for suffix in ("bucket", "sum", "count"))
        return (self.name,)

    def published_at(self, granularity: Granularity) -> bool:
        """Whether the metric has series at *granularity*."""
        return granularity >= self.coarsest

    def labels_at(self, granularity: Granularity) -> tuple[str, ...]:
        """The label names at *granularity*, in order.

        Raises ValueError if the metric is not published at *granularity*.
        """
        if not self.published_at(granularity):
            raise ValueError(
                f"{self.name} is not published at granularity {granularity.label}; expected "
                f"{self.coarsest.label} or finer"
            )
        return tuple(
            label for label in self.labels if _LEVEL_LABELS.get(label, granularity) <= granularity
        )


class MetricSubject:
    """Declares the metrics about one subject, and lists them in the order of the documentation."""

    def __init__(self, title: str, *, per_flow: bool = True) -> None:
        """*per_flow*: whether its series have the labels of a flow, if a metric does not say."""
        self.title = title
        self.metrics: tuple[Metric, ...] = ()
        """The metrics declared so far."""
        self._per_flow = per_flow

    def _declare(
        self,
        metric_type: MetricType,
        name: str,
        text: str,
        labels: tuple[str, ...] = (),
        *,
        per_flow: bool | None = None,
        coarsest: Granularity = Granularity.FLOW,
        rollup: Rollup = Rollup.SUM,
        buckets: tuple[float, ...] = (),
    ) -> Metric:
        """Create a metric; *rollup* combines the values of labels that coarser levels drop."""
        has_flow = self._per_flow if per_flow is None else per_flow
        metric = Metric(
            name=name,
            type=metric_type,
            help=text,
            labels=(*FLOW_LABELS, *labels) if has_flow else labels,
            coarsest=coarsest,
            rollup=rollup if _has_finer_label(labels, coarsest) else None,
            buckets=buckets,
        )
        self.metrics += (metric,)
        return metric

    counter = partialmethod(_declare, MetricType.COUNTER)
    gauge = partialmethod(_declare, MetricType.GAUGE)
    histogram = partialmethod(_declare, MetricType.HISTOGRAM)


LATENCY_BUCKETS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0),
)
"""From a flow on one machine (p50 14 ms) to beyond the default deadline of 60 s."""

COLLECT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""From one round trip to the timeout of Kafka requests."""
