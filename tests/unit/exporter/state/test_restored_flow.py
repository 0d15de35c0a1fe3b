"""What a flow publishes after a start, and what the timeline adds to it."""

import pytest
from flow_observations import Scene, flow_config, past_poll

from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.indicators.replication_lag import LagOrigin
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.records.timeline_record import PollTimes
from mm2slo_exporter.flow_observation import TailProbe
from mm2slo_exporter.state.flow_tracker import FlowTracker


def tracker() -> FlowTracker:
    return FlowTracker(
        flow_config(), carrier=CanaryCarrier.OFF, shared_target=False, started_at=100.0
    )


def test_nothing_waits_for_history_which_dates_unreplicated_records() -> None:
    scene = Scene()
    scene.add("orders").live(90, 100)
    scene.add("at-rest").live(10, 10)
    flow = tracker()
    report = flow.update(scene.look(105.0))
    assert report.ready
    assert (report.lag_records, report.lag_seconds) == (10, None)
    assert flow.topics.lacking_arrivals(report.topics) == {"orders"}
    polls = [past_poll(None, 95, PollTimes(55.0, 55.1, 50.0, 50.1))]
    flow.topics.add_history({"orders": polls, "deleted": polls})
    report = flow.update(scene.look(110.0))
    assert flow.topics.lacking_arrivals(report.topics) == {"orders"}
    flow.topics.add_history({"orders": [past_poll(None, 80, PollTimes(45.0, 45.1))]})
    report = flow.update(scene.look(115.0))
    # Offset 90 is two thirds into the records that arrived from 50 to 55.1 s.
    assert report.lag_seconds == pytest.approx(115.0 - (50.0 + 5.1 * 2 / 3))
    assert flow.topics.lacking_arrivals(report.topics) == set()
    assert report.totals.source_records_total == 0  # counters start at 0


def restarted(ahead: float) -> tuple[Scene, FlowTracker]:
    """A flow that stopped at 59 s; the timestamp of its oldest record is wrong by *ahead*."""
    scene = Scene()
    log = scene.add("orders")
    log.live(90, 100)
    log.probe = TailProbe(90, 99, 90, 60.0 + ahead)
    return scene, FlowTracker(
        flow_config(),
        carrier=CanaryCarrier.OFF,
        shared_target=False,
        started_at=100.0,
        awaits_history=True,
    )


@pytest.mark.parametrize("ahead", [3_600.0, -86_400.0])
def test_lag_in_seconds_is_pending_until_the_timeline_is_read(ahead: float) -> None:
    """By the record's clock it was -3,543 s, or 86,457 s, at a true age of about 46 s."""
    scene, flow = restarted(ahead)
    report = flow.update(scene.look(105.0))
    (partition,) = report.topics[0].partitions
    assert (partition.lag_records, partition.lag_seconds) == (10, None)
    assert (partition.lag_origin, report.lag_seconds) == (LagOrigin.PENDING, None)
    report = flow.update(scene.look(120.0))
    freshness = SliKey(Sli.DATA_FRESHNESS, "default")
    assert (report.slis[freshness].total, report.slis[freshness].unknown) == (0, 2)
    flow.topics.add_history({"orders": [past_poll(None, 90, PollTimes(59.0, 59.1))]})
    (partition,) = flow.update(scene.look(125.0)).topics[0].partitions
    assert partition.lag_origin is LagOrigin.HISTORY
    # Offset 90 is the first that arrived from then until 105 s.
    assert partition.lag_seconds == pytest.approx(125.0 - 59.0)


@pytest.mark.parametrize(("ahead", "seconds"), [(3_600.0, 25.1), (0.0, 70.0)])
def test_lag_in_seconds_without_a_timeline_is_at_least_the_time_since_the_first_poll(
    ahead: float, seconds: float
) -> None:
    scene, flow = restarted(ahead)
    flow.update(scene.look(105.0))
    flow.end_history()
    report = flow.update(scene.look(130.0))
    (partition,) = report.topics[0].partitions
    assert partition.lag_origin is LagOrigin.RECORD
    assert report.lag_seconds == partition.lag_seconds == pytest.approx(seconds)


def test_topic_recreated_while_no_process_ran_is_counted_once_and_has_no_history() -> None:
    scene = Scene()
    scene.add("orders").live(0, 100)
    scene.source["topic_ids"] = {"orders": "second"}
    flow = tracker()
    flow.update(scene.look(105.0))
    for at in (60.0, 40.0):
        flow.topics.add_history({"orders": [past_poll("first", 20, PollTimes(at, at + 0.1))]})
    report = flow.update(scene.look(110.0))
    assert report.totals.source_recreations_total == 1
    assert report.lag_seconds is None


def test_lag_in_seconds_is_unknown_while_a_partition_with_lag_waits_for_its_probe() -> None:
    scene = Scene()
    scene.add("orders").live(100, 100)
    scene.add("payments").live(10, 30)
    flow = tracker()
    report = flow.update(scene.look(105.0))
    assert report.lag_records == 20
    assert report.lag_seconds is None


def test_source_offsets_are_published_while_the_target_is_down() -> None:
    scene = Scene()
    scene.add("orders", partitions=2).live(40, 100)
    scene.target_readable = False
    flow = tracker()
    report = flow.update(scene.look(105.0))
    assert not report.ready
    assert [state.source_end for state in report.topics[0].partitions] == [100, 0]
    assert (report.lag_records, report.totals.source_records_total) == (None, 0)
    scene.source_readable = False
    assert flow.update(scene.look(110.0)).topics == ()
