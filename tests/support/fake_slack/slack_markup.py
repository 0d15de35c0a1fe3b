"""Slack's markup: control sequences in angle brackets, and entities."""

import re
from typing import Final

# Angle brackets may contain only a link, a mention, a channel or a special mention.
_CONTROL: Final = re.compile(r"<(?:https?://[^<>|\s]+(?:\|[^<>|]+)?|[@#][A-Z0-9]+|![a-z^][^<>]*)>")
_RAW: Final = re.compile(r"[<>]|&(?!(?:amp|lt|gt);)")


def find_unescaped(text: str) -> str | None:
    """The first character of *text* that should have been escaped."""
    found = _RAW.search(_CONTROL.sub("", text))
    return None if found is None else found[0]


def utf16_length(text: str) -> int:
    """Length as Slack counts it, in UTF-16 units: an emoji is two."""
    return len(text.encode("utf-16-le")) // 2
