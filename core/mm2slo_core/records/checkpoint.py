"""Checkpoints: committed offsets of consumer groups, translated for the target.

Format: Kafka's `org.apache.kafka.connect.mirror.Checkpoint`, version 0.
"""

from __future__ import annotations

import struct
import sys
from typing import NamedTuple

from mm2slo_core.records.decode_errors import DecodeError, DecodeReason, Tombstone
from mm2slo_core.records.kafka_encoding import (
    INT32,
    Reader,
    check_version,
    encode_string,
    negative_offset,
    require_key,
)
from mm2slo_core.records.key_cache import KeyCache
from mm2slo_core.topology import TopicPartition, shared_partition

_KIND = "checkpoint"
_HEAD = struct.Struct(">hqq")
_unpack_head = _HEAD.unpack_from
_EMPTY_METADATA = b"\0\0"


class CheckpointKey(NamedTuple):
    """The group and partition of a checkpoint; *topic_partition* is the target's."""

    group: str
    topic_partition: TopicPartition


class Checkpoint(NamedTuple):
    """A *group* that committed *upstream_offset* may resume at *downstream_offset* on the target.

    *topic_partition* is the target's (already renamed); *metadata* is that of the consumer's
    commit, often empty.
    """

    group: str
    topic_partition: TopicPartition
    upstream_offset: int
    downstream_offset: int
    metadata: str = ""

    @staticmethod
    def decode(key: bytes | None, value: bytes | None) -> Checkpoint | Tombstone[CheckpointKey]:
        """Decode a record of the checkpoints topic. Raises DecodeError."""
        checkpoint_key = _decode_key(require_key(_KIND, key))
        if value is None:
            return Tombstone(checkpoint_key)
        try:
            version, upstream, downstream = _unpack_head(value)
        except struct.error:
            raise _too_short(value) from None
        check_version(_KIND, version)
        if upstream < 0 or downstream < 0:
            raise negative_offset(_KIND, upstream, downstream)
        if value[_HEAD.size :] == _EMPTY_METADATA:
            return Checkpoint(
                checkpoint_key.group, checkpoint_key.topic_partition, upstream, downstream
            )
        reader = Reader(_KIND, value, at=_HEAD.size)
        metadata = reader.string()
        reader.end()
        return Checkpoint(
            checkpoint_key.group, checkpoint_key.topic_partition, upstream, downstream, metadata
        )

    @property
    def key(self) -> CheckpointKey:
        return CheckpointKey(self.group, self.topic_partition)

    def encode_key(self) -> bytes:
        topic, partition = self.topic_partition
        return encode_string(self.group) + encode_string(topic) + INT32.pack(partition)

    def encode_value(self) -> bytes:
        head = _HEAD.pack(0, self.upstream_offset, self.downstream_offset)
        return head + encode_string(self.metadata)


def _too_short(value: bytes) -> DecodeError:
    if len(value) >= 2:
        check_version(_KIND, int.from_bytes(value[:2], "big", signed=True))
    return DecodeError(
        _KIND, DecodeReason.TRUNCATED, f"a value of {len(value)} bytes, expected 20 or more"
    )


def _decode_new_key(key: bytes) -> CheckpointKey:
    reader = Reader(_KIND, key)
    group, topic = sys.intern(reader.string()), sys.intern(reader.string())
    checkpoint_key = CheckpointKey(group, shared_partition(topic, reader.partition()))
    reader.end()
    return checkpoint_key


_decode_key = KeyCache(_decode_new_key).__getitem__
