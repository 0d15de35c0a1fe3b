"""What a flow publishes after a start, and what the timeline adds to it."""

from __future__ import annotations

import pytest
from flow_observations import Scene, flow_config, past_poll

from mm2slo_core.config.canary_config import CanaryCarrier
from mm2slo_core.timeline_record import PollTimes
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
