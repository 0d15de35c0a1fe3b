"""The part of Kafka's binary encoding that MirrorMaker 2's records use.

Source: `org.apache.kafka.common.protocol.types.Type`. Integers are big-endian and signed, a
STRING is an INT16 length and that many UTF-8 bytes, without padding. Kafka's readers ignore bytes
after the last field; here they are an error, because they indicate an unknown format.
"""

from __future__ import annotations

import struct
import sys
from typing import NoReturn

from mm2slo_core.records.decode_errors import DecodeError, DecodeReason

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


class Reader:
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
        """Read an INT32 partition number."""
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


def require_key(kind: str, key: bytes | None) -> bytes:
    """Return *key*, or raise DecodeError if it is null."""
    if key is None:
        raise DecodeError(kind, DecodeReason.NULL_KEY, "a null key, expected a key")
    return key


def wrong_size(kind: str, value: bytes, expected: int) -> DecodeError:
    """Return the error for a value of another size than *expected*."""
    reason = DecodeReason.TRUNCATED if len(value) < expected else DecodeReason.TRAILING_BYTES
    return DecodeError(kind, reason, f"a value of {len(value)} bytes, expected {expected}")


def check_version(kind: str, version: int) -> None:
    """Raise DecodeError unless *version* is 0, the only one up to Kafka 4.4."""
    if version != 0:
        raise DecodeError(kind, DecodeReason.UNKNOWN_VERSION, f"version {version}, expected 0")


def negative_offset(kind: str, upstream: int, downstream: int) -> DecodeError:
    """Return the error for negative offsets."""
    return DecodeError(
        kind, DecodeReason.UNEXPECTED_SHAPE, f"offsets {upstream} and {downstream}, expected >= 0"
    )
