"""Errors of records that cannot be decoded, and tombstones."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

K = TypeVar("K")


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
class Tombstone(Generic[K]):
    """A null value in a compacted topic: the record of *key* was deleted."""

    key: K
