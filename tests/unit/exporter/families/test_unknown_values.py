"""Unknown values are not published, metric by metric."""

from dataclasses import replace
from typing import Any

import pytest

from mm2slo_core import catalogue
from mm2slo_core.catalogue.metric import Granularity
from mm2slo_core.indicators.flow_state import PartitionProgress
from mm2slo_core.indicators.replication_lag import Headroom, LagOrigin, RetentionLimit
from mm2slo_exporter.families.family_composer import families
from mm2slo_exporter.families.series_view import combine
from mm2slo_exporter.state.flow_report import LatencyHistogram

UNKNOWN_ON_SOURCE = {
    "source_start": None,
    "source_end": None,
    "next_offset": None,
    "quality": None,
    "lag_records": None,
    "lag_seconds": None,
    "lag_origin": LagOrigin.ABSENT,
    "progress": PartitionProgress.UNKNOWN,
    "headroom": None,
    "open_transaction_records": None,
}


def metrics(publisher: Any, granularity: Granularity, **changes: Any) -> set[str]:
    found = families([publisher.changed(**changes)], publisher.own, granularity)
    return {family.metric.name for family in found}


def left_out(publisher: Any, granularity: Granularity, **changes: Any) -> set[str]:
    return metrics(publisher, granularity) - metrics(publisher, granularity, **changes)


def test_copy_with_unknown_name_has_neither_target_topic_nor_missing(publisher: Any) -> None:
    known = publisher.topic("orders", publisher.partition(0))
    unknown = known._replace(pair=replace(known.pair, source="pay", target=""))
    published = publisher.publish_changed(topics=(known, unknown))
    assert published.of("mm2_topic_info") == ['{topic="orders",target_topic="us.orders"} 1']
    assert published.of("mm2_topic_missing") == ['{topic="orders"} 0']


def test_unreadable_source_omits_source_series_only(publisher: Any) -> None:
    unknown = publisher.topic("orders", publisher.partition(0, **UNKNOWN_ON_SOURCE))
    gone = left_out(
        publisher,
        Granularity.PARTITION,
        topics=(unknown,),
        source_readable=False,
        lag_records=None,
        lag_seconds=None,
        catch_up_seconds=None,
    )
    assert gone == {
        "mm2_flow_lag_records",
        "mm2_flow_lag_seconds",
        "mm2_catchup_eta_seconds",
        "mm2_replicated_partitions",
        "mm2_source_end_offset",
        "mm2_source_start_offset",
        "mm2_replicated_source_offset",
        "mm2_position_quality",
        "mm2_replication_lag_records",
        "mm2_replication_lag_seconds",
        "mm2_open_transaction_records",
        "mm2_stalled_partitions",
        "mm2_partition_stalled",
        "mm2_retention_headroom_records",
        "mm2_retention_headroom_seconds",
        "mm2_partition_drift",
        "mm2_topic_config_drift",
        "mm2_offset_sync_gap_records",
        "mm2_checkpoint_lag_records",
    }


def test_unreadable_target_omits_target_series_only(publisher: Any) -> None:
    topics = tuple(
        topic._replace(
            partitions=tuple(
                partition._replace(target_start=None, target_end=None)
                for partition in topic.partitions
            ),
        )
        for topic in publisher.report.topics
    )
    gone = left_out(publisher, Granularity.PARTITION, topics=topics, target_readable=False)
    assert gone == {
        "mm2_heartbeats_present",
        "mm2_heartbeat_last_timestamp_seconds",
        "mm2_heartbeat_age_seconds",
        "mm2_canary_last_arrival_timestamp_seconds",
        "mm2_target_end_offset",
        "mm2_target_start_offset",
        "mm2_topic_missing",
        "mm2_partition_drift",
        "mm2_topic_config_drift",
        "mm2_assigned_missing_partitions",
        "mm2_unassigned_partitions",
        "mm2_checkpoint_last_timestamp_seconds",
        "mm2_checkpoint_age_seconds",
        "mm2_checkpoint_lag_records",
        "mm2_failover_redelivery_records",
        "mm2_failover_skipped_records",
        "mm2_failover_commits_age_seconds",
        "mm2_failover_group_unreplicated_records",
        "mm2_failover_group_unreplicated_seconds",
        "mm2_failover_ready",
        "mm2_failover_blocked",
        "mm2_connector_state",
        "mm2_task_state",
    }


@pytest.mark.parametrize("granularity", Granularity)
def test_unreadable_clusters_omit_no_counters(publisher: Any, granularity: Granularity) -> None:
    gone = left_out(publisher, granularity, source_readable=False, target_readable=False)
    assert {name for name in gone if name.endswith("_total")} == set()


def test_flow_without_canaries_has_no_canary_series(publisher: Any) -> None:
    gone = left_out(publisher, Granularity.TOPIC, canary=None)
    assert gone == {
        metric.name for metric in catalogue.ALL if metric.name.startswith("mm2_canary_")
    }


def test_flow_without_timeline_has_no_timeline_series(publisher: Any) -> None:
    assert left_out(publisher, Granularity.TOPIC, timeline=None) == {
        "mm2_exporter_timeline_writer",
        "mm2_exporter_timeline_bytes_total",
        "mm2_exporter_timeline_records_total",
    }


def test_unknown_assignments_are_not_published(publisher: Any) -> None:
    topic = publisher.topic(
        "orders", publisher.partition(0), assigned_missing=None, unassigned=None
    )
    published = publisher.publish_changed(Granularity.FLOW, topics=(topic,))
    assert published.of("mm2_assigned_missing_partitions") == []
    assert published.of("mm2_unassigned_partitions") == []


def test_flow_without_data_topics_keeps_counters_and_has_no_headroom(publisher: Any) -> None:
    heartbeats = publisher.report.topics[2]
    published = publisher.publish_changed(Granularity.FLOW, topics=(heartbeats,))
    assert published.of("mm2_source_records_total") == [" 1150"]
    assert published.of("mm2_retention_lost_records_total") == [" 5"]
    assert published.of("mm2_stalled_partitions") == [" 0"]
    assert published.of("mm2_retention_headroom_records") == []
    assert published.of("mm2_retention_headroom_seconds") == []


def test_offset_sums_need_all_partitions_and_lag_known_ones(
    publisher: Any,
) -> None:
    topic = publisher.topic(
        "orders",
        publisher.partition(0),
        publisher.partition(1, source_end=None, lag_records=None, lag_seconds=None),
    )
    published = publisher.publish_changed(topics=(topic,))
    assert published.of("mm2_source_end_offset") == []
    assert published.of("mm2_source_start_offset") == ['{topic="orders"} 200']
    assert published.of("mm2_replication_lag_records") == ['{topic="orders"} 10']
    assert published.of("mm2_replication_lag_seconds") == ['{topic="orders"} 2.5']


@pytest.mark.parametrize("limit", [RetentionLimit.UNLIMITED, RetentionLimit.UNKNOWN])
@pytest.mark.parametrize("granularity", Granularity)
def test_headroom_without_limit_has_no_seconds(
    publisher: Any, limit: RetentionLimit, granularity: Granularity
) -> None:
    topic = publisher.topic("orders", publisher.partition(0, headroom=Headroom(7, None, limit)))
    published = publisher.publish_changed(granularity, topics=(topic,))
    assert [line.split(" ")[1] for line in published.of("mm2_retention_headroom_records")] == ["7"]
    assert published.of("mm2_retention_headroom_seconds") == []


def test_topic_headroom_is_smallest_per_limit(publisher: Any) -> None:
    rooms = [(30.0, RetentionLimit.TIME), (20.0, RetentionLimit.TIME), (25.0, RetentionLimit.SIZE)]
    topic = publisher.topic(
        "orders",
        *(
            publisher.partition(number, headroom=Headroom(7, seconds, limit))
            for number, (seconds, limit) in enumerate(rooms)
        ),
    )
    published = publisher.publish_changed(topics=(topic,))
    assert published.of("mm2_retention_headroom_seconds") == [
        '{topic="orders",limit="size"} 25.0',
        '{topic="orders",limit="time"} 20.0',
    ]


@pytest.mark.parametrize(
    ("next_offset", "gap"), [(900, [0]), (901, [1]), (899, []), (100, []), (None, [])]
)
def test_offset_sync_gap_ends_at_position(
    publisher: Any, next_offset: int | None, gap: list[int]
) -> None:
    topic = publisher.topic("orders", publisher.partition(0, next_offset=next_offset))
    published = publisher.publish_changed(topics=(topic,))
    lines = [f'{{topic="orders"}} {records}' for records in gap]
    assert published.of("mm2_offset_sync_gap_records") == lines


def test_partition_without_offset_sync_has_no_time_of_it(publisher: Any) -> None:
    topic = publisher.topic("orders", publisher.partition(0, sync_at=None, sync_upstream=None))
    published = publisher.publish_changed(topics=(topic,))
    assert published.of("mm2_offset_sync_last_timestamp_seconds") == []


def test_latency_histogram_with_negative_sum_is_not_published(publisher: Any) -> None:
    skewed = LatencyHistogram((5, *(0 for _ in catalogue.HEARTBEAT_LATENCY_SECONDS.buckets)), -9.0)
    published = publisher.publish_changed(heartbeat_latency=skewed, canary_latency=None)
    assert published.of("mm2_heartbeat_latency_seconds") == []
    assert published.of("mm2_canary_latency_seconds") == []


def test_unknown_connect_state_is_published(publisher: Any) -> None:
    source = replace(publisher.report.tasks[0], state="HIBERNATING")
    published = publisher.publish_changed(tasks=(source,))
    assert published.of("mm2_connector_state")[-1] == (
        '{connector="MirrorSourceConnector",state="hibernating"} 1'
    )
    assert [line[-1] for line in published.of("mm2_connector_state")] == [*"0000000", "1"]


def test_combine_metric_without_rollup_raises() -> None:
    with pytest.raises(ValueError, match="mm2_flow_info has no rollup"):
        combine(catalogue.FLOW_INFO, [1])
