"""What a metric declares: name, type, unit, labels, and where it is published.

Names follow the Prometheus naming rules and OpenMetrics 1.0: a counter ends in `_total` and its
OpenMetrics family drops that suffix; a unit is the last word of the family name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from itertools import pairwise

FLOW_LABELS = ("flow", "source", "target")
"""On every series that belongs to a flow, in this order, before its own labels."""

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")
_RESERVED_LABELS = frozenset({"le", "quantile", "job", "instance"})


class MetricType(StrEnum):
    """The types in use; the values are those of a `# TYPE` line."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Component(StrEnum):
    """Who publishes a metric."""

    EXPORTER = "exporter"


class Granularity(IntEnum):
    """How fine series are cut; a greater level is finer. The name in files is `label`."""

    FLOW = 0
    TOPIC = 1
    PARTITION = 2

    @property
    def label(self) -> str:
        """The value in configuration files and of the label `granularity`."""
        return self.name.lower()

    @classmethod
    def parse(cls, text: str) -> Granularity:
        """Read `flow`, `topic` or `partition`; ValueError for anything else."""
        for level in cls:
            if level.label == text:
                return level
        raise ValueError(f"{text!r} is not a granularity: expected flow, topic or partition")

    @property
    def coarser(self) -> Granularity | None:
        """The next coarser level; None at flow level."""
        return Granularity(self - 1) if self else None


_LEVEL_LABELS = {"topic": Granularity.TOPIC, "partition": Granularity.PARTITION}


class Rollup(StrEnum):
    """How the values of finer series become the one value of a coarser series."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric, declared once for exporter, rules, dashboards, documentation and tests.

    `labels` are those at the finest granularity; `labels_at` drops `partition` and `topic` for
    coarser ones. `coarsest` is the coarsest granularity at which the metric is published at all.
    `rollup` says how values are combined where a label is dropped; None when no label ever is.
    `buckets` are a histogram's upper bounds without +Inf.

    Raises ValueError when the declaration contradicts itself.
    """

    name: str
    type: MetricType
    help: str
    unit: str = ""
    labels: tuple[str, ...] = ()
    component: Component = Component.EXPORTER
    coarsest: Granularity = Granularity.FLOW
    rollup: Rollup | None = None
    buckets: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for complaint in self._complaints():
            raise ValueError(f"metric {self.name!r} {complaint}")

    def _complaints(self) -> list[str]:
        names = (self.name, *self.labels)
        found = [f"has the bad name {name!r}" for name in names if not _NAME.match(name)]
        if (self.type is MetricType.COUNTER) != self.name.endswith("_total"):
            found.append("must end in _total exactly when it is a counter")
        if self.unit and not self.family_name.endswith(f"_{self.unit}"):
            found.append(f"must end in its unit {self.unit!r}")
        if len(set(self.labels)) != len(self.labels) or _RESERVED_LABELS & set(self.labels):
            found.append(f"has a repeated or reserved label in {self.labels}")
        if (self.type is MetricType.HISTOGRAM) != bool(self.buckets):
            found.append("must have buckets exactly when it is a histogram")
        if any(lower >= upper for lower, upper in pairwise(self.buckets)):
            found.append(f"has buckets that do not rise: {self.buckets}")
        drops = any(
            _LEVEL_LABELS.get(label, self.coarsest) > self.coarsest for label in self.labels
        )
        if drops != (self.rollup is not None):
            found.append("must have a rollup exactly when a coarser level drops one of its labels")
        return found

    @property
    def family_name(self) -> str:
        """The name of the OpenMetrics family: without `_total` for a counter."""
        if self.type is MetricType.COUNTER:
            return self.name.removesuffix("_total")
        return self.name

    @property
    def per_flow(self) -> bool:
        """Whether the series belong to a flow and carry the flow's labels first."""
        return self.labels[: len(FLOW_LABELS)] == FLOW_LABELS

    @property
    def sample_names(self) -> tuple[str, ...]:
        """The names that sample lines carry."""
        if self.type is MetricType.HISTOGRAM:
            return tuple(f"{self.name}_{suffix}" for suffix in ("bucket", "sum", "count"))
        return (self.name,)

    def published_at(self, granularity: Granularity) -> bool:
        """Whether the metric has series at *granularity*."""
        return granularity >= self.coarsest

    def labels_at(self, granularity: Granularity) -> tuple[str, ...]:
        """The label names of a series at *granularity*, in their order.

        Raises ValueError when the metric is not published that coarse.
        """
        if not self.published_at(granularity):
            raise ValueError(
                f"{self.name} is not published at granularity {granularity.label}: "
                f"{self.coarsest.label} is the coarsest"
            )
        return tuple(
            label for label in self.labels if _LEVEL_LABELS.get(label, granularity) <= granularity
        )
