"""Foreign text in Slack's markup: escaped, without control characters, within length limits.

Slack reads `&`, `<` and `>` in every text, and `*`, `_`, `~` and the backtick in its markup. There
is no escape for the latter, so names are written as code, in which only a backtick has a meaning.
Source: Slack's "Formatting message text".
"""

from __future__ import annotations

import unicodedata
from typing import Final

NAME: Final = 120
"""Maximum length of an escaped name, as Slack counts it."""
_MAX_READ: Final = 5_000
"""Characters that are read of a text; more than any message may hold."""
_CUT: Final = "…"
_BACKTICK: Final = "\N{MODIFIER LETTER GRAVE ACCENT}"
"""Looks like a backtick, but does not end code."""
_REPLACED: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Control and format characters (including bidirectional marks), surrogates, line separators."""


def slack_length(text: str) -> int:
    """The length in UTF-16 code units, as Slack counts: an emoji is two."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def escape(text: str) -> str:
    """Escape what Slack would read as a link or a mention."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unescape(text: str) -> str:
    """*text* as Slack displays it."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def truncate(text: str, longest: int) -> str:
    """*text* on one line, escaped and cut to *longest*; `?` if it is empty, which Slack refuses."""
    kept: list[str] = []
    used = 0
    for character in _cleaned(text) or "?":
        used += slack_length(escape(character))
        if used > longest:
            return _within(kept, longest - 1) + _CUT
        kept.append(escape(character))
    return "".join(kept)


def format_code(name: str, longest: int = NAME) -> str:
    """*name* as code."""
    return f"`{truncate(name.replace('`', _BACKTICK), longest)}`"


def _within(pieces: list[str], longest: int) -> str:
    used = sum(map(slack_length, pieces))
    while used > longest:
        used -= slack_length(pieces.pop())
    return "".join(pieces).rstrip()


def _cleaned(text: str) -> str:
    shown = (
        " " if unicodedata.category(character) in _REPLACED else character
        for character in text[:_MAX_READ]
    )
    return " ".join("".join(shown).split())
