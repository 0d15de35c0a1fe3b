"""A partition restored from the timeline of an earlier process."""

import pytest

from mm2slo_core.indicators.replication_lag import LagOrigin
from mm2slo_core.records.timeline_record import PollTimes
from mm2slo_exporter.state.partition_reading import FlowRules, PartitionReading
from mm2slo_exporter.state.partition_tracker import PartitionTracker

RULES = FlowRules(
    stall_after=30.0,
    flush_interval=60.0,
    exactly_once=False,
    shared_target=False,
    reads_committed=False,
)


def age(tracker: PartitionTracker, at: float, end: int) -> tuple[float | None, LagOrigin]:
    """Lag in seconds at position 10."""
    tracker.observe_source_end(end, at - 0.1, at)
    reading = PartitionReading(
        source_end=end,
        source_start=0,
        stable_end=None,
        target_end=None,
        target_start=None,
        committed=9,
        sync=None,
        probe=None,
    )
    state = tracker.judge(at, reading, RULES, None)
    return state.lag_seconds, state.lag_origin


@pytest.mark.parametrize(
    ("times", "earliest"),
    [
        # Seen by the poll at 155, and not by the unwritten poll at 150.
        (PollTimes(154.9, 155.0, 149.9, 150.0), 149.9),
        # Unknown to a new writer: any time since the preceding record.
        (PollTimes(154.9, 155.0), 99.9),
        # The preceding poll of one writer is older than the record of another.
        (PollTimes(154.9, 155.0, 94.9, 95.0), 99.9),
    ],
    ids=["same-writer", "new-writer", "other-writer"],
)
def test_lag_seconds_after_restart_uses_restored_polls(times: PollTimes, earliest: float) -> None:
    tracker = PartitionTracker(0)
    age(tracker, 195.0, 11)
    tracker.add_past_poll(11, times)
    tracker.add_past_poll(10, PollTimes(99.9, 100.0))
    seconds, origin = age(tracker, 200.0, 11)
    assert origin is LagOrigin.HISTORY
    # One record in the bracket: a constant rate puts it at the start.
    assert seconds == pytest.approx(200.0 - earliest)


def test_arrival_while_no_process_ran_is_bracketed_by_polls() -> None:
    tracker = PartitionTracker(0)
    age(tracker, 195.0, 20)
    tracker.add_past_poll(10, PollTimes(99.9, 100.0))
    seconds, origin = age(tracker, 200.0, 20)
    assert origin is LagOrigin.HISTORY
    assert seconds == pytest.approx(200.0 - 99.9)
