"""Timeline records are written on change and name the preceding poll only if it was seen."""

from dataclasses import replace

from mm2slo_core.records.timeline_record import PollTimes, Side, WatermarkRecord
from mm2slo_core.topic_selection import TopicPair, TopicRole
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_exporter.flow_observation import ClusterView, InternalsView, Observation, OffsetsRead
from mm2slo_exporter.flow_plan import FlowPlan
from mm2slo_exporter.timeline.record_schedule import UNCHANGED_INTERVAL_SECONDS, TimelineSchedule

FLOW = Flow("us", "eu")
ORDERS = TopicPair("orders", "us.orders", TopicRole.DATA)


def poll(at: float, *ends: int) -> Observation:
    """A round of *orders* on the source, five seconds after the preceding one."""
    return Observation(
        at=at,
        plan=FlowPlan((ORDERS,)),
        source=ClusterView(topics={"orders": len(ends)}, topics_read_at=at),
        target=ClusterView(),
        internals=InternalsView(),
        source_offsets=OffsetsRead(
            ends={TopicPartition("orders", number): end for number, end in enumerate(ends)},
            requested_at=at - 0.1,
            answered_at=at,
            previous_requested_at=at - 5.1,
            previous_answered_at=at - 5.0,
        ),
        target_offsets=None,
        source_readable=True,
        target_readable=False,
    )


def written(schedule: TimelineSchedule, seen: Observation) -> list[WatermarkRecord]:
    records = list(schedule.due(seen))
    assert all(record.side is Side.SOURCE for record in records)
    return records


def test_first_record_has_no_preceding_poll() -> None:
    schedule = TimelineSchedule(FLOW)
    (first,) = written(schedule, poll(100.0, 10))
    assert first.times == PollTimes(99.9, 100.0)
    (second,) = written(schedule, poll(105.0, 11))
    assert second.times == PollTimes(104.9, 105.0, 99.9, 100.0)


def test_unchanged_topic_is_written_once_a_minute_and_after_reset() -> None:
    schedule = TimelineSchedule(FLOW)

    def count(at: float) -> int:
        return len(list(schedule.due(poll(at, 10), {"orders"})))

    times = [100.0 + 5 * number for number in range(37)]
    at = [time for time in times if count(time)]
    assert len(at) == 4
    assert at[0] == 100.0
    assert 0 < at[1] - at[0] <= UNCHANGED_INTERVAL_SECONDS
    assert [at[2] - at[1], at[3] - at[2]] == [UNCHANGED_INTERVAL_SECONDS] * 2
    schedule.reset()
    assert [count(time) for time in (285.0, 285.1)] == [1, 0]


def test_unchanged_topics_are_spread_over_the_minute() -> None:
    pairs = tuple(TopicPair(f"t{n}", f"us.t{n}", TopicRole.DATA) for n in range(200))
    schedule = TimelineSchedule(FLOW)

    def count(at: float) -> int:
        seen = replace(
            poll(at),
            plan=FlowPlan(pairs),
            source=ClusterView(topics={pair.source: 1 for pair in pairs}),
            source_offsets=OffsetsRead(
                ends={TopicPartition(pair.source, 0): 7 for pair in pairs}, answered_at=at
            ),
        )
        return len(list(schedule.due(seen)))

    counts = [count(100.0 + 5 * number) for number in range(25)]
    assert counts[0] == 200
    assert sum(counts[1:13]) == sum(counts[13:]) == 200
    assert max(counts[1:]) <= 30


def test_record_after_reset_has_no_preceding_poll() -> None:
    schedule = TimelineSchedule(FLOW)
    written(schedule, poll(100.0, 10))
    schedule.reset()
    (next_one,) = written(schedule, poll(105.0, 10))
    assert next_one.times == PollTimes(104.9, 105.0)


def test_unchanged_topic_is_written_after_clock_was_set_back() -> None:
    schedule = TimelineSchedule(FLOW)
    written(schedule, poll(10_000.0, 10))
    (next_one,) = written(schedule, poll(6_400.0, 10))
    assert next_one.times == PollTimes(6_399.9, 6_400.0)


def test_record_with_added_partition_has_no_preceding_poll() -> None:
    schedule = TimelineSchedule(FLOW)
    written(schedule, poll(100.0, 10))
    (grown,) = written(schedule, poll(105.0, 10, 3))
    assert grown.times == PollTimes(104.9, 105.0)
    (later,) = written(schedule, poll(110.0, 10, 4))
    assert later.times.previous_requested_at == 104.9
