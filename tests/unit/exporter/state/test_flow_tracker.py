"""A flow over rounds: exact reports, readiness, and invariants."""

from collections.abc import Sequence
from typing import Any

import pytest
from flow_observations import Scene, flow_config
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.indicators.flow_state import FlowStateName, PartitionProgress, StateReason
from mm2slo_core.indicators.replication_lag import Headroom, LagOrigin, RetentionLimit
from mm2slo_core.indicators.sli_counters import Sli, SliCount, SliKey
from mm2slo_core.offset_translation import PositionQuality
from mm2slo_core.state_record import RecoveryPoint
from mm2slo_core.topic_selection import TopicPair, TopicRole
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_exporter.canary.canary_messages import (
    Arrived,
    HeartbeatSeen,
    Produced,
    RestoreFinished,
    Scheduled,
)
from mm2slo_exporter.flow_observation import NewestSync
from mm2slo_exporter.state.flow_report import (
    FlowInfo,
    FlowReport,
    FlowTotals,
    HeartbeatState,
    PartitionState,
    TaskState,
    TopicState,
)
from mm2slo_exporter.state.flow_tracker import FlowTracker

OFF = CanaryCarrier.OFF
ORDERS = TopicPartition("orders", 0)


def tracker(carrier: CanaryCarrier = OFF, **flow: object) -> FlowTracker:
    return FlowTracker(flow_config(**flow), carrier=carrier, shared_target=False, started_at=0.0)


def test_report_of_flow_without_canaries() -> None:
    scene = Scene()
    scene.add("orders").live(100, 100)
    scene.internals["states"] = {("S", 1): "FAILED", ("S", None): "RUNNING", ("S", 0): "RUNNING"}
    flow = tracker()
    flow.update(scene.look(1000.0))
    scene.logs[ORDERS].live(110, 130)
    assert flow.update(scene.look(1005.0)) == FlowReport(
        flow=Flow("us", "eu"),
        info=FlowInfo(policy="default", separator=".", engine="mirrormaker2", canary="off"),
        at=1005.0,
        state=FlowStateName.RUNNING,
        state_reason=StateReason.POSITION_ADVANCES,
        ready=True,
        waiting_for=(),
        source_readable=True,
        target_readable=True,
        topics=(
            TopicState(
                pair=TopicPair("orders", "us.orders", TopicRole.DATA),
                partitions=(
                    PartitionState(
                        partition=0,
                        source_start=0,
                        source_end=130,
                        target_start=0,
                        target_end=110,
                        next_offset=110,
                        quality=PositionQuality.LIVE,
                        lag_records=20,
                        # A third of the way from 999.8 to 1004.9.
                        lag_seconds=1005.0 - (999.8 + 10 / 30 * (1004.9 - 999.8)),
                        lag_origin=LagOrigin.HISTORY,
                        progress=PartitionProgress.MOVING,
                        progressed_at=1005.0,
                        headroom=Headroom(110, None, RetentionLimit.UNKNOWN),
                        sync_upstream=0,
                        sync_at=900.0,
                        open_transaction_records=None,
                        backlog_since=1005.0,
                    ),
                ),
                source_partition_count=1,
                target_partition_count=1,
                missing_on_target=False,
                config_drift=(),
                assigned_missing=None,
                unassigned=None,
                source_records_total=30,
                replicated_records_total=10,
                lost_records_total=0,
                truncations_total=0,
                source_recreations_total=0,
                target_recreations_total=0,
            ),
        ),
        totals=FlowTotals(source_records_total=30, replicated_records_total=10),
        tasks=(
            TaskState("S", None, "RUNNING"),
            TaskState("S", 0, "RUNNING"),
            TaskState("S", 1, "FAILED"),
        ),
        heartbeats=HeartbeatState(present=False),
        slis={
            # 66 slices of 15 s ended between 0 and 1000 s; one of them was judged.
            SliKey(Sli.DATA_FRESHNESS, "default"): SliCount(2, 2, 65),
            SliKey(Sli.CHECKPOINT_FRESHNESS): SliCount(0, 0, 0),
            SliKey(Sli.AVAILABILITY): SliCount(0, 0, 67),
        },
        lag_records=20,
        lag_seconds=1005.0 - (999.8 + 10 / 30 * (1004.9 - 999.8)),
        recovery_point=RecoveryPoint(
            20, 1005.0 - (999.8 + 10 / 30 * (1004.9 - 999.8)), read_at=1004.8
        ),
        catch_up_seconds=None,
        stalled=(),
    )


def test_flow_totals_include_data_topics_only() -> None:
    scene = Scene()
    scene.add("orders").live(10, 12)
    scene.add("heartbeats", role=TopicRole.HEARTBEATS).live(5, 500)
    scene.add("mm2slo.canary", role=TopicRole.CANARY).live(5, 500)
    flow = tracker()
    flow.update(scene.look(1000.0))
    found = flow.update(scene.look(1031.0))
    assert found.lag_records == 2
    assert found.stalled == (ORDERS,)
    assert [topic.partitions[0].lag_records for topic in found.topics] == [2, 495, 495]
    assert found.slis[SliKey(Sli.DATA_FRESHNESS, "default")].unknown == 66 + 2


@pytest.mark.parametrize(
    ("what", "waits"),
    [
        ("source", ("source offsets",)),
        ("target", ("target offsets",)),
        ("internals", ("mm2-status on eu",)),
    ],
)
def test_flow_is_unknown_until_everything_was_read(what: str, waits: tuple[str, ...]) -> None:
    scene = Scene()
    scene.add("orders").live(10, 500)
    scene.source["group_offsets"] = {"app": {ORDERS: 3}}
    if what == "internals":
        scene.internals["waiting_for"] = waits
    else:
        setattr(scene, f"{what}_readable", False)
    flow = tracker()
    for at in (1000.0, 1060.0):
        found = flow.update(scene.look(at))
    assert not found.ready
    assert found.waiting_for == waits
    ends = [state.source_end for topic in found.topics for state in topic.partitions]
    assert ends == ([] if what == "source" else [500])
    assert (found.groups, found.stalled, found.lag_records) == ((), (), None)
    assert found.state is FlowStateName.UNKNOWN
    assert set(found.slis.values()) == {SliCount(0, 0, 0)}


def test_flow_lag_seconds_is_age_of_oldest_unreplicated_record() -> None:
    scene = Scene()
    scene.add("orders", partitions=3)
    for log in scene.logs.values():
        log.live(10, 10)
    flow = tracker()
    flow.update(scene.look(100.0))
    first, second, third = scene.logs.values()
    first.end = 11
    flow.update(scene.look(105.0))
    second.end = 13
    found = flow.update(scene.look(110.0))
    assert found.lag_records == 4
    assert found.lag_seconds == pytest.approx(110.0 - 99.8)
    third.target_end = third.end = None
    found = flow.update(scene.look(115.0))
    assert found.lag_records == 4
    scene.source_readable = False
    found = flow.update(scene.look(120.0))
    assert (found.lag_records, found.lag_seconds) == (None, None)


def test_flow_without_topics_has_no_lag() -> None:
    found = tracker().update(Scene().look(100.0))
    assert (found.ready, found.lag_records, found.lag_seconds) == (True, 0, 0.0)
    assert found.catch_up_seconds == 0.0


def test_catch_up_seconds_follows_net_rate() -> None:
    scene = Scene()
    scene.add("orders")
    flow = tracker()
    for step in range(1, 6):
        scene.logs[ORDERS].live(100 * step, 1000)
        found = flow.update(scene.look(100.0 + 10 * step))
    assert found.lag_records == 500
    assert found.catch_up_seconds == pytest.approx(50.0)


def test_canaries_and_heartbeats_are_counted_separately() -> None:
    scene = Scene()
    scene.add("heartbeats", role=TopicRole.HEARTBEATS)
    scene.add("ap.heartbeats", role=TopicRole.HEARTBEATS)
    flow = tracker(CanaryCarrier.HEARTBEATS)
    flow.update(scene.look(100.0, RestoreFinished("us->eu", 100.0)))
    found = flow.update(
        scene.look(
            105.0,
            Scheduled("us->eu", 1, 0, 101.0),
            Produced("us->eu", 1, 0, 7, 101.1),
            Scheduled("us->eu", 2, 0, 102.0),
            Arrived("us->eu", 1, 0, 101.25),
            HeartbeatSeen("us->eu", "us", 104.0, 104.5, replayed=False),
        )
    )
    assert found.info.canary == "heartbeats"
    assert found.canary is not None
    assert (found.canary.sent, found.canary.received) == (1, 1)
    assert (found.canary_pending, found.canary_arrived_at) == (1, 101.25)
    assert found.canary_latency is not None
    assert found.canary_latency.total_seconds == 0.25
    assert found.heartbeats.age_seconds == 0.5
    assert found.heartbeat_latency is not None
    assert sum(found.heartbeat_latency.counts) == 1
    # The heartbeats topic has no SLIs for order, affinity and uniqueness.
    assert {key.sli for key in found.slis} == {
        Sli.AVAILABILITY,
        Sli.LATENCY,
        Sli.COMPLETENESS,
        Sli.DATA_FRESHNESS,
        Sli.CHECKPOINT_FRESHNESS,
    }


def test_flow_with_canary_topic_has_all_slis_at_zero() -> None:
    found = tracker(CanaryCarrier.TOPIC).slis()
    assert {key.sli for key in found} == set(Sli)
    assert set(found.values()) == {SliCount(0, 0, 0)}


def test_identity_policy_has_empty_separator() -> None:
    flow = tracker(policy={"kind": "identity"})
    assert (flow.info.policy, flow.info.separator) == ("identity", "")


STEPS = st.lists(
    st.fixed_dictionaries(
        {
            "wait": st.floats(0.5, 70.0),
            "came": st.integers(0, 50),
            "copied": st.integers(0, 60),
            "removed": st.integers(0, 40),
            "source": st.booleans(),
            "target": st.booleans(),
            "event": st.sampled_from(["none"] * 8 + ["truncate", "recreate", "drop"]),
        }
    ),
    max_size=30,
)


def counters(report: FlowReport) -> dict[object, int]:
    """All values of a report that must never decrease."""
    found: dict[object, int] = {
        ("missing", "heartbeats"): report.heartbeats.missing_total,
    }
    for key, count in report.slis.items():
        found |= {(key, name): value for name, value in count._asdict().items()}
        assert 0 <= count.good <= count.total
    for topic in report.topics:
        name = topic.pair.source
        found |= {
            (name, field): getattr(topic, field)
            for field in TopicState._fields
            if field.endswith("_total")
        }
    return found


@given(STEPS)
def test_counters_never_decrease_and_lag_is_never_negative(
    steps: Sequence[dict[str, Any]],
) -> None:
    scene, flow = Scene(), tracker()
    log = scene.add("orders")
    log.sync = NewestSync(0, 0, 0.0)
    start = end = copied = 0
    before: dict[object, int] = {}
    at, topic_id = 100.0, 0
    for step in steps:
        at += step["wait"]
        match step["event"]:
            case "truncate":
                end = max(start, end - 30)
            case "recreate":
                topic_id += 1
                start = end = 0
            case "drop":
                copied = 0
            case _:
                end += step["came"]
                copied = min(end, copied + step["copied"])
                start = min(end, start + step["removed"])
        log.start, log.end, log.target_end = start, end, copied
        scene.source_readable, scene.target_readable = bool(step["source"]), bool(step["target"])
        scene.source["topic_ids"] = {"orders": str(topic_id)}
        report = flow.update(scene.look(at))
        after = counters(report)
        fallen = {key for key in before.keys() & after.keys() if after[key] < before[key]}
        assert not fallen
        before |= after
        for topic in report.topics:
            for partition in topic.partitions:
                assert partition.lag_records is None or partition.lag_records >= 0
                assert partition.lag_seconds is None or partition.lag_seconds >= 0
                if not report.source_readable:
                    assert partition.lag_records is None
        assert report.lag_records is None or report.lag_records >= 0
        assert report.lag_seconds is None or report.lag_seconds >= 0
