"""A flow of another engine: no positions; its state follows topic growth and canaries."""

from typing import Any

import pytest
from flow_observations import Scene, flow_config

from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.indicators.flow_state import FlowStateName, PartitionProgress, StateReason
from mm2slo_core.indicators.replication_lag import LagOrigin
from mm2slo_core.indicators.sli_counters import Sli
from mm2slo_core.topic_selection import TopicRole
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.canary.canary_messages import (
    Arrived,
    CanaryEvent,
    Produced,
    RestoreFinished,
    Scheduled,
)
from mm2slo_exporter.state.flow_tracker import FlowTracker

OFF, TOPIC = CanaryCarrier.OFF, CanaryCarrier.TOPIC


def tracker(carrier: CanaryCarrier = OFF, engine: str = "dual-produce") -> FlowTracker:
    flow: dict[str, Any] = {"engine": engine, "stall_after": 30.0}
    if carrier is TOPIC:
        flow["canary"] = {"carrier": "topic", "deadline": 60.0}
    return FlowTracker(flow_config(**flow), carrier=carrier, shared_target=False, started_at=0.0)


def test_other_engine_has_no_position_lag_or_loss() -> None:
    scene = Scene()
    log = scene.add("orders")
    log.start, log.end, log.target_end = 100, 700, 650
    report = tracker().update(scene.look(1000.0))
    assert (report.ready, report.waiting_for) == (True, ())
    assert (report.lag_records, report.lag_seconds, report.stalled) == (None, None, ())
    [topic] = report.topics
    [partition] = topic.partitions
    assert (partition.source_start, partition.source_end, partition.target_end) == (100, 700, 650)
    assert (partition.next_offset, partition.quality, partition.headroom) == (None, None, None)
    assert (partition.lag_records, partition.lag_origin) == (None, LagOrigin.ABSENT)
    assert partition.progress is PartitionProgress.UNKNOWN
    assert topic.lost_records_total == 0
    assert (report.groups, report.tasks, dict(report.slis)) == ((), (), {})


@pytest.mark.parametrize(
    ("case", "moves", "expected"),
    [
        ("both sides grow", [(10, 10)] * 20, (FlowStateName.RUNNING, "position_advances")),
        ("other partitions", [(10, 7)] * 20, (FlowStateName.RUNNING, "position_advances")),
        (
            "source only",
            [(10, 10)] + [(10, 0)] * 20,
            (FlowStateName.STOPPED, "backlog_stalled"),
        ),
        ("source only, recently", [(10, 10)] * 15 + [(10, 0)] * 5, (FlowStateName.RUNNING, None)),
        ("no growth", [(10, 10)] + [(0, 0)] * 20, (FlowStateName.IDLE, "nothing_to_copy")),
        ("target recovers", [(9, 0)] * 20 + [(0, 9)], (FlowStateName.RUNNING, None)),
    ],
)
def test_other_engine_state_follows_topic_growth(
    case: str, moves: list[tuple[int, int]], expected: tuple[FlowStateName, str | None]
) -> None:
    scene, flow = Scene(), tracker()
    log = scene.add("orders")
    log.end, log.target_end = 500, 900
    report = flow.update(scene.look(1000.0))
    for number, (source, target) in enumerate(moves, 1):
        log.end += source
        log.target_end += target
        report = flow.update(scene.look(1000.0 + 5.0 * number))
    state, reason = expected
    assert report.state is state, case
    assert reason in {None, str(report.state_reason)}, case


def test_other_engine_with_unreadable_target_is_not_stopped() -> None:
    scene, flow = Scene(), tracker()
    log = scene.add("orders")
    flow.update(scene.look(1000.0))
    scene.target_readable = False
    for second in range(1005, 1200, 5):
        log.end = (log.end or 0) + 10
        report = flow.update(scene.look(float(second)))
        assert report.state_reason == StateReason.TARGET_UNREADABLE
    scene.target_readable = True
    log.target_end = log.end
    report = flow.update(scene.look(1205.0))
    assert (report.state, report.topics[0].backlog_since) == (FlowStateName.RUNNING, None)


def test_other_engine_canaries_settle_no_loss() -> None:
    scene, flow = Scene(), tracker(TOPIC, "other")
    scene.add("mm2slo.canary", role=TopicRole.CANARY)
    events: list[CanaryEvent] = [
        RestoreFinished("us->eu", 999.0),
        *(Scheduled("us->eu", n, 0, 1000.0 + n) for n in (0, 1)),
        *(Produced("us->eu", n, 0, n, 1000.0 + n) for n in (0, 1)),
        Arrived("us->eu", 0, 0, 1000.5),
    ]
    report = flow.update(scene.look(1002.0, *events))
    assert (report.state, report.state_reason) == (FlowStateName.IDLE, StateReason.CANARIES_ARRIVE)
    carrier = scene.logs[TopicPartition("mm2slo.canary", 0)]
    carrier.end, carrier.target_end = 2, 2
    for second in range(1010, 1100, 10):
        report = flow.update(scene.look(float(second)))
    counts = {key.sli: count for key, count in report.slis.items() if key.sli != Sli.LATENCY}
    assert counts[Sli.COMPLETENESS] == (1, 1, 0)
    assert report.canary is not None
    assert (report.canary.lost, report.canary_pending) == (0, 1)
    assert Sli.DATA_FRESHNESS not in counts
