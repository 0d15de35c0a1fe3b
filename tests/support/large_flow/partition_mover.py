"""Appends to and replicates every partition of a large flow, like MirrorMaker 2."""

from collections.abc import Mapping

from confluent_kafka import Consumer, TopicPartition

from large_flow.large_flow import FLOW, INTERNAL, SOURCE_CONNECTOR, LargeFlow
from large_flow.produce_request import append
from large_flow.record_sender import RecordSender
from mm2slo_core.records.connect_records import SourceOffset
from mm2slo_core.records.mirror_records import OffsetSync

_COMMITS_EVERY = 12
"""Cycles of 5 s per offset flush interval of 60 s."""
_SYNCS_EVERY = 100
"""MirrorMaker 2's default of `offset.lag.max`, in records."""


class Mover:
    """Appends one record per call to each partition; copies lag by one record until `settle`."""

    def __init__(self, flow: LargeFlow) -> None:
        self._flow = flow
        self._source = RecordSender(flow.source)
        self._target = RecordSender(flow.target)
        self._partitions = flow.shape.source_partitions
        # The n-th record on the source is the n-th on the target, also from earlier movers.
        end, copied = self._end_of_first("", flow.source), self._end_of_first("us.", flow.target)
        self._step, self._behind = end - 1, end - copied

    def move(self) -> None:
        """Append a record to all source partitions, replicate the preceding one, commit some."""
        self._step += 1
        append(self._flow.source, self._partitions)
        while self._behind:
            self._copy()
        self._behind = 1
        self._write_progress()

    def settle(self) -> None:
        """Replicate the backlog: all lags are then 0."""
        while self._behind:
            self._copy()

    def _copy(self) -> None:
        copies = ((f"us.{partition.topic}", partition.partition) for partition in self._partitions)
        append(self._flow.target, copies)
        self._behind -= 1

    def _end_of_first(self, prefix: str, properties: Mapping[str, str]) -> int:
        first = self._partitions[0]
        consumer = Consumer({**properties, "group.id": "bench", "log_level": 2})
        partition = TopicPartition(prefix + first.topic, first.partition)
        _start, end = consumer.get_watermark_offsets(partition, timeout=60)
        consumer.close()
        return int(end)

    def _write_progress(self) -> None:
        newest = self._step - 1
        for partition in self._partitions[self._step % _COMMITS_EVERY :: _COMMITS_EVERY]:
            commit = SourceOffset(SOURCE_CONNECTOR, FLOW.source, partition, newest)
            self._target.send(
                INTERNAL.connect_offsets.topic, commit.encode_value(), key=commit.encode_key()
            )
        for partition in self._partitions[self._step % _SYNCS_EVERY :: _SYNCS_EVERY]:
            sync = OffsetSync(partition, newest, newest)
            self._source.send(
                INTERNAL.offset_syncs.topic, sync.encode_value(), key=sync.encode_key()
            )
        self._source.flush()
        self._target.flush()
