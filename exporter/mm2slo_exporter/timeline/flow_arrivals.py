"""What arrived on the target of a flow between two reads of its end offsets."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from mm2slo_core.timeline_record import PollTimes, Side, WatermarkRecord
from mm2slo_exporter.flow_plan import FlowPlan, PartitionCache

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mm2slo_core.topology import Flow, TopicPartition
    from mm2slo_exporter.observation import Observation
    from mm2slo_kafka.partition_offsets import OffsetReading


class FlowArrivals:
    """Evaluations call `observe`, the thread of an `ArrivalPoller` reads the rest."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._cache = PartitionCache(FlowPlan.target_partitions)
        self._topic_ids: Mapping[str, str] = {}
        self.partitions: Sequence[TopicPartition] = ()

    def observe(self, seen: Observation) -> None:
        """Follow the flow's topics."""
        self._topic_ids = seen.target.topic_ids
        self.partitions = self._cache.get(seen.plan, seen.target.topics)

    def records(self, before: OffsetReading, now: OffsetReading) -> Iterator[WatermarkRecord]:
        """One record per topic, of partitions that grew between two reads."""
        grown: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for partition in self.partitions:
            end, previous = now.offsets.get(partition), before.offsets.get(partition)
            if end is not None and previous is not None and end > previous:
                grown[partition.topic].append((partition.partition, end, end - previous))
        times = PollTimes(
            now.requested_at, now.answered_at, before.requested_at, before.answered_at
        )
        for topic, rows in grown.items():
            numbers, ends, arrived = zip(*rows, strict=True)
            yield WatermarkRecord(
                flow=self._flow,
                side=Side.TARGET,
                topic=topic,
                topic_id=self._topic_ids.get(topic),
                isolation="read_uncommitted",
                times=times,
                partitions=numbers,
                ends=ends,
                arrived=arrived,
            )
