"""Connect source offsets: the committed offsets of a MirrorSourceConnector.

Format: `OffsetStorageWriter` with a schemaless JsonConverter, in the offset storage topic.
"""

from __future__ import annotations

import json
import sys
from typing import NamedTuple

from mm2slo_core.records.connect_json import decode_json, decode_object, get_field, unexpected_shape
from mm2slo_core.records.decode_errors import Tombstone
from mm2slo_core.records.kafka_encoding import require_key
from mm2slo_core.records.key_cache import KeyCache
from mm2slo_core.topology import TopicPartition, shared_partition

_KIND = "source offset"
_KEY_PARTS = 2


class SourceOffsetKey(NamedTuple):
    """A source partition of one connector; *cluster* is the source alias."""

    connector: str
    cluster: str
    topic_partition: TopicPartition


class SourceOffset(NamedTuple):
    """*offset* is the last source record that the target acknowledged; the task resumes after it.

    Committed every `offset.flush.interval.ms` (60 s by default), so up to that old.
    """

    connector: str
    cluster: str
    topic_partition: TopicPartition
    offset: int

    @staticmethod
    def decode(
        key: bytes | None, value: bytes | None
    ) -> SourceOffset | Tombstone[SourceOffsetKey] | None:
        """Decode a record of the offset storage topic. Raises DecodeError.

        None for a record of another kind of connector, because the topic is shared.
        """
        offset_key = _decode_key(require_key(_KIND, key))
        if offset_key is None:
            return None
        if value is None:
            return Tombstone(offset_key)
        offset = get_field(_KIND, decode_object(_KIND, value), "offset", int)
        if offset < 0:
            raise unexpected_shape(_KIND, f"offset {offset}, expected >= 0")
        return SourceOffset(
            offset_key.connector, offset_key.cluster, offset_key.topic_partition, offset
        )

    @property
    def key(self) -> SourceOffsetKey:
        return SourceOffsetKey(self.connector, self.cluster, self.topic_partition)

    @property
    def next_offset(self) -> int:
        """The first offset that a task would read after a restart."""
        return self.offset + 1

    def encode_key(self) -> bytes:
        """Encode the key; the order of its fields is Connect's, not part of the format."""
        topic, partition = self.topic_partition
        where = {"cluster": self.cluster, "partition": partition, "topic": topic}
        return _compact([self.connector, where])

    def encode_value(self) -> bytes:
        return _compact({"offset": self.offset})


def _compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _decode_new_key(key: bytes) -> SourceOffsetKey | None:
    parts = decode_json(_KIND, key)
    if not isinstance(parts, list) or len(parts) != _KEY_PARTS:
        raise unexpected_shape(_KIND, "a key that is not [connector, partition]")
    connector, where = parts
    if not isinstance(connector, str):
        raise unexpected_shape(_KIND, "a key whose connector name is not a string")
    if not isinstance(where, dict) or not where.keys() >= {"cluster", "topic", "partition"}:
        return None
    partition = get_field(_KIND, where, "partition", int)
    if partition < 0:
        raise unexpected_shape(_KIND, f"partition {partition}, expected >= 0")
    topic = sys.intern(get_field(_KIND, where, "topic", str))
    cluster = sys.intern(get_field(_KIND, where, "cluster", str))
    return SourceOffsetKey(sys.intern(connector), cluster, shared_partition(topic, partition))


_decode_key = KeyCache(_decode_new_key).__getitem__
