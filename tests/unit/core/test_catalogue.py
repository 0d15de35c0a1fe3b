"""The catalogue against the naming rules of Prometheus and OpenMetrics, and its own contract."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from mm2slo_core import catalogue
from mm2slo_core.catalogue import (
    ALL,
    BY_NAME,
    EXPORTER_SERIES,
    FLOW_LABELS,
    FLOW_STATE,
    GROUPS,
    PARTITION_STALLED,
    REPLICATED_RECORDS_TOTAL,
    REPLICATION_LAG_RECORDS,
    RETENTION_HEADROOM_SECONDS,
    Granularity,
    Metric,
    MetricType,
    Rollup,
    metric_named,
)
from mm2slo_core.catalogue.reported import REPORT_GROUPS

# Suffixes OpenMetrics 1.0 gives a meaning of its own.
RESERVED_SUFFIXES = ("_created", "_bucket", "_sum", "_count", "_gcount", "_gsum")
BASE_UNITS = {"seconds", "bytes", "records", "ratio"}
OTHER_UNITS = ("_ms", "_milliseconds", "_minutes", "_hours", "_kilobytes", "_percent")

REPORTED = tuple(metric for group in REPORT_GROUPS.values() for metric in group)

every_metric = pytest.mark.parametrize("metric", [*ALL, *REPORTED], ids=lambda metric: metric.name)


def test_no_name_is_declared_twice() -> None:
    assert [name for name, times in Counter(m.name for m in ALL).items() if times > 1] == []
    assert len(ALL) == len(BY_NAME) == 82
    assert len({*BY_NAME, *(each.name for each in REPORTED)}) == len(ALL) + len(REPORTED)


def test_a_constant_is_the_name_in_capitals_without_the_prefix() -> None:
    constants = {
        name: value for name, value in vars(catalogue).items() if isinstance(value, Metric)
    }
    assert {value.name.removeprefix("mm2_").upper() for value in ALL} == set(constants)
    for name, metric in constants.items():
        assert metric.name.removeprefix("mm2_").upper() == name


def test_the_groups_hold_every_metric_once() -> None:
    assert [metric for group in GROUPS.values() for metric in group] == list(ALL)


def test_no_two_families_share_a_sample_name() -> None:
    samples = Counter(sample for metric in ALL for sample in metric.sample_names)
    assert [name for name, times in samples.items() if times > 1] == []
    families = Counter(metric.family_name for metric in ALL)
    assert [name for name, times in families.items() if times > 1] == []
    assert not set(families) & set(samples) - {m.name for m in ALL if m.name == m.family_name}


@every_metric
def test_a_name_has_the_prefix_and_no_reserved_suffix(metric: Metric) -> None:
    assert metric.name.startswith(("mm2_", "process_"))
    assert not metric.family_name.endswith(RESERVED_SUFFIXES)
    assert not metric.family_name.endswith("_total")


@every_metric
def test_a_unit_is_a_base_unit_and_a_name_in_a_base_unit_declares_it(metric: Metric) -> None:
    assert metric.unit in BASE_UNITS | {""}
    assert not metric.family_name.endswith(OTHER_UNITS)
    if metric.family_name.rpartition("_")[2] in BASE_UNITS:
        assert metric.unit


@every_metric
def test_a_help_text_is_one_plain_sentence(metric: Metric) -> None:
    assert metric.help.isascii()
    assert metric.help.isprintable()
    assert "\\" not in metric.help
    assert metric.help[0].isupper() or metric.help[0].isdigit()
    assert metric.help.endswith(".")


@every_metric
def test_a_metric_of_a_flow_has_the_flow_labels_first(metric: Metric) -> None:
    if set(FLOW_LABELS) & set(metric.labels):
        assert metric.labels[:3] == ("flow", "source", "target")
        assert metric.per_flow
    else:
        assert not metric.per_flow
        assert metric.name.startswith(("mm2_exporter_", "mm2_report_", "process_")) or (
            metric.name == "mm2_audit_runs"
        )


@every_metric
def test_an_info_metric_is_a_gauge(metric: Metric) -> None:
    if metric.name.endswith("_info"):
        assert metric.type is MetricType.GAUGE


@every_metric
def test_a_coarser_granularity_never_has_a_label_a_finer_one_lacks(metric: Metric) -> None:
    published = [metric.labels_at(level) for level in Granularity if metric.published_at(level)]
    assert published[-1] == metric.labels
    for coarse, fine in pairwise(published):
        assert set(coarse) <= set(fine)


@every_metric
def test_a_histogram_of_latencies_has_the_default_tiers_as_bounds(metric: Metric) -> None:
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
def test_labels_follow_the_granularity(
    metric: Metric, granularity: Granularity, labels: tuple[str, ...]
) -> None:
    assert metric.labels_at(granularity) == labels


def test_a_metric_of_partitions_is_not_published_by_topic() -> None:
    assert not PARTITION_STALLED.published_at(Granularity.TOPIC)
    with pytest.raises(ValueError, match=r"mm2_partition_stalled is not published at .* topic"):
        PARTITION_STALLED.labels_at(Granularity.TOPIC)


def test_a_granularity_is_read_by_its_name() -> None:
    assert [Granularity.parse(level.label) for level in Granularity] == list(Granularity)
    assert Granularity.PARTITION.coarser is Granularity.TOPIC
    assert Granularity.FLOW.coarser is None
    with pytest.raises(ValueError, match="'broker' is not a granularity"):
        Granularity.parse("broker")


def test_a_name_outside_the_catalogue_is_refused_by_name() -> None:
    assert metric_named("mm2_flow_state") is FLOW_STATE
    with pytest.raises(KeyError, match="'mm2_lag' is not in the catalogue"):
        metric_named("mm2_lag")


SOUND: dict[str, Any] = {"name": "mm2_a_seconds", "type": MetricType.GAUGE, "help": "A."}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"name": "mm2_A"}, "has the bad name 'mm2_A'"),
        ({"labels": ("topic-name",)}, "has the bad name 'topic-name'"),
        ({"type": MetricType.COUNTER}, "must end in _total"),
        ({"name": "mm2_a_total"}, "must end in _total exactly when it is a counter"),
        ({"unit": "bytes"}, "must end in its unit 'bytes'"),
        ({"labels": ("side", "side")}, "has a repeated or reserved label"),
        ({"labels": ("le",)}, "has a repeated or reserved label"),
        ({"type": MetricType.HISTOGRAM}, "must have buckets exactly when it is a histogram"),
        (
            {"type": MetricType.HISTOGRAM, "buckets": (1.0, 1.0)},
            "has buckets that do not rise",
        ),
        ({"labels": ("topic",)}, "must have a rollup exactly when"),
        ({"rollup": Rollup.SUM}, "must have a rollup exactly when"),
    ],
)
def test_a_contradictory_declaration_is_refused(change: dict[str, Any], complaint: str) -> None:
    Metric(**SOUND)
    with pytest.raises(ValueError, match=complaint):
        Metric(**(SOUND | change))
