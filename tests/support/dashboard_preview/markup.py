"""HTML and SVG as text that is escaped by construction.

Everything not made by `element` is text: names of topics and groups may hold quotes, `<` and `&`.
"""

from collections.abc import Iterable
from html import escape
from typing import Final

_VOID: Final = frozenset({"meta", "link", "br"})
Value = str | float | None


class Markup(str):
    """Text that is already markup."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: Value) -> Markup:
    """`<name ...>children</name>`.

    Attributes that are None are left out; `_` in their names becomes `-`, a trailing one is
    removed (`class_`).
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{given}>")
    return Markup(f"<{name}{given}>{together(children)}</{name}>")


def together(parts: Iterable[str]) -> Markup:
    """*parts* concatenated, text escaped."""
    return Markup("".join(each if isinstance(each, Markup) else escape(each) for each in parts))


def number(value: float) -> str:
    """A coordinate to a hundredth of a pixel, without trailing zeros."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _value(value: str | float) -> str:
    return escape(value) if isinstance(value, str) else number(value)


SMALL: Final = 12.0
"""Pixels; the size of the letters of axes and legends."""
_NARROW: Final = frozenset(" .,:;!'|()[]{}iIjlft-/\\`")
_WIDE: Final = frozenset("mwMWGOQ%@>=<→∞")
_SHARES: Final = (0.32, 0.57, 0.88)


def width(text: str, size: float = SMALL) -> float:
    """Of *text* in pixels, in Inter, Helvetica or a font like them."""
    narrow = sum(each in _NARROW for each in text)
    wide = sum(each in _WIDE for each in text)
    rest = len(text) - narrow - wide
    return size * (narrow * _SHARES[0] + rest * _SHARES[1] + wide * _SHARES[2])


def shortened(text: str, room: float, size: float = SMALL) -> str:
    """*text* cut to *room* pixels, with an ellipsis where it was cut."""
    if width(text, size) <= room:
        return text
    while text and width(f"{text}…", size) > room:
        text = text[:-1]
    return f"{text.rstrip()}…" if text else ""
