"""Positions and losses after the source was truncated or its topic re-created."""

from flow_observations import Scene, flow_config, lost_records, past_poll
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.config.exporter_settings import CanaryCarrier, Isolation
from mm2slo_core.indicators.flow_state import FlowStateName, PartitionProgress
from mm2slo_core.offset_translation import PositionQuality
from mm2slo_core.records.timeline_record import PollTimes
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.flow_observation import NewestSync, TailProbe
from mm2slo_exporter.readers.probe_reader import is_answered
from mm2slo_exporter.service.flow_runner import probes_in_use, wanted_probes
from mm2slo_exporter.state.flow_tracker import FlowTracker

ORDERS = TopicPartition("orders", 0)
BOUNDED, LIVE = PositionQuality.BOUNDED, PositionQuality.LIVE
COMMITTED, SOURCE_RESET = PositionQuality.COMMITTED, PositionQuality.SOURCE_RESET
FLUSH = 10.0


def tracker() -> FlowTracker:
    return FlowTracker(
        flow_config(offset_flush_interval=f"{FLUSH:.0f}s"),
        carrier=CanaryCarrier.OFF,
        shared_target=False,
        started_at=0.0,
    )


class Replicated:
    """A partition replicated up to 100, read twice."""

    def __init__(self) -> None:
        self.scene, self.tracker = Scene(), tracker()
        self.log = self.scene.add("orders")
        self.log.live(100, 100)
        self.log.committed = 99
        self.at = 100.0
        for _ in range(3):
            self.read_id("first")
            self.look()

    def read_id(self, topic_id: str) -> None:
        self.scene.source["topic_ids"] = {"orders": topic_id}

    def look(self) -> tuple[int | None, PositionQuality | None, int | None]:
        """Position, quality and lag 5 s later."""
        self.at += 5.0
        self.report = self.tracker.update(self.scene.look(self.at))
        found = self.report.topics[0].partitions[0]
        return found.next_offset, found.quality, found.lag_records

    def copy(self, *, synced: tuple[int, int], end: int, target_end: int) -> None:
        """Set the newest sync and both ends."""
        self.log.sync = NewestSync(*synced, self.at)
        self.log.end, self.log.target_end = end, target_end

    @property
    def lost(self) -> int:
        return lost_records(self.report)

    @property
    def copied(self) -> int:
        return self.report.totals.replicated_records_total


def test_truncated_source_has_no_lag_until_new_records_come() -> None:
    one = Replicated()
    one.log.end = 80
    for _ in range(20):
        assert one.look() == (80, BOUNDED, 0)
    assert one.report.state is FlowStateName.IDLE
    one.log.end = 86
    assert one.look() == (80, BOUNDED, 6)
    # The commit of the old log is still there, beyond the new end.
    one.copy(synced=(80, 100), end=86, target_end=104)
    assert one.look() == (84, LIVE, 2)
    one.log.committed = 83
    one.copy(synced=(80, 100), end=86, target_end=106)
    assert one.look() == (86, LIVE, 0)
    assert (one.lost, one.copied) == (0, 6)


def test_settled_log_is_tracked_like_any_other() -> None:
    one = Replicated()
    one.log.end = 80
    one.look()
    one.copy(synced=(80, 100), end=90, target_end=110)
    one.log.committed = 85
    for _ in range(4):
        assert one.look() == (90, LIVE, 0)
    one.scene.target_readable = False
    assert one.look() == (90, PositionQuality.STALE, 0)
    one.scene.target_readable = True
    assert one.look() == (90, LIVE, 0)
    assert one.copied == 10
    # Truncated and grown again between two polls.
    one.log.committed = 120
    one.log.end = 100
    assert one.look() == (0, SOURCE_RESET, 100)


def test_commit_alone_ends_bounded_position() -> None:
    one = Replicated()
    one.log.end = 80
    one.look()
    one.log.end, one.log.target_end, one.log.committed = 86, 105, 84
    assert one.look() == (85, COMMITTED, 1)


def test_position_is_bounded_by_lowest_end_and_by_old_position() -> None:
    one = Replicated()
    one.log.end = 150
    one.look()
    one.log.end = 120
    assert one.look() == (100, BOUNDED, 20)
    one.log.end = 70
    assert one.look() == (70, BOUNDED, 0)
    one.log.end = 90
    assert one.look() == (70, BOUNDED, 20)


def test_mirrormaker_restarted_with_commit_beyond_end_reads_again_from_log_start() -> None:
    one = Replicated()
    one.log.end = 80
    one.look()
    one.copy(synced=(0, 100), end=80, target_end=130)
    assert one.look() == (30, LIVE, 50)
    one.copy(synced=(0, 100), end=80, target_end=180)
    one.log.committed = 79
    assert one.look() == (80, LIVE, 0)
    for _ in range(5):
        one.look()
    assert one.lost == 0


def test_late_commit_of_old_log_is_not_a_position() -> None:
    one = Replicated()
    one.log.committed = 90
    one.look()
    one.log.end = 80
    one.look()
    one.log.committed = 99
    assert one.look() == (80, BOUNDED, 0)


def test_records_skipped_after_truncation_are_lost() -> None:
    one = Replicated()
    one.log.end = 80
    one.look()
    # MirrorMaker 2 is stopped; the new log outgrows its commit, at which it then resumes.
    one.log.end = 120
    assert one.look() == (80, BOUNDED, 40)
    one.copy(synced=(100, 100), end=120, target_end=110)
    assert one.look() == (110, LIVE, 10)
    assert one.lost == 0  # not yet confirmed
    one.copy(synced=(100, 100), end=120, target_end=120)
    one.look()
    assert one.look() == (120, LIVE, 0)
    assert (one.lost, one.copied) == (20, 20)


def test_recreated_topic_that_ends_below_old_offset_is_read_from_its_start() -> None:
    one = Replicated()
    one.read_id("second")
    one.log.end = 30
    assert one.look() == (0, SOURCE_RESET, 30)
    one.copy(synced=(0, 100), end=30, target_end=130)
    assert one.look() == (30, LIVE, 0)
    for _ in range(5):
        one.look()
    assert (one.lost, one.copied) == (0, 30)


def test_recreated_topic_that_outgrew_old_commit_has_lost_the_records_below() -> None:
    one = Replicated()
    one.read_id("second")
    one.log.end = 150
    assert one.look() == (100, BOUNDED, 50)
    one.copy(synced=(100, 100), end=150, target_end=120)
    assert one.look() == (120, LIVE, 30)
    one.copy(synced=(100, 100), end=150, target_end=150)
    one.look()
    assert one.lost == 0
    one.look()
    assert (one.lost, one.copied) == (100, 50)
    for _ in range(5):
        one.look()
    assert one.lost == 100


def test_stopped_flow_does_not_advance_when_its_recreated_topic_outgrows_the_old_offset() -> None:
    one = Replicated()
    one.read_id("second")
    one.log.end = 30
    for _ in range(20):
        assert one.look() == (0, SOURCE_RESET, 30)
    assert one.report.state is FlowStateName.STOPPED
    one.log.end = 150
    for _ in range(3):
        assert one.look() == (100, BOUNDED, 50)
        assert one.report.state is FlowStateName.STOPPED
        assert one.report.topics[0].partitions[0].progress is PartitionProgress.STALLED
    one.copy(synced=(100, 100), end=150, target_end=120)
    assert one.look() == (120, LIVE, 30)
    assert (one.report.state.value, one.copied) == ("running", 20)


def test_recreated_topic_seen_as_truncation_first_keeps_its_old_commit() -> None:
    one = Replicated()
    one.log.end = 5
    assert one.look() == (5, BOUNDED, 0)
    one.read_id("second")
    assert one.look() == (0, SOURCE_RESET, 5)
    one.log.end = 150
    assert one.look() == (100, BOUNDED, 50)


def test_copies_of_a_reread_log_before_its_id_was_read_are_no_loss() -> None:
    one = Replicated()
    # The new topic is read from its start, and outgrew the old offset, before its id is read.
    for copies in (50, 120, 140):
        one.copy(synced=(0, 100), end=140, target_end=100 + copies)
        one.look()
    one.read_id("second")
    for _ in range(3):
        one.look()
    one.copy(synced=(0, 100), end=150, target_end=250)
    for _ in range(5):
        one.look()
    assert one.lost == 0


def test_truncation_before_a_restart_of_the_exporter_is_restored() -> None:
    one = Replicated()
    one.tracker = tracker()
    one.log.end = 80
    assert one.look() == (0, SOURCE_RESET, 80)
    one.tracker.topics.add_history(
        {
            "orders": [
                past_poll("first", end, PollTimes(at, at + 0.1))
                for at, end in ((60.0, 80), (40.0, 100))
            ]
        }
    )
    assert one.look() == (80, BOUNDED, 0)
    assert one.copied == 0


def test_offset_beyond_end_without_known_truncation_is_a_reset() -> None:
    one = Replicated()
    one.tracker = tracker()
    one.log.end = 80
    assert one.look() == (0, SOURCE_RESET, 80)


def test_empty_offsets_of_old_log_are_not_empty_in_new_one() -> None:
    one = Replicated()
    one.log.end = 110
    one.log.probe = TailProbe(100, 110, None, None)
    assert one.look() == (110, LIVE, 0)
    one.log.end = 100
    assert one.look() == (100, BOUNDED, 0)
    one.log.end = 110
    assert one.look() == (100, BOUNDED, 10)
    wanted = wanted_probes(one.report, Isolation.READ_UNCOMMITTED)[ORDERS]
    assert not is_answered(one.log.probe, wanted)
    assert probes_in_use(one.report, {ORDERS: one.log.probe}) == frozenset()
    one.log.probe = TailProbe(100, 110, 103, 1.0, wanted.log)
    assert one.look() == (103, BOUNDED, 7)


class MirrorMaker:
    """The truth: one source log, MirrorMaker 2's copies, and records that it skipped."""

    def __init__(self) -> None:
        self.is_copied = [True] * 100
        self.position: int | None = 100
        self.committed = 99
        self.copies = 100
        self.sync = NewestSync(0, 0, 0.0)
        self.skipped = 0
        self.synced_next: int | None = 100

    def produce(self, count: int) -> None:
        self.is_copied += [False] * count

    def truncate(self, count: int) -> None:
        del self.is_copied[max(0, len(self.is_copied) - count) :]
        if self.position is not None:
            self.position = min(self.position, len(self.is_copied))

    def recreate(self, count: int) -> None:
        """A running consumer sees the new log when it has *count* records."""
        self.is_copied = [False] * count
        if self.position is not None and self.position > count:
            self.position = 0

    def copy(self, count: int, at: float) -> None:
        if self.position is None:
            return
        for offset in range(self.position, min(self.position + count, len(self.is_copied))):
            if self.synced_next != offset:
                self.sync = NewestSync(offset, self.copies, at)
            self.synced_next = offset + 1
            self.skipped += self.is_copied[:offset].count(False)
            self.is_copied[: offset + 1] = [True] * (offset + 1)
            self.copies += 1
            self.position = offset + 1

    def commit(self) -> None:
        if self.position and self.synced_next == self.position:
            self.committed = self.position - 1

    def stop(self) -> None:
        self.position = self.synced_next = None

    def start(self) -> None:
        if self.position is None:
            resumed = self.committed + 1
            self.position = resumed if resumed <= len(self.is_copied) else 0


STEPS = ["produce", "copy", "truncate", "recreate", "commit", "stop", "start", "read id", "poll"]


@given(st.lists(st.tuples(st.sampled_from([*STEPS, "poll", "copy"]), st.integers(1, 150))))
def test_counted_skips_never_exceed_true_skips(steps: list[tuple[str, int]]) -> None:
    truth, one = MirrorMaker(), Replicated()
    topic_id = 0
    for name, count in steps:
        match name:
            case "copy":
                truth.copy(count, one.at)
            case "recreate":
                topic_id += 1
                truth.recreate(count)
            case "produce" | "truncate":
                getattr(truth, name)(count)
            case "commit" | "stop" | "start":
                getattr(truth, name)()
            case "read id":
                one.read_id(str(topic_id) if topic_id else "first")
            case _:
                one.log.end, one.log.target_end = len(truth.is_copied), truth.copies
                one.log.sync, one.log.committed = truth.sync, truth.committed
                before = one.lost
                one.look()
                assert before <= one.lost <= truth.skipped
