"""A partition goes on from what an earlier process wrote to the timeline."""

from __future__ import annotations

import pytest

from mm2slo_core.lag import LagOrigin
from mm2slo_core.timeline_record import PollTimes
from mm2slo_exporter.state.partition import FlowRules, PartitionReading, PartitionTracker

RULES = FlowRules(
    stall_after=30.0,
    flush_interval=60.0,
    exactly_once=False,
    shared_target=False,
    reads_committed=False,
)


def age(tracker: PartitionTracker, at: float, end: int) -> tuple[float | None, LagOrigin]:
    """The age of record 10, which waits while the position stands there."""
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
        # Seen by the poll at 155, and not yet by the one at 150 that found nothing to write.
        (PollTimes(154.9, 155.0, 149.9, 150.0), 149.9),
        # A new writer cannot tell: any time since the record before.
        (PollTimes(154.9, 155.0), 99.9),
        # The preceding poll of one writer is older than the record of another.
        (PollTimes(154.9, 155.0, 94.9, 95.0), 99.9),
    ],
    ids=["same-writer", "new-writer", "other-writer"],
)
def test_the_age_of_what_waited_before_a_restart(times: PollTimes, earliest: float) -> None:
    tracker = PartitionTracker(0)
    tracker.remember_arrival(10, PollTimes(99.9, 100.0))
    tracker.remember_arrival(11, times)
    seconds, origin = age(tracker, 200.0, 11)
    assert origin is LagOrigin.HISTORY
    # One record in the bracket: an even rate puts it at the start.
    assert seconds == pytest.approx(200.0 - earliest)


def test_what_came_while_no_process_ran_is_bracketed_by_the_last_record_and_the_first_poll() -> (
    None
):
    tracker = PartitionTracker(0)
    tracker.remember_arrival(10, PollTimes(99.9, 100.0))
    seconds, origin = age(tracker, 200.0, 20)
    assert origin is LagOrigin.HISTORY
    assert seconds == pytest.approx(200.0 - 99.9)
