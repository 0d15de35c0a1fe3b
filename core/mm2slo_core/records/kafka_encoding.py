"""Kafka's fixed binary encoding, as far as MirrorMaker 2's records use it.

Source: `org.apache.kafka.common.protocol.types.Type`. Integers are big-endian and signed, a
STRING is an INT16 length and that many UTF-8 bytes, nothing is padded. Kafka's readers ignore
bytes after the last field; here they are an error: they can only come from a format that this
reader does not know, and such a record is counted as malformed, never guessed at.
"""

from __future__ import annotations

import struct
from typing import NoReturn

from mm2slo_core.records.decode_errors import DecodeError, DecodeReason

_INT16 = struct.Struct(">h")
INT32 = struct.Struct(">i")
_LONGEST_STRING = 0x7FFF


def encode_string(text: str) -> bytes:
    """STRING. Raises ValueError when *text* takes more than 32,767 bytes."""
    data = text.encode()
    if len(data) > _LONGEST_STRING:
        raise ValueError(
            f"a string of {len(data)} bytes does not fit: Kafka's STRING holds {_LONGEST_STRING}"
        )
    return _INT16.pack(len(data)) + data


class Reader:
    """Reads the fields of one record from the start to the end of *data*."""

    def __init__(self, kind: str, data: bytes, at: int = 0) -> None:
        self._kind = kind
        self._data = data
        self._at = at

    def string(self) -> str:
        """Read a STRING."""
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
        return text

    def partition(self) -> int:
        """Read an INT32 that is a partition number."""
        (number,) = self._take(INT32)
        if number < 0:
            self._fail(DecodeReason.UNEXPECTED_SHAPE, f"partition {number}")
        return int(number)

    def end(self) -> None:
        """Check that nothing follows."""
        if self._at != len(self._data):
            self._fail(DecodeReason.TRAILING_BYTES, f"{len(self._data)} bytes, expected {self._at}")

    def _take(self, field: struct.Struct) -> tuple[int, ...]:
        start, self._at = self._at, self._at + field.size
        if self._at > len(self._data):
            self._fail(DecodeReason.TRUNCATED, f"{len(self._data)} bytes, expected {self._at}")
        return field.unpack_from(self._data, start)

    def _fail(self, reason: DecodeReason, detail: str) -> NoReturn:
        raise DecodeError(self._kind, reason, detail)


def present_key(kind: str, key: bytes | None) -> bytes:
    """*key*, or DecodeError when it is null."""
    if key is None:
        raise DecodeError(kind, DecodeReason.NULL_KEY, "every record of this topic has a key")
    return key


def wrong_size(kind: str, value: bytes, expected: int) -> DecodeError:
    """Make the error for a value of another size than *expected*."""
    reason = DecodeReason.TRUNCATED if len(value) < expected else DecodeReason.TRAILING_BYTES
    return DecodeError(kind, reason, f"a value of {len(value)} bytes, expected {expected}")


def check_version(kind: str, version: int) -> None:
    """Raise DecodeError unless *version* is 0, the only one up to Kafka 4.4."""
    if version != 0:
        raise DecodeError(kind, DecodeReason.UNKNOWN_VERSION, f"version {version}, expected 0")


def negative_offset(kind: str, upstream: int, downstream: int) -> DecodeError:
    """Make the error for offsets below zero."""
    return DecodeError(
        kind, DecodeReason.UNEXPECTED_SHAPE, f"offsets {upstream} and {downstream}, expected >= 0"
    )
