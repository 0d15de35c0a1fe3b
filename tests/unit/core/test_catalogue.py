"""The catalogue follows the naming rules of Prometheus and OpenMetrics."""

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from mm2slo_core import catalogue
from mm2slo_core.catalogue import ALL, BY_NAME, GROUPS
from mm2slo_core.catalogue.flow_metrics import (
    FLOW_STATE,
    PARTITION_STALLED,
    REPLICATED_RECORDS_TOTAL,
    REPLICATION_LAG_RECORDS,
    RETENTION_HEADROOM_SECONDS,
)
from mm2slo_core.catalogue.metric import FLOW_LABELS, Granularity, Metric, MetricType, Rollup
from mm2slo_core.catalogue.service_metrics import EXPORTER_SERIES, REPORT_GROUPS

# Suffixes with a meaning in OpenMetrics 1.0.
RESERVED_SUFFIXES = ("_created", "_bucket", "_sum", "_count", "_gcount", "_gsum")
BASE_UNITS = {"seconds", "bytes", "records", "ratio"}
OTHER_UNITS = ("_ms", "_milliseconds", "_minutes", "_hours", "_kilobytes", "_percent")

REPORTED = tuple(metric for group in REPORT_GROUPS.values() for metric in group)

every_metric = pytest.mark.parametrize("metric", [*ALL, *REPORTED], ids=lambda metric: metric.name)


def test_metric_names_are_unique() -> None:
    assert [name for name, times in Counter(m.name for m in ALL).items() if times > 1] == []
    assert len(ALL) == len(BY_NAME)
    assert len({*BY_NAME, *(each.name for each in REPORTED)}) == len(ALL) + len(REPORTED)


def test_constants_are_metric_names_without_prefix() -> None:
    constants = {
        name: value
        for name, value in vars(catalogue).items()
        if isinstance(value, Metric) and value in ALL
    }
    assert {value.name.removeprefix("mm2_").upper() for value in ALL} == set(constants)
    for name, metric in constants.items():
        assert metric.name.removeprefix("mm2_").upper() == name


def test_groups_contain_each_metric_once() -> None:
    assert [metric for group in GROUPS.values() for metric in group] == list(ALL)


def test_sample_and_family_names_are_unique() -> None:
    samples = Counter(sample for metric in ALL for sample in metric.sample_names)
    assert [name for name, times in samples.items() if times > 1] == []
    families = Counter(metric.family_name for metric in ALL)
    assert [name for name, times in families.items() if times > 1] == []
    assert not set(families) & set(samples) - {m.name for m in ALL if m.name == m.family_name}


@every_metric
def test_metric_name_has_prefix_and_no_reserved_suffix(metric: Metric) -> None:
    assert metric.name.startswith(("mm2_", "process_", "python_"))
    assert not metric.family_name.endswith(RESERVED_SUFFIXES)
    assert not metric.family_name.endswith("_total")


@every_metric
def test_metric_unit_is_a_declared_base_unit(metric: Metric) -> None:
    assert metric.unit in BASE_UNITS | {""}
    assert not metric.family_name.endswith(OTHER_UNITS)
    if metric.family_name.rpartition("_")[2] in BASE_UNITS:
        assert metric.unit


@every_metric
def test_metric_help_is_a_plain_sentence(metric: Metric) -> None:
    assert metric.help.isascii()
    assert metric.help.isprintable()
    assert "\\" not in metric.help
    assert metric.help[0].isupper() or metric.help[0].isdigit()
    assert metric.help.endswith(".")


@every_metric
def test_flow_metric_has_flow_labels_first(metric: Metric) -> None:
    if set(FLOW_LABELS) & set(metric.labels):
        assert metric.labels[:3] == ("flow", "source", "target")
        assert metric.per_flow
    else:
        assert not metric.per_flow
        assert metric.name.startswith(("mm2_exporter_", "mm2_report_", "process_", "python_")) or (
            metric.name == "mm2_audit_runs"
        )


@every_metric
def test_info_metric_is_a_gauge(metric: Metric) -> None:
    if metric.name.endswith("_info"):
        assert metric.type is MetricType.GAUGE


@every_metric
def test_labels_of_coarser_granularity_are_a_subset(metric: Metric) -> None:
    published = [metric.labels_at(level) for level in Granularity if metric.published_at(level)]
    assert published[-1] == metric.labels
    for coarse, fine in pairwise(published):
        assert set(coarse) <= set(fine)


@every_metric
def test_latency_histogram_has_default_tiers_as_buckets(metric: Metric) -> None:
    if metric.type is MetricType.HISTOGRAM and "latency" in metric.name:
        assert {10.0, 60.0} <= set(metric.buckets)


@pytest.mark.parametrize(
    ("metric", "granularity", "labels"),
    [
        (REPLICATION_LAG_RECORDS, Granularity.TOPIC, (*FLOW_LABELS, "topic")),
        (REPLICATION_LAG_RECORDS, Granularity.PARTITION, (*FLOW_LABELS, "topic", "partition")),
        (RETENTION_HEADROOM_SECONDS, Granularity.FLOW, (*FLOW_LABELS, "limit")),
        (RETENTION_HEADROOM_SECONDS, Granularity.TOPIC, (*FLOW_LABELS, "topic", "limit")),
        (REPLICATED_RECORDS_TOTAL, Granularity.FLOW, FLOW_LABELS),
        (REPLICATED_RECORDS_TOTAL, Granularity.PARTITION, (*FLOW_LABELS, "topic")),
        (FLOW_STATE, Granularity.FLOW, (*FLOW_LABELS, "state")),
        (EXPORTER_SERIES, Granularity.PARTITION, ()),
    ],
)
def test_labels_at_granularity(
    metric: Metric, granularity: Granularity, labels: tuple[str, ...]
) -> None:
    assert metric.labels_at(granularity) == labels


def test_partition_metric_is_not_published_at_topic_granularity() -> None:
    assert not PARTITION_STALLED.published_at(Granularity.TOPIC)
    with pytest.raises(ValueError, match=r"mm2_partition_stalled is not published at .* topic"):
        PARTITION_STALLED.labels_at(Granularity.TOPIC)


def test_parse_granularity() -> None:
    assert [Granularity.parse(level.label) for level in Granularity] == list(Granularity)
    assert Granularity.PARTITION.coarser is Granularity.TOPIC
    assert Granularity.FLOW.coarser is None
    with pytest.raises(ValueError, match="unknown granularity 'broker'"):
        Granularity.parse("broker")


SOUND: dict[str, Any] = {"name": "mm2_a_seconds", "type": MetricType.GAUGE, "help": "A."}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": "mm2_A"}, "has the invalid name 'mm2_A'"),
        ({"labels": ("topic-name",)}, "has the invalid name 'topic-name'"),
        ({"type": MetricType.COUNTER}, "must end in _total"),
        ({"name": "mm2_a_total"}, "must end in _total if and only if it is a counter"),
        ({"labels": ("side", "side")}, "has a repeated or reserved label"),
        ({"labels": ("le",)}, "has a repeated or reserved label"),
        ({"type": MetricType.HISTOGRAM}, "must have buckets if and only if it is a histogram"),
        (
            {"type": MetricType.HISTOGRAM, "buckets": (1.0, 1.0)},
            "has buckets that do not ascend",
        ),
        ({"labels": ("topic",)}, "must have a rollup if and only if"),
        ({"rollup": Rollup.SUM}, "must have a rollup if and only if"),
    ],
)
def test_inconsistent_metric_declaration_raises(change: dict[str, Any], problem: str) -> None:
    Metric(**SOUND)
    with pytest.raises(ValueError, match=problem):
        Metric(**(SOUND | change))
