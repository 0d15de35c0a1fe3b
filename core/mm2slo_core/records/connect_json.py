"""JSON keys and values of Kafka Connect's topics (`JsonConverter` without schemas)."""

from __future__ import annotations

import json
import re
from typing import Any

from mm2slo_core.records.decode_errors import DecodeError, DecodeReason

_NUMBER = re.compile(r"[0-9]{1,10}")


def decode_text(kind: str, data: bytes) -> str:
    """Decode UTF-8 text, or raise DecodeError."""
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        raise DecodeError(kind, DecodeReason.INVALID_UTF8, problem.reason) from None


def decode_json(kind: str, data: bytes) -> Any:
    """Decode JSON, or raise DecodeError without the cause, which would quote *data*."""
    text = decode_text(kind, data)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise DecodeError(
            kind, DecodeReason.INVALID_JSON, f"{len(data)} bytes that are not JSON"
        ) from None


def decode_object(kind: str, data: bytes) -> dict[str, Any]:
    """Decode a JSON object, or raise DecodeError."""
    value = decode_json(kind, data)
    if not isinstance(value, dict):
        raise unexpected_shape(kind, f"a JSON {type(value).__name__}, expected an object")
    return value


def decode_versioned(kind: str, data: bytes, version: int) -> dict[str, Any]:
    """Decode a JSON object of mm2slo with *version* in its field `v`, or raise DecodeError."""
    found = decode_object(kind, data)
    if found.get("v") != version:
        raise DecodeError(
            kind,
            DecodeReason.UNKNOWN_VERSION,
            f"version {found.get('v')!r}, expected {version}; written by a newer mm2slo?",
        )
    return found


def get_field(kind: str, value: dict[str, Any], name: str, expected: type) -> Any:
    """Return the field *name* of type *expected*, or raise DecodeError; a bool is not an int."""
    found = value.get(name)
    if not isinstance(found, expected) or isinstance(found, bool):
        raise unexpected_shape(
            kind, f"{name!r} is {type(found).__name__}, expected {expected.__name__}"
        )
    return found


def unexpected_shape(kind: str, detail: str) -> DecodeError:
    """Return the error for JSON that Connect does not write."""
    return DecodeError(kind, DecodeReason.UNEXPECTED_SHAPE, detail)


def split_numbered_name(name: str) -> tuple[str, int] | None:
    """Split a task name, as in `name-3`, at its last dash; None without a number."""
    head, dash, number = name.rpartition("-")
    if not dash or not _NUMBER.fullmatch(number):
        return None
    return head, int(number)
