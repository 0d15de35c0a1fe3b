"""What Slack reads in a text: control sequences within angle brackets, and entities."""

from __future__ import annotations

import re
from typing import Final

# A link, a mention, a channel or a special mention is all that angle brackets may hold.
_CONTROL: Final = re.compile(r"<(?:https?://[^<>|\s]+(?:\|[^<>|]+)?|[@#][A-Z0-9]+|![a-z^][^<>]*)>")
_RAW: Final = re.compile(r"[<>]|&(?!(?:amp|lt|gt);)")


def raw(text: str) -> str | None:
    """The first sign in *text* that should have been escaped."""
    found = _RAW.search(_CONTROL.sub("", text))
    return None if found is None else found[0]


def units(text: str) -> int:
    """The length as Slack counts it: an emoji is two."""
    return len(text.encode("utf-16-le")) // 2
