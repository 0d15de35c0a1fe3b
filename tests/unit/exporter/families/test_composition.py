"""The exposition as a whole: catalogue, order, readiness, several flows, limit, cache."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from mm2slo_core import catalogue
from mm2slo_core.catalogue import Granularity
from mm2slo_core.topology import Flow
from mm2slo_exporter.exposition import Encoding, Format, Renderer
from mm2slo_exporter.families import LabelCache, families, limited_families
from mm2slo_exporter.families.composer import FLOW_TABLES, NEEDS_MIRRORMAKER
from mm2slo_exporter.families.own_health import OWN_SERIES

EARLY = [
    "mm2_flow_info",
    "mm2_flow_state",
    "mm2_sli_good_events_total",
    "mm2_sli_events_total",
    "mm2_sli_unknown_events_total",
    "mm2_exporter_flow_ready",
]

TOLD_OF_OTHER_ENGINES = {
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
    "mm2_exporter_flow_ready",
    "mm2_exporter_timeline_bytes_total",
    "mm2_exporter_timeline_records_total",
    "mm2_exporter_timeline_writer",
    "mm2_flow_info",
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


def test_each_metric_of_the_catalogue_is_produced_by_exactly_one_module() -> None:
    produced = [*chain.from_iterable(FLOW_TABLES), *OWN_SERIES, catalogue.EXPORTER_SERIES]
    assert sorted(metric.name for metric in produced) == sorted(catalogue.BY_NAME)


@pytest.mark.parametrize("granularity", Granularity)
def test_a_full_report_gives_every_metric_once_in_the_order_of_the_catalogue(
    publisher: Any, granularity: Granularity
) -> None:
    found = families([publisher.report], publisher.own, granularity)
    assert [family.metric for family in found] == [
        metric for metric in catalogue.ALL if metric.published_at(granularity)
    ]


@pytest.mark.parametrize("granularity", Granularity)
def test_the_number_of_series_is_the_number_of_lines(
    publisher: Any, granularity: Granularity
) -> None:
    published = publisher.publish(granularity)
    assert published.of("mm2_exporter_series") == [f" {len(published.lines)}"]


def test_a_flow_that_is_not_ready_shows_what_it_is_and_its_indicators_alone(
    publisher: Any,
) -> None:
    report = publisher.changed(ready=False)
    found = families([report], publisher.own, Granularity.PARTITION)
    assert [f.metric.name for f in found if f.metric.per_flow] == EARLY
    published = publisher.publish(Granularity.PARTITION, [report])
    assert published.of("mm2_exporter_flow_ready") == [" 0"]
    assert published.of("mm2_sli_events_total") == [
        '{sli="availability",tier="all"} 95',
        '{sli="latency",tier="10s"} 0',
    ]


def test_another_engine_s_flow_tells_no_figure_that_only_mirrormaker_leaves(publisher: Any) -> None:
    info = replace(publisher.report.info, engine="other")
    found = families([publisher.changed(info=info)], publisher.own, Granularity.PARTITION)
    told = {family.metric.name for family in found if family.metric.per_flow}
    assert told == TOLD_OF_OTHER_ENGINES
    assert told.isdisjoint(metric.name for metric in NEEDS_MIRRORMAKER)


def test_flows_stand_together_under_each_metric(publisher: Any) -> None:
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


def test_without_flows_the_exporter_still_tells_of_itself(publisher: Any) -> None:
    found = families([], publisher.own, Granularity.TOPIC)
    assert [family.metric for family in found] == [
        metric for metric in catalogue.ALL if not metric.per_flow
    ]


def test_figures_of_the_exporter_that_are_not_known_are_left_out(publisher: Any) -> None:
    process = replace(publisher.own.process, resident_memory_bytes=None)
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
        (298, Granularity.TOPIC, False),
        (260, Granularity.FLOW, False),
        (10, Granularity.FLOW, True),
    ],
)
def test_too_many_series_fall_back_to_the_next_coarser_granularity_and_say_so(
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


def test_labels_are_made_once_and_forgotten_with_their_topic(publisher: Any) -> None:
    cache = LabelCache()

    def keys(report: Any) -> list[int]:
        found = families([report], publisher.own, Granularity.PARTITION, cache)
        return [
            id(labels)
            for family in found
            if family.metric in (catalogue.SOURCE_END_OFFSET, catalogue.POSITION_QUALITY)
            for labels, _ in family.series
        ]

    assert keys(publisher.report) == keys(publisher.report)
    assert len(cache) == 4
    keys(publisher.changed(topics=publisher.report.topics[:1]))
    assert len(cache) == 1
    keys(publisher.changed(topics=publisher.report.topics[:1], ready=False))
    assert len(cache) == 0


def test_partitions_that_are_added_get_labels_of_their_own(publisher: Any) -> None:
    cache = LabelCache()
    for count in (1, 3, 2):
        grown = publisher.topic("orders", *(publisher.partition(n) for n in range(count)))
        found = families(
            [publisher.changed(topics=(grown,))], publisher.own, Granularity.PARTITION, cache
        )
        series = next(f.series for f in found if f.metric is catalogue.SOURCE_END_OFFSET)
        assert series == [
            (("us->eu", "us", "eu", "orders", str(number)), 1000) for number in range(count)
        ]


def test_names_with_quotes_newlines_and_other_letters_survive(publisher: Any) -> None:
    group = replace(publisher.report.groups[0], group='a"b\\c\nd é')
    published = publisher.publish_changed(groups=(group,))
    assert published.of("mm2_failover_ready") == [r'{group="a\"b\\c\nd é"} 1']


def test_the_same_report_gives_the_same_bytes_with_and_without_a_cache(publisher: Any) -> None:
    cache, renderer = LabelCache(), Renderer()
    cold = Renderer().render(families([publisher.report], publisher.own, Granularity.PARTITION))
    for _ in range(2):
        warm = renderer.render(
            families([publisher.report], publisher.own, Granularity.PARTITION, cache)
        )
        for fmt in Format:
            assert warm.body(fmt, Encoding.IDENTITY) == cold.body(fmt, Encoding.IDENTITY)
