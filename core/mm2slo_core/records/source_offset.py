"""Connect source offsets: how far a MirrorSourceConnector has got, as it committed it.

Format: `OffsetStorageWriter` with a schemaless JsonConverter, in the offset storage topic.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import NamedTuple

from mm2slo_core.records.connect_json import decode_json, decode_object, field, unexpected
from mm2slo_core.records.decode_errors import Tombstone
from mm2slo_core.records.kafka_encoding import present_key
from mm2slo_core.topology import TopicPartition

_KIND = "source offset"
_KEY_PARTS = 2


class SourceOffsetKey(NamedTuple):
    """A source partition as one connector reads it; *cluster* is the source alias."""

    connector: str
    cluster: str
    topic_partition: TopicPartition


class SourceOffset(NamedTuple):
    """*offset* is the last source record that the target acknowledged; the task goes on after it.

    Committed every `offset.flush.interval.ms` (60 s by default), so it trails by that much.
    """

    connector: str
    cluster: str
    topic_partition: TopicPartition
    offset: int

    @staticmethod
    def decode(
        key: bytes | None, value: bytes | None
    ) -> SourceOffset | Tombstone[SourceOffsetKey] | None:
        """Read a record of the offset storage topic. Raises DecodeError.

        None stands for a record of another kind of connector: the topic is shared.
        """
        what = _decode_key(present_key(_KIND, key))
        if what is None:
            return None
        if value is None:
            return Tombstone(what)
        offset = field(_KIND, decode_object(_KIND, value), "offset", int)
        if offset < 0:
            raise unexpected(_KIND, f"offset {offset}, expected >= 0")
        return SourceOffset(what.connector, what.cluster, what.topic_partition, offset)

    @property
    def key(self) -> SourceOffsetKey:
        """The source partition that this offset is about."""
        return SourceOffsetKey(self.connector, self.cluster, self.topic_partition)

    @property
    def next_offset(self) -> int:
        """The offset that a task started now would read first."""
        return self.offset + 1

    def encode_key(self) -> bytes:
        """Key of the record; the order of members is Connect's habit, not part of the format."""
        topic, partition = self.topic_partition
        where = {"cluster": self.cluster, "partition": partition, "topic": topic}
        return _compact([self.connector, where])

    def encode_value(self) -> bytes:
        """Value of the record."""
        return _compact({"offset": self.offset})


def _compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


@lru_cache(maxsize=1 << 16)
def _decode_key(key: bytes) -> SourceOffsetKey | None:
    parts = decode_json(_KIND, key)
    if not isinstance(parts, list) or len(parts) != _KEY_PARTS:
        raise unexpected(_KIND, "a key that is not [connector, partition]")
    connector, where = parts
    if not isinstance(connector, str):
        raise unexpected(_KIND, "a key whose connector name is no string")
    if not isinstance(where, dict) or not where.keys() >= {"cluster", "topic", "partition"}:
        return None
    partition = field(_KIND, where, "partition", int)
    if partition < 0:
        raise unexpected(_KIND, f"partition {partition}, expected >= 0")
    topic = field(_KIND, where, "topic", str)
    cluster = field(_KIND, where, "cluster", str)
    return SourceOffsetKey(connector, cluster, TopicPartition(topic, partition))
