"""Texts of others in Slack's markup: escaped, without control characters, never too long.

Slack reads `&`, `<` and `>` in every text, and `*`, `_`, `~` and the backtick in its markup. There
is no escape for the latter, so that names stand in code, in which only a backtick means anything.
Source: Slack's "Formatting message text".
"""

from __future__ import annotations

import unicodedata
from typing import Final

NAME: Final = 120
"""Of a name's length, in Slack's count of its escaped text."""
_READ: Final = 5_000
"""Characters of a text that are looked at; more than any message may hold."""
_CUT: Final = "…"
_BACKTICK: Final = "\N{MODIFIER LETTER GRAVE ACCENT}"
"""A letter that looks like the backtick and ends no code."""
_SPOILING: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Controls, marks that turn the direction of a line, halves of characters, ends of lines."""


def size(text: str) -> int:
    """The length as Slack counts it, in UTF-16 units: an emoji is two."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def escaped(text: str) -> str:
    """*text* without a meaning in Slack's markup of links and mentions."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unescaped(text: str) -> str:
    """*text* as Slack shows it."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def fitted(text: str, longest: int) -> str:
    """*text* on one line, escaped, and cut where it would be longer than *longest*.

    Never empty: Slack takes no empty text.
    """
    kept: list[str] = []
    used = 0
    for character in _cleaned(text) or "?":
        used += size(escaped(character))
        if used > longest:
            return _within(kept, longest - 1) + _CUT
        kept.append(escaped(character))
    return "".join(kept)


def code(name: str, longest: int = NAME) -> str:
    """*name* as code, in which nothing of it is markup."""
    return f"`{fitted(name.replace('`', _BACKTICK), longest)}`"


def _within(pieces: list[str], longest: int) -> str:
    used = sum(map(size, pieces))
    while used > longest:
        used -= size(pieces.pop())
    return "".join(pieces).rstrip()


def _cleaned(text: str) -> str:
    shown = (
        " " if unicodedata.category(character) in _SPOILING else character
        for character in text[:_READ]
    )
    return " ".join("".join(shown).split())
