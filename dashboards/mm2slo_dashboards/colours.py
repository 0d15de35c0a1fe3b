"""One colour per meaning, on every board: Okabe and Ito's palette, told apart by any eye.

https://jfly.uni-koeln.de/color/ . A colour never stands alone: a word or a figure is beside it.
"""

from __future__ import annotations

from enum import StrEnum


class Colour(StrEnum):
    """What a colour says; the value is the colour."""

    GOOD = "#009E73"
    """As promised."""
    RESTING = "#56B4E9"
    """Nothing to do, and nothing wrong."""
    WARNING = "#E69F00"
    """Somebody should look at it."""
    BAD = "#D55E00"
    """Broken, or a promise is broken."""
    UNKNOWN = "#999999"
    """Nobody knows."""
    PLANNED = "#CC79A7"
    """People's doing: maintenance, a connector that was paused."""
    NEUTRAL = "#0072B2"
    """A figure that is neither good nor bad."""
    COURSE = "#1F8FD0"
    """A line among others. Between the palette's two blues: of its shades, the darkest one is seen
    on black and the brightest one on white."""
