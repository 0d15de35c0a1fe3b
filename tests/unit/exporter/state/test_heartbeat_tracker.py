"""MirrorMaker 2's heartbeats: age, gaps and latency, by emitter."""

import pytest
from flow_observations import flow_config

from mm2slo_core.catalogue.metric import LATENCY_BUCKETS
from mm2slo_exporter.canary.canary_messages import HeartbeatSeen
from mm2slo_exporter.state.canary_tracker import HeartbeatTracker, LatencyCounter
from mm2slo_exporter.state.flow_report import HeartbeatState


def beat(emitted_at: float, emitter: str = "us", *, replayed: bool = False) -> HeartbeatSeen:
    return HeartbeatSeen("us->eu", emitter, emitted_at, emitted_at + 0.25, replayed)


def watched(*beats: HeartbeatSeen, **flow: object) -> HeartbeatTracker:
    tracker = HeartbeatTracker(flow_config(**flow))
    for each in beats:
        tracker.observe(each)
    return tracker


def test_state_without_heartbeats_is_not_present() -> None:
    assert watched().state(100.0) == HeartbeatState(present=False)


def test_age_is_time_since_last_arrival() -> None:
    found = watched(beat(10.0), beat(11.0), beat(12.0)).state(20.0)
    assert found == HeartbeatState(
        present=True,
        newest_at=12.0,
        arrived_at=12.25,
        age_seconds=7.75,
        received_total=3,
        missing_total=0,
    )


@pytest.mark.parametrize("skew", [-40.0, 900.0])
def test_age_does_not_depend_on_clock_of_mirrormaker(skew: float) -> None:
    arrived = HeartbeatSeen("us->eu", "us", 100.0 + skew, 100.0, replayed=False)
    found = watched(arrived).state(110.0)
    assert (found.newest_at, found.arrived_at, found.age_seconds) == (100.0 + skew, 100.0, 10.0)


def test_age_of_replayed_heartbeat_from_the_future_counts_from_its_reading() -> None:
    replayed = HeartbeatSeen("us->eu", "us", 1000.0, 100.0, replayed=True)
    assert watched(replayed).state(140.0).age_seconds == 40.0


def test_disabled_heartbeats_are_not_present_and_do_not_age() -> None:
    disabled = watched(beat(10.0, replayed=True), emit_heartbeats=False)
    assert disabled.state(5_000.0) == HeartbeatState(present=False)


def test_heartbeats_that_arrive_although_disabled_are_present() -> None:
    """Another herder's, or the setting belongs to another connector."""
    tracker = watched(beat(10.0), emit_heartbeats=False)
    assert tracker.state(40.25).age_seconds == 30.0
    assert tracker.state(41.0).present is False
    assert tracker.state(41.0).received_total == 1


def test_gap_counts_missing_heartbeats() -> None:
    for gap, missing in [(1.0, 0), (1.5, 0), (1.6, 1), (2.0, 1), (5.0, 4)]:
        assert watched(beat(10.0), beat(10.0 + gap)).state(20.0).missing_total == missing, gap


def test_gap_is_counted_in_intervals() -> None:
    assert watched(beat(0.0), beat(30.0), heartbeat_interval="10s").state(40.0).missing_total == 2


def test_gaps_are_counted_per_emitter() -> None:
    beats = [beat(at / 2, "us" if at % 2 else "ap") for at in range(20)]
    found = watched(*beats).state(10.0)
    assert (found.received_total, found.missing_total, found.newest_at) == (20, 0, 9.5)


def test_replayed_heartbeats_set_age_but_are_not_counted() -> None:
    tracker = watched(beat(5.0, replayed=True), beat(9.0, replayed=True))
    assert tracker.state(10.0) == HeartbeatState(
        present=True, newest_at=9.0, arrived_at=9.0, age_seconds=1.0
    )
    assert sum(tracker.latency().counts) == 0
    tracker.observe(beat(13.0))
    assert tracker.state(13.0).missing_total == 3
    assert tracker.state(13.0).received_total == 1


def test_heartbeat_out_of_order_does_not_change_age_or_gaps() -> None:
    found = watched(beat(10.0), beat(12.0), beat(11.0), beat(13.0)).state(13.0)
    assert (found.newest_at, found.missing_total, found.received_total) == (13.0, 1, 4)


def test_latency_counter_puts_negative_latency_in_first_bucket() -> None:
    counter = LatencyCounter()
    counter.add([-3.0, LATENCY_BUCKETS[0], LATENCY_BUCKETS[-1], LATENCY_BUCKETS[-1] + 1])
    found = counter.read()
    assert (found.counts[0], found.counts[-2], found.counts[-1]) == (2, 1, 1)
    assert found.total_seconds == LATENCY_BUCKETS[0] + 2 * LATENCY_BUCKETS[-1] - 2.0
    counter.add([1.0])
    assert sum(found.counts) == 4
