"""Approximate width of drawn text."""

from typing import Final

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
