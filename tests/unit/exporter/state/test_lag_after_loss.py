"""Lag of a partition after all its unreplicated records were removed."""

from typing import Any

import pytest
from flow_observations import Scene, flow_config, lost_records

from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.indicators.certain_loss import SavedLoss
from mm2slo_core.indicators.replication_lag import Headroom, RetentionLimit
from mm2slo_core.state_record import TopicLosses
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.canary.canary_messages import Arrived, Produced, RestoreFinished, Scheduled
from mm2slo_exporter.flow_observation import NewestSync, TailProbe
from mm2slo_exporter.state.flow_report import PartitionState
from mm2slo_exporter.state.flow_tracker import FlowTracker

PAY = TopicPartition("pay", 0)
ORDERS = TopicPartition("orders", 0)
TASK = ("MirrorSourceConnector", 0)


def near(seconds: float) -> Any:
    """A time within floating point precision."""
    return pytest.approx(seconds)


class Lossy:
    """Topics *orders* and *pay*; the 60 unreplicated records of *pay* are removed at 110 s."""

    def __init__(self, carrier: CanaryCarrier = CanaryCarrier.OFF) -> None:
        self.scene = Scene()
        self.tracker = FlowTracker(
            flow_config(), carrier=carrier, shared_target=False, started_at=0.0
        )
        self.scene.add("orders").live(10, 10)
        self.pay = self.scene.add("pay")
        self.pay.live(40, 40)
        self.look(100.0, RestoreFinished("us->eu", 100.0))
        self.pay.end = 100
        self.look(105.0)
        self.pay.start = 100
        self.look(110.0)

    def look(self, at: float, *events: object) -> PartitionState:
        report = self.tracker.update(self.scene.look(at, *events))  # type: ignore[arg-type]  # events of any kind
        return report.topics[1].partitions[0]


def test_lag_seconds_grow_until_flow_replicates_again_and_are_then_zero() -> None:
    lossy = Lossy()
    stopped = lossy.look(600.0)
    assert (stopped.lag_records, stopped.lag_seconds) == (0, near(600.0 - 99.8))
    assert stopped.headroom == Headroom(-60, 0.0, RetentionLimit.PASSED)
    lossy.scene.logs[ORDERS].live(12, 12)
    lossy.look(605.0)
    resumed = lossy.look(610.0)
    assert (resumed.lag_records, resumed.lag_seconds) == (0, 0.0)
    assert (resumed.next_offset, resumed.headroom) == (
        100,
        Headroom(0, None, RetentionLimit.UNKNOWN),
    )
    # The next records have their own age.
    lossy.pay.end = 103
    waiting = lossy.look(615.0)
    assert (waiting.lag_records, waiting.lag_seconds) == (3, near(615.0 - 609.8))
    lossy.pay.sync, lossy.pay.target_end = NewestSync(100, 40, 616.0), 43
    report = lossy.tracker.update(lossy.scene.look(620.0))
    assert report.topics[1].partitions[0].next_offset == 103
    assert lost_records(report) == 60
    # 2 of orders, 3 of pay: lost records are not replicated ones.
    assert report.totals.replicated_records_total == 5


def test_copies_of_canaries_show_that_flow_replicates_again() -> None:
    lossy = Lossy(CanaryCarrier.TOPIC)
    lossy.look(600.0, Scheduled("us->eu", 1, 0, 599.0), Produced("us->eu", 1, 0, 7, 599.1))
    lossy.look(605.0, Arrived("us->eu", 1, 0, 604.0))
    assert lossy.look(610.0).lag_seconds == 0.0


def test_copies_made_before_removal_do_not_end_lag() -> None:
    lossy = Lossy(CanaryCarrier.TOPIC)
    lossy.look(
        115.0,
        Scheduled("us->eu", 1, 0, 101.0),
        Produced("us->eu", 1, 0, 7, 101.1),
        Arrived("us->eu", 1, 0, 102.0),
    )
    assert lossy.look(120.0).lag_seconds == pytest.approx(120.0 - 99.8)


def test_lag_seconds_grow_while_a_task_has_failed() -> None:
    lossy = Lossy()
    lossy.scene.internals["states"] = {TASK: "FAILED"}
    lossy.scene.logs[ORDERS].live(12, 12)
    lossy.look(605.0)
    assert lossy.look(610.0).lag_seconds == pytest.approx(610.0 - 99.8)
    lossy.scene.internals["states"] = {TASK: "RUNNING"}
    lossy.scene.logs[ORDERS].live(14, 14)
    lossy.look(615.0)
    assert lossy.look(620.0).lag_seconds == 0.0


def test_markers_left_after_removal_do_not_keep_lag() -> None:
    lossy = Lossy()
    lossy.pay.end = 102
    lossy.pay.probe = TailProbe(100, 102, None, None)
    assert lossy.look(115.0).lag_records == 0
    lossy.scene.logs[ORDERS].live(12, 12)
    lossy.look(120.0)
    resumed = lossy.look(125.0)
    assert (resumed.next_offset, resumed.lag_records, resumed.lag_seconds) == (102, 0, 0.0)


def test_restarted_exporter_ends_lag_of_a_loss_counted_before() -> None:
    lossy = Lossy()
    lossy.tracker = FlowTracker(
        flow_config(), carrier=CanaryCarrier.OFF, shared_target=False, started_at=200.0
    )
    lossy.scene.save("losses", PAY.topic, TopicLosses(None, {0: SavedLoss(60, 100)}))
    lossy.look(210.0)
    lossy.scene.logs[ORDERS].live(12, 12)
    lossy.look(215.0)
    found = lossy.tracker.update(lossy.scene.look(220.0))
    assert found.topics[1].partitions[0].lag_seconds == 0.0
    assert found.totals.lost_records_total == 60
