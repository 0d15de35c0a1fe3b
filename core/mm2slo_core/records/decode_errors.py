"""What a record that cannot be read is, and the key that remains of a removed one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

K = TypeVar("K")


class DecodeReason(StrEnum):
    """Why a record could not be read; a closed list, used as a metric label."""

    TRUNCATED = "truncated"
    TRAILING_BYTES = "trailing_bytes"
    UNKNOWN_VERSION = "unknown_version"
    INVALID_UTF8 = "invalid_utf8"
    INVALID_JSON = "invalid_json"
    UNEXPECTED_SHAPE = "unexpected_shape"
    NULL_KEY = "null_key"


class DecodeError(ValueError):
    """A record is not what its topic should hold.

    *kind* is the record type in words, *reason* the label for counting, *detail* what was found
    and expected. Payload bytes never get in here: configuration records hold credentials.
    """

    def __init__(self, kind: str, reason: DecodeReason, detail: str) -> None:
        super().__init__(f"{kind} record not readable ({reason}): {detail}")
        self.kind = kind
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Tombstone(Generic[K]):
    """A null value in a compacted topic: the record of *key* was removed."""

    key: K
