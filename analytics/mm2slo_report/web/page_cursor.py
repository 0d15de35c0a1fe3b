"""Opaque cursors of paginated lists."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_report.web.problem_details import invalid_parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

_PARAMETER: Final = "cursor"
_MAX_LENGTH: Final = 1_000
_DIGEST: Final = 12


class Cursor(NamedTuple):
    """The item before the page, and the instant of the list or item (epoch ms)."""

    after: str
    as_of: int = 0


def encode_cursor(cursor: Cursor, query: Mapping[str, object]) -> str:
    """Encode *cursor* for use with the same *query* only."""
    content = json.dumps([cursor.after, cursor.as_of, _digest(query)], separators=(",", ":"))
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def decode_cursor(text: str, query: Mapping[str, object]) -> Cursor:
    """Decode *text*. Raises ProblemError for an invalid cursor or one of another query."""
    try:
        # Truncation makes an overlong cursor invalid.
        coded = text[:_MAX_LENGTH].encode("ascii")
        content = base64.b64decode(coded + b"=" * (-len(coded) % 4), b"-_", validate=True)
        after, as_of, digest = json.loads(content)
    except (ValueError, TypeError, binascii.Error, RecursionError):
        after = as_of = digest = None
    if (
        not isinstance(after, str)
        or not after.isprintable()
        or type(as_of) is not int
        or not 0 <= as_of < 1 << 53
    ):
        raise invalid_parameter(
            _PARAMETER, "invalid cursor; expected the value of `next` from the previous page"
        )
    if digest != _digest(query):
        raise invalid_parameter(
            _PARAMETER,
            "this cursor belongs to another query; change no other parameter than limit",
        )
    return Cursor(after, as_of)


def _digest(query: Mapping[str, object]) -> str:
    content = json.dumps(query, sort_keys=True, default=str)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
