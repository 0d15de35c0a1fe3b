"""Arrivals of a flow between two reads of end offsets."""

from mm2slo_core.records.timeline_record import PollTimes, Side, WatermarkRecord
from mm2slo_core.topic_selection import TopicPair, TopicRole
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_exporter.flow_observation import ClusterView, InternalsView, Observation
from mm2slo_exporter.flow_plan import FlowPlan
from mm2slo_exporter.timeline.arrival_poller import FlowArrivals
from mm2slo_kafka.partition_offsets import OffsetReading

FLOW = Flow("us", "eu")


def reading(at: float, **ends: dict[int, int]) -> OffsetReading:
    offsets = {
        TopicPartition(f"us.{topic}", number): end
        for topic, found in ends.items()
        for number, end in found.items()
    }
    return OffsetReading(offsets, {}, at, at + 0.02)


def orders(*reads: OffsetReading) -> FlowArrivals:
    """The flow of the topics in *reads*."""
    counts: dict[str, int] = {}
    for topic, number in (partition for read in reads for partition in read.offsets):
        counts[topic] = max(counts.get(topic, 0), number + 1)
    pairs = tuple(TopicPair(name.removeprefix("us."), name, TopicRole.DATA) for name in counts)
    flow = FlowArrivals(FLOW)
    flow.observe(
        Observation(
            at=100.0,
            plan=FlowPlan(pairs),
            source=ClusterView(),
            target=ClusterView(topics=counts, topic_ids={"us.orders": "id"}),
            internals=InternalsView(),
            source_offsets=None,
            target_offsets=None,
            source_readable=True,
            target_readable=True,
        )
    )
    return flow


def written(before: OffsetReading, now: OffsetReading) -> list[WatermarkRecord]:
    return list(orders(before, now).records(before, now))


def test_only_partitions_that_grew_are_written() -> None:
    before = reading(100.0, orders={0: 10, 1: 20, 2: 30}, idle={0: 5})
    now = reading(100.25, orders={0: 13, 1: 20, 2: 31}, idle={0: 5})
    (record,) = written(before, now)
    assert record == WatermarkRecord(
        flow=FLOW,
        side=Side.TARGET,
        topic="us.orders",
        topic_id="id",
        isolation="read_uncommitted",
        times=PollTimes(100.25, 100.27, 100.0, 100.02),
        partitions=(0, 2),
        ends=(13, 31),
        arrived=(3, 1),
    )
    assert WatermarkRecord.decode(record.encode_value()) == record


def test_truncated_and_newly_read_partitions_are_not_written() -> None:
    before = reading(100.0, orders={0: 10})
    assert written(before, reading(100.25, orders={0: 4, 1: 7})) == []


def test_partitions_are_those_of_the_copies() -> None:
    flow = orders(reading(100.0, orders={0: 1, 1: 1}))
    assert list(flow.partitions) == [TopicPartition("us.orders", number) for number in (0, 1)]
    assert list(FlowArrivals(FLOW).partitions) == []
