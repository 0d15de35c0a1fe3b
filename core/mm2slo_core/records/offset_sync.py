"""Offset syncs: the offsets of one record on both clusters.

Format: Kafka's `org.apache.kafka.connect.mirror.OffsetSync`; the value has no version.
"""

from __future__ import annotations

import struct
import sys
from typing import NamedTuple

from mm2slo_core.records.decode_errors import Tombstone
from mm2slo_core.records.kafka_encoding import (
    INT32,
    Reader,
    encode_string,
    negative_offset,
    require_key,
    wrong_size,
)
from mm2slo_core.records.key_cache import KeyCache
from mm2slo_core.topology import TopicPartition, shared_partition

_KIND = "offset sync"
_VALUE = struct.Struct(">qq")
_unpack = _VALUE.unpack


class OffsetSync(NamedTuple):
    """The source record at *upstream_offset* was written to the target at *downstream_offset*.

    *topic_partition* is the source's; the record does not contain the clusters.
    """

    topic_partition: TopicPartition
    upstream_offset: int
    downstream_offset: int

    @staticmethod
    def decode(key: bytes | None, value: bytes | None) -> OffsetSync | Tombstone[TopicPartition]:
        """Decode a record of the offset syncs topic. Raises DecodeError."""
        partition = _decode_key(require_key(_KIND, key))
        if value is None:
            return Tombstone(partition)
        try:
            upstream, downstream = _unpack(value)
        except struct.error:
            raise wrong_size(_KIND, value, _VALUE.size) from None
        if upstream < 0 or downstream < 0:
            raise negative_offset(_KIND, upstream, downstream)
        return OffsetSync(partition, upstream, downstream)

    def encode_key(self) -> bytes:
        topic, partition = self.topic_partition
        return encode_string(topic) + INT32.pack(partition)

    def encode_value(self) -> bytes:
        return _VALUE.pack(self.upstream_offset, self.downstream_offset)


def _decode_new_key(key: bytes) -> TopicPartition:
    reader = Reader(_KIND, key)
    partition = shared_partition(sys.intern(reader.string()), reader.partition())
    reader.end()
    return partition


_decode_key = KeyCache(_decode_new_key).__getitem__
