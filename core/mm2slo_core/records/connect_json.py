"""JSON keys and values of Kafka Connect's topics (`JsonConverter` without schemas)."""

from __future__ import annotations

import json
import re
from typing import Any

from mm2slo_core.records.decode_errors import DecodeError, DecodeReason

_NUMBER = re.compile(r"[0-9]{1,10}")


def decode_text(kind: str, data: bytes) -> str:
    """UTF-8 text, or DecodeError."""
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        raise DecodeError(kind, DecodeReason.INVALID_UTF8, problem.reason) from None


def decode_json(kind: str, data: bytes) -> Any:
    """The JSON value of *data*, or DecodeError; the cause is left out, it would quote *data*."""
    text = decode_text(kind, data)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise DecodeError(
            kind, DecodeReason.INVALID_JSON, f"{len(data)} bytes that are no JSON"
        ) from None


def decode_object(kind: str, data: bytes) -> dict[str, Any]:
    """The JSON object of *data*, or DecodeError."""
    value = decode_json(kind, data)
    if not isinstance(value, dict):
        raise unexpected(kind, f"a JSON {type(value).__name__}, expected an object")
    return value


def field(kind: str, value: dict[str, Any], name: str, expected: type) -> Any:
    """The member *name* of *value*, an *expected*, or DecodeError; a bool is no int."""
    found = value.get(name)
    if not isinstance(found, expected) or isinstance(found, bool):
        raise unexpected(kind, f"{name!r} is {type(found).__name__}, expected {expected.__name__}")
    return found


def unexpected(kind: str, detail: str) -> DecodeError:
    """Make the error for JSON that is not what Connect writes."""
    return DecodeError(kind, DecodeReason.UNEXPECTED_SHAPE, detail)


def numbered(name: str) -> tuple[str, int] | None:
    """Split `name-3` at its last dash, as Connect builds task names; None without a number."""
    head, dash, number = name.rpartition("-")
    if not dash or not _NUMBER.fullmatch(number):
        return None
    return head, int(number)
