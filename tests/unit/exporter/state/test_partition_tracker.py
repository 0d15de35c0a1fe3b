"""The state of one partition over rounds in which a side may be unreadable."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.indicators.certain_loss import CertainLoss, SavedLoss
from mm2slo_core.indicators.flow_state import PartitionProgress
from mm2slo_core.indicators.replication_lag import (
    Headroom,
    LagOrigin,
    RetentionLimit,
    RetentionPolicy,
)
from mm2slo_core.offset_translation import PositionQuality
from mm2slo_exporter.flow_observation import NewestSync, TailProbe
from mm2slo_exporter.state.flow_report import PartitionState
from mm2slo_exporter.state.partition_reading import FlowRules, PartitionReading
from mm2slo_exporter.state.partition_tracker import PartitionTracker

RULES = FlowRules(
    stall_after=30.0,
    flush_interval=60.0,
    exactly_once=False,
    shared_target=False,
    reads_committed=False,
)
HOUR = RetentionPolicy(seconds=3600.0, size_bytes=None)


def near(seconds: float, rel: float = 1e-9) -> Any:
    """A time within floating point precision."""
    return pytest.approx(seconds, rel=rel)


def reading(position: int | None, end: int | None, **changes: Any) -> PartitionReading:
    """A partition replicated one for one up to *position*; None: MirrorMaker 2 has not started."""
    whole = PartitionReading(
        source_end=end,
        source_start=0,
        stable_end=None,
        target_end=position,
        target_start=0,
        committed=None,
        sync=None if position is None else NewestSync(0, 0, 5.0),
        probe=None,
    )
    return whole._replace(**changes)


class Partition:
    """A tracker, read in rounds."""

    def __init__(self, rules: FlowRules = RULES, policy: RetentionPolicy | None = HOUR) -> None:
        self.tracker = PartitionTracker(3)
        self.rules = rules
        self.policy = policy

    def look(self, at: float, seen: PartitionReading) -> PartitionState:
        if seen.source_end is not None:
            self.tracker.observe_source_end(seen.source_end, at - 0.2, at - 0.1)
        return self.tracker.judge(at, seen, self.rules, self.policy)


def test_state_of_partition_with_lag() -> None:
    one = Partition()
    one.look(100.0, reading(900, 1000, target_end=1000, source_start=40))
    found = one.look(105.0, reading(1000, 1010, target_start=7, source_start=40, stable_end=1004))
    assert found == PartitionState(
        partition=3,
        source_start=40,
        source_end=1010,
        target_start=7,
        target_end=1000,
        next_offset=1000,
        quality=PositionQuality.LIVE,
        lag_records=10,
        # Arrived between the preceding request and this answer; the first record at its start.
        lag_seconds=near(105.0 - 99.8),
        lag_origin=LagOrigin.HISTORY,
        progress=PartitionProgress.MOVING,
        progressed_at=100.0,
        headroom=Headroom(960, near(3600.0 - 5.2), RetentionLimit.TIME),
        sync_upstream=0,
        sync_at=5.0,
        open_transaction_records=6,
        backlog_since=105.0,
    )
    assert one.tracker.source_total == 10
    assert one.tracker.replicated_total == 0


def test_caught_up_partition_is_idle_without_lag() -> None:
    found = Partition().look(100.0, reading(50, 50))
    assert (found.lag_records, found.lag_seconds) == (0, 0.0)
    assert (found.lag_origin, found.progress) == (LagOrigin.NO_BACKLOG, PartitionProgress.IDLE)
    assert found.headroom == Headroom(50, 3600.0, RetentionLimit.TIME)


def test_totals_count_appended_and_replicated_records() -> None:
    one = Partition()
    for at, position, end in [(0.0, 100, 100), (5.0, 110, 150), (10.0, 150, 150), (15.0, 150, 150)]:
        one.look(at, reading(position, end))
    assert (one.tracker.source_total, one.tracker.replicated_total) == (50, 50)


def test_partition_without_source_has_target_and_sync_only() -> None:
    one = Partition()
    one.look(100.0, reading(40, 50))
    found = one.look(105.0, reading(45, None, source_start=None))
    assert (found.target_end, found.sync_at) == (45, 5.0)
    figures = (found.next_offset, found.quality, found.lag_records, found.lag_seconds)
    assert figures == (None, None, None, None)
    assert found.headroom is None
    assert (found.progress, found.lag_origin) == (PartitionProgress.UNKNOWN, LagOrigin.ABSENT)


AWAY: dict[str, Any] = {"target_end": None, "target_start": None, "target_readable": False}


def test_lag_seconds_after_position_went_back_to_commit() -> None:
    here = Partition()
    here.look(99.0, reading(10, 10, committed=9))
    for second in range(100, 104):
        end = 20 + 10 * (second - 100)
        assert here.look(float(second), reading(end, end, committed=9)).lag_seconds == 0.0
    # After a crash: ten records were replicated twice, and their offset sync is not read yet.
    killed = here.look(104.0, reading(70, 60, committed=19))
    assert (killed.next_offset, killed.quality) == (20, PositionQuality.FOREIGN_WRITER)
    assert (killed.lag_records, killed.lag_origin) == (40, LagOrigin.HISTORY)
    # Offset 20 arrived between the polls of 100 and 101, and is the first one kept of them.
    assert killed.lag_seconds is not None
    assert 104.0 - 100.9 <= killed.lag_seconds <= 104.0 - 99.8


def test_position_while_target_is_unreadable_is_stale() -> None:
    one = Partition()
    one.look(100.0, reading(40, 50, committed=19))
    found = one.look(105.0, reading(40, 60, committed=19, **AWAY))
    assert (found.next_offset, found.quality) == (40, PositionQuality.STALE)
    assert found.lag_records == 20
    assert one.tracker.replicated_total == 0
    back = one.look(110.0, reading(60, 60, committed=19))
    assert (back.lag_records, one.tracker.replicated_total) == (0, 20)


def test_unreadable_target_causes_no_stall_and_no_loss() -> None:
    one = Partition()
    one.look(0.0, reading(40, 50))
    for at in range(5, 1000, 5):
        found = one.look(float(at), reading(40, 5000, source_start=min(at, 500), **AWAY))
    assert found.progress is PartitionProgress.UNKNOWN
    assert found.headroom == Headroom(-460, 0.0, RetentionLimit.PASSED)
    assert one.tracker.loss.pending == 0
    one.look(1005.0, reading(5000, 5000, source_start=500))
    one.look(1010.0, reading(5000, 5000, source_start=500))
    assert one.tracker.loss.pending == 0


def test_source_truncated_while_target_is_unreadable_has_bounded_position() -> None:
    one = Partition()
    one.look(0.0, reading(40, 50, committed=39))
    found = one.look(5.0, reading(40, 10, committed=39, **AWAY))
    assert (found.next_offset, found.quality) == (10, PositionQuality.BOUNDED)
    assert found.lag_records == 0
    assert one.tracker.truncations == 1


def test_stale_position_beyond_end_is_replaced() -> None:
    one = Partition()
    one.look(0.0, reading(40, 50, committed=9))
    found = one.look(5.0, reading(40, 20, committed=9, **AWAY))
    assert (found.next_offset, found.quality) == (20, PositionQuality.BOUNDED)
    assert found.lag_records == 0


def test_truncation_is_counted_once_and_keeps_totals() -> None:
    one = Partition()
    for at, end in [(0.0, 100), (5.0, 30), (10.0, 30), (15.0, 40)]:
        one.look(at, reading(30, end, target_end=30))
    assert one.tracker.truncations == 1
    assert one.tracker.source_total == 10


def test_recreated_source_resets_position_and_keeps_totals() -> None:
    one = Partition()
    one.look(0.0, reading(90, 90))
    one.look(5.0, reading(100, 100))
    one.tracker.source_recreated()
    found = one.look(10.0, reading(3, 4))
    assert (found.next_offset, found.lag_records) == (3, 1)
    assert (one.tracker.source_total, one.tracker.replicated_total) == (10, 10)
    assert (one.tracker.truncations, one.tracker.loss.pending) == (0, 0)


def test_retention_does_not_advance_position_of_unstarted_flow() -> None:
    one = Partition()
    one.look(0.0, reading(None, 1000))
    for at in range(5, 40, 5):
        found = one.look(float(at), reading(None, 1000, source_start=at))
    assert found.quality is PositionQuality.NOT_STARTED
    assert (found.next_offset, found.lag_records) == (35, 965)
    assert found.progress is PartitionProgress.MOVING
    late = one.look(200.0, reading(None, 1000, source_start=900))
    assert late.progress is PartitionProgress.STALLED
    assert one.tracker.replicated_total == 0
    assert one.tracker.loss.pending == 0


def test_first_position_counts_records_before_it_as_replicated() -> None:
    one = Partition()
    one.look(0.0, reading(None, 100))
    one.look(5.0, reading(60, 100))
    assert one.tracker.replicated_total == 60


@pytest.mark.parametrize(
    ("probe", "found"),
    [
        (TailProbe(40, 50, None, None), (50, 0, 0.0, LagOrigin.NO_BACKLOG)),
        (TailProbe(40, 50, 40, 77.0), (40, 10, 23.0, LagOrigin.RECORD)),
        (TailProbe(40, 50, 44, 77.0), (44, 6, 23.0, LagOrigin.RECORD)),
        (TailProbe(30, 50, 33, 1.0), (40, 10, None, LagOrigin.ABSENT)),
        (TailProbe(30, 45, None, None), (45, 5, None, LagOrigin.ABSENT)),
        (TailProbe(41, 50, None, None), (40, 10, None, LagOrigin.ABSENT)),
        (TailProbe(10, 39, None, None), (40, 10, None, LagOrigin.ABSENT)),
    ],
    ids=[
        "markers only",
        "record at position",
        "record after a gap",
        "record replicated meanwhile",
        "empty up to 45",
        "probe starts after position",
        "probe ends before position",
    ],
)
def test_offsets_without_records_are_not_lag(
    probe: TailProbe, found: tuple[int, int, float | None, LagOrigin]
) -> None:
    state = Partition().look(100.0, reading(40, 50, probe=probe))
    figures = (state.next_offset, state.lag_records, state.lag_seconds, state.lag_origin)
    assert figures == found


def test_backlog_without_progress_is_stalled_after_timeout() -> None:
    one = Partition()
    seen = [one.look(at, reading(40, 50)).progress for at in (0.0, 29.9, 30.0)]
    assert seen == [PartitionProgress.MOVING, PartitionProgress.MOVING, PartitionProgress.STALLED]


def test_stall_timeout_of_committed_position_includes_flush_interval() -> None:
    one = Partition()
    by_commit = reading(None, 50, committed=39, target_end=5)
    seen = [one.look(at, by_commit).progress for at in (0.0, 89.9, 90.0)]
    assert seen == [PartitionProgress.MOVING, PartitionProgress.MOVING, PartitionProgress.STALLED]


def test_records_removed_by_retention_are_lost_once_confirmed() -> None:
    one = Partition()
    one.look(0.0, reading(40, 40))
    one.look(5.0, reading(40, 100))
    first = one.look(10.0, reading(40, 100, source_start=70))
    assert (first.lag_records, first.headroom) == (30, Headroom(-30, 0.0, RetentionLimit.PASSED))
    assert one.tracker.loss.pending == 0
    second = one.look(15.0, reading(40, 100, source_start=70))
    assert one.tracker.loss.pending == 30
    assert second.lag_seconds == near(15.0 - -0.2)
    one.look(20.0, reading(40, 100, source_start=70))
    assert one.tracker.loss.counted == SavedLoss(30, 70)


def test_restored_losses_are_continued() -> None:
    one = Partition()
    one.tracker.loss.read_saved(SavedLoss(30, 70), same_log=True)
    for at in (0.0, 5.0, 10.0):
        one.look(at, reading(40, 100, source_start=80))
    assert one.tracker.loss.counted.total == 40
    assert one.tracker.loss.pending == 10


def test_lag_of_read_committed_flow_excludes_open_transaction() -> None:
    one = Partition(replace(RULES, reads_committed=True))
    found = one.look(0.0, reading(40, 100, stable_end=40))
    assert (found.lag_records, found.open_transaction_records) == (0, 60)
    assert one.look(5.0, reading(40, 100, stable_end=None)).lag_records is None


@pytest.mark.parametrize(("stamped_before", "age"), [(3000.0, 3300.0), (0.0, 305.0)])
def test_headroom_by_time_counts_from_record_timestamp_if_it_is_older_than_arrival(
    stamped_before: float, age: float
) -> None:
    one = Partition()
    one.look(100.0, reading(10, 10))
    one.look(105.0, reading(10, 1010))
    assert one.look(400.0, reading(10, 1010)).headroom == Headroom(
        10, near(3600.0 - 300.2), RetentionLimit.TIME
    )
    probe = TailProbe(10, 1010, 10, 105.0 - stamped_before)
    found = one.look(405.0, reading(10, 1010, probe=probe))
    assert found.lag_origin is LagOrigin.HISTORY
    assert found.headroom == Headroom(10, near(3600.0 - age, 1e-3), RetentionLimit.TIME)


def test_headroom_by_size_follows_production_rate() -> None:
    one = Partition(policy=RetentionPolicy(seconds=None, size_bytes=1_000_000))
    assert one.look(0.0, reading(100, 100)).headroom == Headroom(100, None, RetentionLimit.UNKNOWN)
    found = one.look(10.0, reading(200, 200)).headroom
    assert found == Headroom(200, near(200 / 10, rel=0.02), RetentionLimit.SIZE)
    one.tracker.source_recreated()
    found = one.look(20.0, reading(10, 10)).headroom
    assert found == Headroom(10, None, RetentionLimit.UNKNOWN)
    one.look(30.0, reading(20, 20))
    one.look(40.0, reading(5, 5))
    found = one.look(50.0, reading(15, 15, sync=NewestSync(0, 0, 41.0))).headroom
    assert found is not None
    assert (found.limit, found.records) == (RetentionLimit.SIZE, 15)


def test_same_source_end_is_counted_once() -> None:
    tracker = PartitionTracker(0)
    for end, requested in [(50, 1.0), (60, 2.0), (60, 2.0), (60, 2.0)]:
        tracker.observe_source_end(end, requested, requested + 0.1)
    assert tracker.source_total == 10


def test_lag_seconds_of_fully_expired_backlog_grows() -> None:
    one = Partition()
    one.look(100.0, reading(1000, 1000))
    one.look(105.0, reading(1000, 1010))
    found = one.look(205.0, reading(1000, 1010, source_start=1010))
    assert found.lag_records == 0
    assert found.lag_seconds == near(205.0 - 99.8)


@pytest.mark.parametrize("restored_at", ["before the jump", "in its round"])
def test_losses_of_another_process_are_not_replicated_when_passed(restored_at: str) -> None:
    """40 records that the process before had counted as lost counted as replicated as well."""
    one = Partition()
    lost = SavedLoss(40, 80)
    if restored_at == "before the jump":
        one.tracker.loss.read_saved(lost, same_log=True)
    one.look(0.0, reading(40, 100, source_start=80))
    one.look(5.0, reading(40, 100, source_start=80))
    if restored_at == "in its round":
        one = Partition()
        one.look(0.0, reading(40, 100, source_start=80))
        one.tracker.loss.read_saved(lost, same_log=True)
    # MirrorMaker 2 continues at the log start; its next records are one sync apart.
    resumed = reading(50, 100, source_start=80, sync=NewestSync(80, 40, 6.0))
    assert one.look(10.0, resumed).next_offset == 90
    one.look(15.0, resumed._replace(target_end=60))
    assert one.tracker.replicated_total == 20
    assert one.tracker.loss.counted == SavedLoss(40, 100)


def test_losses_that_were_passed_before_the_restart_do_not_lower_the_replicated_records() -> None:
    one = Partition()
    one.tracker.loss.read_saved(SavedLoss(40, 80), same_log=True)
    for at, position in [(0.0, 80), (5.0, 100), (10.0, 130)]:
        one.look(at, reading(position, 150, source_start=80))
    assert one.tracker.replicated_total == 50


def test_loss_is_tracked_from_the_first_round_in_which_a_record_may_be_lost() -> None:
    one = Partition()
    for at, position in [(0.0, 10), (5.0, 20), (10.0, 30)]:
        one.look(at, reading(position, 40))
    loss_without_gap = one.tracker.found_loss
    assert loss_without_gap is None
    one.look(15.0, reading(30, 90, source_start=50))
    assert one.tracker.found_loss is not None
    one.look(20.0, reading(30, 90, source_start=50))
    assert one.tracker.loss.counted == SavedLoss(20, 50)


FEW = st.integers(0, 3)


@given(st.lists(st.tuples(FEW, FEW, FEW, st.booleans(), st.booleans()), max_size=12))
def test_loss_tracker_created_late_counts_as_one_from_the_start(
    rounds: list[tuple[int, int, int, bool, bool]],
) -> None:
    one, from_the_start = Partition(), CertainLoss()
    position = copies = 5
    start, at = 0, 0.0
    for passed, copied, removed, is_live, log_start_read in rounds:
        position, copies, start = position + passed, copies + copied, start + removed
        at += 25.0
        seen = reading(copies, 100, source_start=start, source_start_read=log_start_read)
        if is_live:
            seen = seen._replace(sync=NewestSync(position - 1, copies - 1, 5.0))
        else:
            seen = seen._replace(sync=None, committed=position - 1)
        found = one.look(at, seen)
        assert found.next_offset == position
        from_the_start.observe(
            at,
            position,
            start,
            position_period=0.0 if is_live else RULES.flush_interval,
            target_end=copies,
            log_start_read=log_start_read,
        )
    assert one.tracker.loss.counted == from_the_start.saved
