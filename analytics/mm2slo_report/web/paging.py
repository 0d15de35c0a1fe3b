"""Cursors: where the next page starts, in a form that only this service reads."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_report.web.problems import refused

if TYPE_CHECKING:
    from collections.abc import Mapping

_PARAMETER: Final = "cursor"
_LONGEST: Final = 1_000
_DIGEST: Final = 12


class Cursor(NamedTuple):
    """After which item the page starts; with an instant of the list, or of the item (epoch ms)."""

    after: str
    as_of: int = 0


def written(cursor: Cursor, asked: Mapping[str, object]) -> str:
    """The cursor as text; it holds for the question *asked* alone."""
    content = json.dumps([cursor.after, cursor.as_of, _digest(asked)], separators=(",", ":"))
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def read(text: str, asked: Mapping[str, object]) -> Cursor:
    """The cursor that *text* is. Raises Problem when it is none, or of another question."""
    try:
        # One that is too long is read as far as it may reach, which makes it unreadable.
        coded = text[:_LONGEST].encode("ascii")
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
        raise refused(
            _PARAMETER, "this is no cursor: expected the value of `next` of a page before"
        )
    if digest != _digest(asked):
        raise refused(
            _PARAMETER,
            "this cursor is of another question: keep all other parameters but limit as they were",
        )
    return Cursor(after, as_of)


def _digest(asked: Mapping[str, object]) -> str:
    content = json.dumps(asked, sort_keys=True, default=str)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
