"""All metrics of the project.

A constant is the metric name in capitals without the prefix `mm2_`. It is
declared once, under its subject, and is a name of this package as well.
"""

# ruff: noqa: F403, F405 - a list of all names would be a second declaration of each metric

from collections.abc import Mapping
from types import MappingProxyType

from mm2slo_core.catalogue.flow_metrics import *
from mm2slo_core.catalogue.metric import *
from mm2slo_core.catalogue.prometheus_series import *
from mm2slo_core.catalogue.service_metrics import *

GROUPS: Mapping[str, tuple[Metric, ...]] = MappingProxyType(
    {
        subject.title: subject.metrics
        for subject in (
            FLOWS,
            HEARTBEATS,
            CANARY,
            POSITIONS,
            LAG,
            RETENTION,
            DRIFT,
            FAILOVER,
            CONNECT,
            INDICATORS,
            EXPORTER,
            PROCESS,
        )
    }
)
"""Metrics by subject, in the order of the documentation."""

ALL: tuple[Metric, ...] = tuple(metric for group in GROUPS.values() for metric in group)
"""All metrics, in the order of the exposition."""
BY_NAME: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in ALL})

NAMESPACED: frozenset[str] = frozenset(
    (
        *(
            name
            for metric in (
                *ALL,
                UP,
                *(each for group in REPORT_GROUPS.values() for each in group),
                *(each for group in LOGSHIP_GROUPS.values() for each in group),
            )
            for name in metric.sample_names
        ),
        *(series.name for series in RECORDED),
        ALERTS,
        ALERTS_FOR_STATE,
    )
)
"""Series that have the label `namespace` on Kubernetes: all but those of the monitoring itself."""
