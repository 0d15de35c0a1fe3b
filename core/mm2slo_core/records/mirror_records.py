"""Checkpoints, offset syncs and heartbeats of MirrorMaker 2, in Kafka's binary encoding.

Formats: `Checkpoint` (version 0), `OffsetSync` (its value has no version) and `Heartbeat` (version
0) of Kafka's `org.apache.kafka.connect.mirror`. Encoding:
`org.apache.kafka.common.protocol.types.Type`. Integers are big-endian and signed, a STRING is an
INT16 length and that many UTF-8 bytes, without padding. Kafka's readers ignore bytes after the last
field; here they are an error, because they indicate an unknown format.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Generic, NamedTuple, NoReturn, TypeVar

from mm2slo_core.topology import TopicPartition, shared_partition

_CHECKPOINT_KIND = "checkpoint"
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
        checkpoint_key = _decode_checkpoint_key(require_key(_CHECKPOINT_KIND, key))
        if value is None:
            return Tombstone(checkpoint_key)
        try:
            version, upstream, downstream = _unpack_head(value)
        except struct.error:
            raise _too_short(value) from None
        check_version(_CHECKPOINT_KIND, version)
        # `MirrorCheckpointTask` leaves out what it cannot translate (-1), so a negative offset is
        # damage.
        if upstream < 0 or downstream < 0:
            raise negative_offset(_CHECKPOINT_KIND, upstream, downstream)
        if value[_HEAD.size :] == _EMPTY_METADATA:
            return Checkpoint(
                checkpoint_key.group, checkpoint_key.topic_partition, upstream, downstream
            )
        reader = FieldReader(_CHECKPOINT_KIND, value, at=_HEAD.size)
        metadata = reader.string()
        reader.end()
        return Checkpoint(
            checkpoint_key.group, checkpoint_key.topic_partition, upstream, downstream, metadata
        )

    def encode_key(self) -> bytes:
        topic, partition = self.topic_partition
        return encode_string(self.group) + encode_string(topic) + INT32.pack(partition)

    def encode_value(self) -> bytes:
        head = _HEAD.pack(0, self.upstream_offset, self.downstream_offset)
        return head + encode_string(self.metadata)


def _too_short(value: bytes) -> DecodeError:
    if len(value) >= 2:
        check_version(_CHECKPOINT_KIND, int.from_bytes(value[:2], "big", signed=True))
    return DecodeError(
        _CHECKPOINT_KIND,
        DecodeReason.TRUNCATED,
        f"a value of {len(value)} bytes, expected 20 or more",
    )


def _decode_new_checkpoint_key(key: bytes) -> CheckpointKey:
    reader = FieldReader(_CHECKPOINT_KIND, key)
    group, topic = sys.intern(reader.string()), sys.intern(reader.string())
    checkpoint_key = CheckpointKey(group, shared_partition(topic, reader.partition()))
    reader.end()
    return checkpoint_key


_OFFSET_SYNC_KIND = "offset sync"
_SYNC_OFFSETS = struct.Struct(">qq")
_unpack_sync_offsets = _SYNC_OFFSETS.unpack


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
        partition = _decode_sync_key(require_key(_OFFSET_SYNC_KIND, key))
        if value is None:
            return Tombstone(partition)
        try:
            upstream, downstream = _unpack_sync_offsets(value)
        except struct.error:
            raise wrong_size(_OFFSET_SYNC_KIND, value, _SYNC_OFFSETS.size) from None
        if upstream < 0 or downstream < 0:
            raise negative_offset(_OFFSET_SYNC_KIND, upstream, downstream)
        return OffsetSync(partition, upstream, downstream)

    def encode_key(self) -> bytes:
        topic, partition = self.topic_partition
        return encode_string(topic) + INT32.pack(partition)

    def encode_value(self) -> bytes:
        return _SYNC_OFFSETS.pack(self.upstream_offset, self.downstream_offset)


def _decode_new_sync_key(key: bytes) -> TopicPartition:
    reader = FieldReader(_OFFSET_SYNC_KIND, key)
    partition = shared_partition(sys.intern(reader.string()), reader.partition())
    reader.end()
    return partition


_HEARTBEAT_KIND = "heartbeat"
_VERSION_AND_TIMESTAMP = struct.Struct(">hq")
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
        heartbeat_key = _decode_heartbeat_key(require_key(_HEARTBEAT_KIND, key))
        if value is None:
            return Tombstone(heartbeat_key)
        if len(value) >= _VERSION.size:
            check_version(_HEARTBEAT_KIND, _VERSION.unpack_from(value)[0])
        if len(value) != _VERSION_AND_TIMESTAMP.size:
            raise wrong_size(_HEARTBEAT_KIND, value, _VERSION_AND_TIMESTAMP.size)
        _, timestamp = _VERSION_AND_TIMESTAMP.unpack(value)
        return Heartbeat(heartbeat_key.source_alias, heartbeat_key.target_alias, timestamp)

    def encode_key(self) -> bytes:
        return encode_string(self.source_alias) + encode_string(self.target_alias)

    def encode_value(self) -> bytes:
        return _VERSION_AND_TIMESTAMP.pack(0, self.timestamp_ms)


@lru_cache(maxsize=1 << 10)
def _decode_heartbeat_key(key: bytes) -> HeartbeatKey:
    reader = FieldReader(_HEARTBEAT_KIND, key)
    heartbeat_key = HeartbeatKey(reader.string(), reader.string())
    reader.end()
    return heartbeat_key


Key = TypeVar("Key")


class DecodeReason(StrEnum):
    """Why a record could not be decoded; a closed list, used as a metric label."""

    TRUNCATED = "truncated"
    TRAILING_BYTES = "trailing_bytes"
    UNKNOWN_VERSION = "unknown_version"
    INVALID_UTF8 = "invalid_utf8"
    INVALID_JSON = "invalid_json"
    UNEXPECTED_SHAPE = "unexpected_shape"
    NULL_KEY = "null_key"


class DecodeError(ValueError):
    """A record of an internal topic cannot be decoded.

    *kind* is the record type, *reason* the metric label, *detail* what was found and expected.
    Never contains payload, because configuration records may have credentials.
    """

    def __init__(self, kind: str, reason: DecodeReason, detail: str) -> None:
        super().__init__(f"cannot decode {kind} record ({reason}): {detail}")
        self.kind = kind
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Tombstone(Generic[Key]):
    """A null value in a compacted topic: the record of *key* was deleted."""

    key: Key


_INT16 = struct.Struct(">h")
INT32 = struct.Struct(">i")
_LONGEST_STRING = 0x7FFF


def encode_string(text: str) -> bytes:
    """Encode a STRING. Raises ValueError above 32,767 bytes."""
    data = text.encode()
    if len(data) > _LONGEST_STRING:
        raise ValueError(
            f"string has {len(data)} bytes; a Kafka STRING has at most {_LONGEST_STRING}"
        )
    return _INT16.pack(len(data)) + data


def require_key(kind: str, key: bytes | None) -> bytes:
    """Return *key*, or raise DecodeError if it is null."""
    if key is None:
        raise DecodeError(kind, DecodeReason.NULL_KEY, "a null key, expected a key")
    return key


def wrong_size(kind: str, value: bytes, expected: int) -> DecodeError:
    reason = DecodeReason.TRUNCATED if len(value) < expected else DecodeReason.TRAILING_BYTES
    return DecodeError(kind, reason, f"a value of {len(value)} bytes, expected {expected}")


def check_version(kind: str, version: int) -> None:
    """Raise DecodeError unless *version* is 0, the only one up to Kafka 4.4."""
    # Before 4.4, Kafka reads any version as 0 unless Java's assertions are on (KAFKA-20659).
    if version != 0:
        raise DecodeError(kind, DecodeReason.UNKNOWN_VERSION, f"version {version}, expected 0")


def negative_offset(kind: str, upstream: int, downstream: int) -> DecodeError:
    return DecodeError(
        kind, DecodeReason.UNEXPECTED_SHAPE, f"offsets {upstream} and {downstream}, expected >= 0"
    )


class FieldReader:
    """Reads the fields of a record in order."""

    def __init__(self, kind: str, data: bytes, at: int = 0) -> None:
        self._kind = kind
        self._data = data
        self._at = at

    def string(self) -> str:
        (length,) = self._take(_INT16)
        end = self._at + length
        if length < 0:
            self._fail(DecodeReason.UNEXPECTED_SHAPE, f"a string of {length} bytes")
        if end > len(self._data):
            self._fail(DecodeReason.TRUNCATED, f"{len(self._data)} bytes, expected {end}")
        try:
            text = self._data[self._at : end].decode()
        except UnicodeDecodeError as problem:
            self._fail(DecodeReason.INVALID_UTF8, problem.reason)
        self._at = end
        return sys.intern(text)  # few topics and groups in the keys of many partitions

    def partition(self) -> int:
        (number,) = self._take(INT32)
        if number < 0:
            self._fail(DecodeReason.UNEXPECTED_SHAPE, f"partition {number}")
        return int(number)

    def end(self) -> None:
        """Raise DecodeError if bytes are left."""
        if self._at != len(self._data):
            self._fail(DecodeReason.TRAILING_BYTES, f"{len(self._data)} bytes, expected {self._at}")

    def _take(self, field: struct.Struct) -> tuple[int, ...]:
        start, self._at = self._at, self._at + field.size
        if self._at > len(self._data):
            self._fail(DecodeReason.TRUNCATED, f"{len(self._data)} bytes, expected {self._at}")
        return field.unpack_from(self._data, start)

    def _fail(self, reason: DecodeReason, detail: str) -> NoReturn:
        raise DecodeError(self._kind, reason, detail)


_MAX_KEYS = 1 << 16


class KeyCache(dict[bytes, Key], Generic[Key]):
    """Decoded keys by their bytes, emptied when full.

    A hit takes a tenth of the time of decoding, and half the memory of `functools.lru_cache`.
    """

    def __init__(self, decode: Callable[[bytes], Key]) -> None:
        """*decode* raises DecodeError for what is not a key; that is not kept."""
        super().__init__()
        self._decode = decode

    def __missing__(self, key: bytes) -> Key:
        decoded = self._decode(key)
        if len(self) >= _MAX_KEYS:
            self.clear()
        self[key] = decoded
        return decoded


_decode_checkpoint_key = KeyCache(_decode_new_checkpoint_key).__getitem__
_decode_sync_key = KeyCache(_decode_new_sync_key).__getitem__
