"""Arrival polls from timeline records."""

from dataclasses import replace

from mm2slo_audit.scope.arrival_polls import (
    PartitionTimeline,
    Poll,
    TopicTimeline,
    collect_arrival_polls,
    merge_polls,
)
from mm2slo_core.audit.audit_scope import (
    ArrivalPoll,
    FlowScope,
    SourcePartition,
    TargetPartition,
    UnitScope,
    Window,
)
from mm2slo_core.audit.fingerprint import Identity
from mm2slo_core.records.timeline_record import PollTimes, Side, WatermarkRecord
from mm2slo_core.topology import Flow

US_EU, AP_EU = Flow("us", "eu"), Flow("ap", "eu")


def record(
    end: int, at: float, previous: float | None = None, *, topic_id: str = "one", start: int = 0,
    committed: int | None = None, sync: int | None = None,
) -> WatermarkRecord:  # fmt: skip
    return WatermarkRecord(
        flow=US_EU,
        side=Side.SOURCE,
        topic="orders",
        topic_id=topic_id,
        isolation="read_uncommitted",
        times=PollTimes(at, at + 0.02, previous, None if previous is None else previous + 0.02),
        partitions=(0,),
        ends=(end,),
        log_starts=(start,),
        committed=() if committed is None else (committed,),
        sync_upstreams=() if sync is None else (sync,),
    )


def timeline(*records: WatermarkRecord) -> TopicTimeline:
    found = TopicTimeline()
    for each in records:
        found.add(each)
    return found


def test_topic_timeline_skips_polls_without_new_end() -> None:
    found_timeline = timeline(
        record(10, 100.0), record(10, 160.0, 155.0), record(25, 200.0, 195.0), record(25, 260.0)
    )
    assert found_timeline.partitions[0].polls == [
        Poll(10, None, 100_020),
        Poll(25, 195_000, 200_020),
    ]


def test_topic_timeline_first_record_of_writer_uses_previous_record() -> None:
    found_timeline = timeline(record(10, 100.0, 95.0), record(30, 150.0))
    assert found_timeline.partitions[0].polls[-1] == Poll(30, 100_000, 150_020)


def test_topic_timeline_new_topic_id_drops_earlier_polls() -> None:
    found_timeline = timeline(record(10, 100.0), record(4, 160.0, 155.0, topic_id="two"))
    assert found_timeline.partitions[0].polls == [Poll(4, 155_000, 160_020)]
    assert found_timeline.recreated_between == (100.0, 160.02)
    assert timeline(record(10, 100.0)).recreated_between is None


def test_topic_timeline_truncation_drops_polls_beyond_it() -> None:
    found_timeline = timeline(record(10, 100.0), record(20, 110.0, 105.0), record(15, 120.0, 115.0))
    assert found_timeline.partitions[0].polls == [
        Poll(10, None, 100_020),
        Poll(15, 115_000, 120_020),
    ]


def test_topic_timeline_keeps_changes_of_positions_and_log_starts() -> None:
    found_timeline = timeline(
        record(10, 100.0, committed=4, sync=6),
        record(10, 160.0, committed=4, sync=6),
        record(20, 170.0, start=5, committed=9, sync=6),
    )
    held = found_timeline.partitions[0]
    assert held.positions == [(100.02, 7), (170.02, 10)]
    assert held.starts == [(100.02, 0), (170.02, 5)]


def arrived(end: int, count: int, at: float, previous: float) -> WatermarkRecord:
    return replace(record(end, at, previous), log_starts=(), arrived=(count,))


def test_arrivals_of_one_record_lie_between_its_two_polls() -> None:
    found = timeline(arrived(12, 2, 100.25, 100.0)).partitions[0].polls
    assert found == [Poll(10, None, 100_020), Poll(12, 100_000, 100_270)]


def test_arrivals_after_missing_records_have_brackets_up_to_the_poll_before() -> None:
    # Offsets 12 to 19 were in a record that was not written.
    found = timeline(arrived(12, 2, 100.25, 100.0), arrived(23, 3, 110.25, 110.0))
    assert found.partitions[0].polls[-3:] == [
        Poll(12, 100_000, 100_270),
        Poll(20, 100_250, 110_020),
        Poll(23, 110_000, 110_270),
    ]


def test_merge_polls_intersects_brackets() -> None:
    slow = [Poll(10, None, 5_000), Poll(20, 5_000, 10_000), Poll(40, 10_000, 15_000)]
    fast = [Poll(10, None, 4_000), Poll(12, 6_000, 6_300), Poll(30, 9_900, 10_200)]
    assert merge_polls([slow, fast]) == [
        Poll(10, None, 4_000),
        Poll(12, 6_000, 6_300),
        Poll(20, 9_900, 10_000),
        Poll(30, 10_000, 10_200),
        Poll(40, 10_000, 15_000),
    ]
    assert merge_polls([]) == []


def test_merge_polls_of_contradicting_writers_keeps_the_earlier_one() -> None:
    ahead, behind = [Poll(10, 9_000, 9_300)], [Poll(10, 8_000, 8_300)]
    assert merge_polls([ahead, behind]) == [Poll(10, 8_000, 8_300)]


def test_join_polls_keeps_brackets_as_wide_as_allowed() -> None:
    found = timeline(*(arrived(10 + n, 1, 100 + n / 4, 99.75 + n / 4) for n in range(9)))
    found.join_polls(600)
    assert found.count_polls() == 6
    assert found.partitions[0].polls == [
        Poll(9, None, 99_770),
        *(Poll(end, at, at + 520) for end, at in ((11, 99_750), (13, 100_250), (15, 100_750))),
        Poll(17, 101_250, 101_770),
        Poll(18, 101_750, 102_020),
    ]
    found.add(arrived(19, 1, 102.25, 102.0))
    assert found.partitions[0].polls[-1] == Poll(19, 101_750, 102_270)


def unit() -> UnitScope:
    def source(read_from: int, end: int) -> SourcePartition:
        return SourcePartition(0, 0, read_from, end, None)

    return UnitScope(
        index=3,
        target_topic="orders",
        flows=(
            FlowScope(AP_EU, "orders", (source(0, 5),)),
            FlowScope(US_EU, "orders", (source(12, 22),)),
        ),
        partitions=(TargetPartition(0, 0, 0, 40),),
        window=Window(0, 1),
        identity=Identity(),
    )


def test_collect_arrival_polls_covers_only_read_offsets() -> None:
    held = PartitionTimeline()
    for end in (10, 20, 30, 40):
        held.add_poll(end, end, end, None)
    found_timeline = TopicTimeline()
    found_timeline.partitions[0] = held
    found = collect_arrival_polls([unit()], {(US_EU, Side.SOURCE, "orders"): found_timeline}, {})
    assert found == (
        ArrivalPoll(3, 1, Side.SOURCE, 0, 20, 10_000, 20_000),
        ArrivalPoll(3, 1, Side.SOURCE, 0, 30, 20_000, 30_000),
    )


def test_collect_arrival_polls_merges_polls_of_shared_target() -> None:
    found = {}
    for flow, ends in ((US_EU, (10, 30)), (AP_EU, (20, 40))):
        found_timeline = TopicTimeline()
        for end in ends:
            found_timeline.partitions[0].add_poll(end, end, end, end - 5)
        found[flow, Side.TARGET, "orders"] = found_timeline
    polls = collect_arrival_polls([unit()], found, {})
    assert [(poll.flow, poll.end, poll.earliest, poll.latest) for poll in polls] == [
        (0, 10, 5_000, 10_000),
        (0, 20, 15_000, 20_000),
        (0, 30, 25_000, 30_000),
        (0, 40, 35_000, 40_000),
    ]


def test_collect_arrival_polls_narrows_brackets_by_the_arrivals_topic() -> None:
    key = (US_EU, Side.TARGET, "orders")
    polls = {key: timeline(record(10, 95.0), record(20, 100.0, 95.0))}
    arrivals = {key: timeline(arrived(20, 5, 98.25, 98.0))}
    found = collect_arrival_polls([unit()], polls, arrivals)
    assert [(poll.end, poll.earliest, poll.latest) for poll in found] == [
        (10, None, 95_020),
        (15, 95_000, 98_020),
        (20, 98_000, 98_270),
    ]


def test_collect_arrival_polls_ignores_arrivals_of_an_earlier_topic() -> None:
    key = (US_EU, Side.TARGET, "orders")
    polls = {key: timeline(record(20, 100.0, 95.0, topic_id="two"))}
    arrivals = {key: timeline(arrived(15, 5, 98.25, 98.0))}
    found = collect_arrival_polls([unit()], polls, arrivals)
    assert [(poll.end, poll.earliest, poll.latest) for poll in found] == [(20, 95_000, 100_020)]
