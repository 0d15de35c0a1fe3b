"""The exposition as a whole: catalogue, order, readiness, several flows, limit, cache."""

from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from mm2slo_core import catalogue
from mm2slo_core.catalogue.metric import Granularity
from mm2slo_core.topology import Flow
from mm2slo_exporter.exposition_family import SeriesColumns
from mm2slo_exporter.exposition_renderer import Encoding, ExpositionFormat, Renderer
from mm2slo_exporter.families.exporter_series import EXPORTER_TABLE
from mm2slo_exporter.families.family_composer import (
    FLOW_TABLES,
    NEEDS_MIRRORMAKER,
    SeriesCache,
    families,
    limited_families,
)

EARLY = [
    "mm2_flow_info",
    "mm2_flow_state",
    "mm2_flow_observed_timestamp_seconds",
    "mm2_source_end_offset",
    "mm2_source_start_offset",
    "mm2_failover_redelivery_records",
    "mm2_failover_skipped_records",
    "mm2_failover_commits_age_seconds",
    "mm2_failover_unreplicated_records",
    "mm2_failover_unreplicated_seconds",
    "mm2_failover_unreplicated_age_seconds",
    "mm2_failover_group_unreplicated_records",
    "mm2_failover_group_unreplicated_seconds",
    "mm2_failover_ready",
    "mm2_failover_blocked",
    "mm2_sli_good_events_total",
    "mm2_sli_events_total",
    "mm2_sli_unknown_events_total",
    "mm2_exporter_skipped_rounds_total",
    "mm2_exporter_flow_ready",
]

OTHER_ENGINE_METRICS = {
    "mm2_canary_duplicates_total",
    "mm2_canary_expired_total",
    "mm2_canary_last_arrival_timestamp_seconds",
    "mm2_canary_late_total",
    "mm2_canary_latency_seconds",
    "mm2_canary_lost_total",
    "mm2_canary_moved_total",
    "mm2_canary_pending",
    "mm2_canary_received_total",
    "mm2_canary_reordered_total",
    "mm2_canary_sent_total",
    "mm2_canary_unknown_total",
    "mm2_exporter_arrival_bracket_seconds",
    "mm2_exporter_flow_ready",
    "mm2_exporter_history_start_timestamp_seconds",
    "mm2_exporter_skipped_rounds_total",
    "mm2_exporter_timeline_bytes_total",
    "mm2_exporter_timeline_records_total",
    "mm2_exporter_timeline_writer",
    "mm2_flow_info",
    "mm2_flow_observed_timestamp_seconds",
    "mm2_flow_state",
    "mm2_open_transaction_records",
    "mm2_partition_drift",
    "mm2_sli_events_total",
    "mm2_sli_good_events_total",
    "mm2_sli_unknown_events_total",
    "mm2_source_end_offset",
    "mm2_source_records_total",
    "mm2_source_start_offset",
    "mm2_source_truncations_total",
    "mm2_target_end_offset",
    "mm2_target_start_offset",
    "mm2_topic_config_drift",
    "mm2_topic_info",
    "mm2_topic_missing",
    "mm2_topic_recreations_total",
}


def test_each_catalogue_metric_has_one_series_function() -> None:
    produced = [*chain.from_iterable(FLOW_TABLES), *EXPORTER_TABLE, catalogue.EXPORTER_SERIES]
    assert sorted(metric.name for metric in produced) == sorted(catalogue.BY_NAME)


@pytest.mark.parametrize("granularity", Granularity)
def test_families_of_full_report_are_in_catalogue_order(
    publisher: Any, granularity: Granularity
) -> None:
    found = families([publisher.report], publisher.own, granularity)
    assert list(dict.fromkeys(family.metric for family in found)) == [
        metric for metric in catalogue.ALL if metric.published_at(granularity)
    ]


@pytest.mark.parametrize("granularity", Granularity)
def test_exporter_series_equals_number_of_lines(publisher: Any, granularity: Granularity) -> None:
    published = publisher.publish(granularity)
    assert published.of("mm2_exporter_series") == [f" {len(published.lines)}"]


def test_flow_that_is_not_ready_publishes_early_metrics_only(
    publisher: Any,
) -> None:
    report = publisher.changed(ready=False)
    found = families([report], publisher.own, Granularity.PARTITION)
    assert list(dict.fromkeys(f.metric.name for f in found if f.metric.per_flow)) == EARLY
    published = publisher.publish(Granularity.PARTITION, [report])
    assert published.of("mm2_exporter_flow_ready") == [" 0"]
    assert published.of("mm2_sli_events_total") == [
        '{sli="availability",tier="all"} 95',
        '{sli="latency",tier="10s"} 0',
    ]


def test_other_engine_publishes_no_mirrormaker_metrics(publisher: Any) -> None:
    info = replace(publisher.report.info, engine="other")
    found = families([publisher.changed(info=info)], publisher.own, Granularity.PARTITION)
    published = {family.metric.name for family in found if family.metric.per_flow}
    assert published == OTHER_ENGINE_METRICS
    assert published.isdisjoint(metric.name for metric in NEEDS_MIRRORMAKER)


def test_families_contain_series_of_all_flows(publisher: Any) -> None:
    other = publisher.changed(flow=Flow("eu", "us"), lag_records=1)
    waiting = publisher.changed(flow=Flow("ap", "us"), ready=False)
    found = {
        family.metric: family
        for family in families([publisher.report, other, waiting], publisher.own, Granularity.FLOW)
    }
    assert found[catalogue.FLOW_LAG_RECORDS].series == [
        (("us->eu", "us", "eu"), 20),
        (("eu->us", "eu", "us"), 1),
    ]
    assert found[catalogue.EXPORTER_FLOW_READY].series == [
        (("us->eu", "us", "eu"), 1),
        (("eu->us", "eu", "us"), 1),
        (("ap->us", "ap", "us"), 0),
    ]


def test_families_without_flows_are_the_exporters_own(publisher: Any) -> None:
    found = families([], publisher.own, Granularity.TOPIC)
    assert list(dict.fromkeys(family.metric for family in found)) == [
        metric for metric in catalogue.ALL if not metric.per_flow
    ]


def test_unknown_exporter_values_are_not_published(publisher: Any) -> None:
    process = dict(publisher.own.process)
    del process[catalogue.PROCESS_RESIDENT_MEMORY_BYTES]
    own = replace(publisher.own, process=process, render_seconds=None, cycle_seconds=None)
    everything = {f.metric for f in families([], publisher.own, Granularity.TOPIC)}
    assert everything - {f.metric for f in families([], own, Granularity.TOPIC)} == {
        catalogue.PROCESS_RESIDENT_MEMORY_BYTES,
        catalogue.EXPORTER_RENDER_DURATION_SECONDS,
        catalogue.EXPORTER_CYCLE_DURATION_SECONDS,
    }


@pytest.mark.parametrize(
    ("limit", "level", "over"),
    [
        (10_000, Granularity.PARTITION, False),
        (284, Granularity.TOPIC, False),
        (237, Granularity.FLOW, False),
        (10, Granularity.FLOW, True),
    ],
)
def test_limited_families_use_coarser_granularity_over_limit(
    publisher: Any, limit: int, level: Granularity, *, over: bool
) -> None:
    limited = limited_families([publisher.report], publisher.own, Granularity.PARTITION, limit)
    assert (limited.granularity, limited.over_limit) == (level, over)
    assert limited.coarsened is (level is not Granularity.PARTITION)
    found = {family.metric: family.series for family in limited.families}
    assert found[catalogue.EXPORTER_SERIES] == [((), limited.series)]
    assert found[catalogue.EXPORTER_GRANULARITY] == [
        ((name,), int(name == level.label)) for name in ("flow", "topic", "partition")
    ]


def test_label_values_are_the_same_objects_while_their_topics_are_published(publisher: Any) -> None:
    cache = SeriesCache()

    def keys(report: Any) -> list[int]:
        # New states of all topics, as in a round in which all have changed.
        topics = tuple(topic._replace() for topic in report.topics)
        report = replace(report, topics=topics)
        found = families([report], publisher.own, Granularity.PARTITION, cache)
        return [
            id(part)
            for family in found
            if family.metric in (catalogue.SOURCE_END_OFFSET, catalogue.POSITION_QUALITY)
            and isinstance(family.series, SeriesColumns)
            for part in (*family.series.labels.first, *family.series.labels.last)
        ]

    first = keys(publisher.report)
    assert first
    assert keys(publisher.report) == first
    some = keys(publisher.changed(topics=publisher.report.topics[:1]))
    assert some
    assert set(some) < set(first)


def test_label_values_follow_partition_count(publisher: Any) -> None:
    cache = SeriesCache()
    for count in (1, 3, 2):
        grown = publisher.topic("orders", *(publisher.partition(n) for n in range(count)))
        found = families(
            [publisher.changed(topics=(grown,))], publisher.own, Granularity.PARTITION, cache
        )
        series = next(f.series for f in found if f.metric is catalogue.SOURCE_END_OFFSET)
        assert list(series) == [
            (("us->eu", "us", "eu", "orders", str(number)), 1000) for number in range(count)
        ]


def test_group_names_are_escaped(publisher: Any) -> None:
    group = replace(publisher.report.groups[0], group='a"b\\c\nd é')
    published = publisher.publish_changed(groups=(group,))
    assert published.of("mm2_failover_ready") == [r'{group="a\"b\\c\nd é"} 1']


def test_series_cache_does_not_change_rendered_bytes(publisher: Any) -> None:
    cache, renderer = SeriesCache(), Renderer()
    cold = Renderer().render(families([publisher.report], publisher.own, Granularity.PARTITION))
    for _ in range(2):
        warm = renderer.render(
            families([publisher.report], publisher.own, Granularity.PARTITION, cache)
        )
        for fmt in ExpositionFormat:
            assert warm.body(fmt, Encoding.IDENTITY) == cold.body(fmt, Encoding.IDENTITY)
