"""One colour per meaning on every dashboard: Okabe and Ito's palette for colour-blind readers.

https://jfly.uni-koeln.de/color/ . A text or value always accompanies the colour.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


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


LINES: Final = (
    *("#1F8FD0", "#7A33E0", "#E22BD6", "#777700"),
    *("#993377", "#1C57B5", "#A98CFF"),
)
"""Lines among others. They differ from each other and from the colours with a meaning, and are
visible on black and on white."""
