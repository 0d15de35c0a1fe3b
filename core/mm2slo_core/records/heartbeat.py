"""Heartbeats of MirrorMaker 2.

Format: Kafka's `org.apache.kafka.connect.mirror.Heartbeat`, version 0.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import NamedTuple

from mm2slo_core.records.decode_errors import Tombstone
from mm2slo_core.records.kafka_encoding import (
    Reader,
    check_version,
    encode_string,
    require_key,
    wrong_size,
)

_KIND = "heartbeat"
_VALUE = struct.Struct(">hq")
_VERSION = struct.Struct(">h")


class HeartbeatKey(NamedTuple):
    """The flow of the herder that wrote a heartbeat, not the flow that replicated it."""

    source_alias: str
    target_alias: str


class Heartbeat(NamedTuple):
    """A heartbeat that the herder *source_alias*->*target_alias* wrote on *target_alias*.

    `A->B` replicates the heartbeats of `B->A`. *timestamp_ms* is the epoch time of the worker.
    """

    source_alias: str
    target_alias: str
    timestamp_ms: int

    @staticmethod
    def decode(key: bytes | None, value: bytes | None) -> Heartbeat | Tombstone[HeartbeatKey]:
        """Decode a record of a heartbeats topic. Raises DecodeError."""
        heartbeat_key = _decode_key(require_key(_KIND, key))
        if value is None:
            return Tombstone(heartbeat_key)
        if len(value) >= _VERSION.size:
            check_version(_KIND, _VERSION.unpack_from(value)[0])
        if len(value) != _VALUE.size:
            raise wrong_size(_KIND, value, _VALUE.size)
        _, timestamp = _VALUE.unpack(value)
        return Heartbeat(heartbeat_key.source_alias, heartbeat_key.target_alias, timestamp)

    @property
    def key(self) -> HeartbeatKey:
        """The flow of the herder that wrote this heartbeat."""
        return HeartbeatKey(self.source_alias, self.target_alias)

    def encode_key(self) -> bytes:
        return encode_string(self.source_alias) + encode_string(self.target_alias)

    def encode_value(self) -> bytes:
        return _VALUE.pack(0, self.timestamp_ms)


@lru_cache(maxsize=1 << 10)
def _decode_key(key: bytes) -> HeartbeatKey:
    reader = Reader(_KIND, key)
    heartbeat_key = HeartbeatKey(reader.string(), reader.string())
    reader.end()
    return heartbeat_key
