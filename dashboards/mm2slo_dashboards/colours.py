"""One colour per meaning on every dashboard: Okabe and Ito's palette for colour-blind readers.

https://jfly.uni-koeln.de/color/ . A text or value always accompanies the colour.
"""

from __future__ import annotations

from enum import StrEnum


class Colour(StrEnum):
    """What a colour means; the value is the colour."""

    GOOD = "#009E73"
    """Objective met."""
    RESTING = "#56B4E9"
    """Idle: nothing to replicate, nothing wrong."""
    WARNING = "#E69F00"
    """Needs a look."""
    BAD = "#D55E00"
    """Failed, or an objective is missed."""
    UNKNOWN = "#999999"
    """Not known."""
    PLANNED = "#CC79A7"
    """Deliberate: maintenance, a paused connector."""
    NEUTRAL = "#0072B2"
    """A value that is neither good nor bad."""
    LINE = "#1F8FD0"
    """A line among others. Between the palette's two blues, so that its darkest shade is visible on
    black and its brightest on white."""
