"""The legend below a chart, and its height."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dashboard_preview.markup import Markup, element
from dashboard_preview.text_width import width

_LINE: Final = 20.0
_AROUND: Final = 38.0
"""Pixels: the swatch and the spaces around an entry."""
_SHARE: Final = 0.38
"""Maximum share of the panel's height; more entries need scrolling."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A series or a state; `figure` is its latest value, if the legend shows it."""

    name: str
    colour: str
    figure: str = ""
    square: bool = False

    @property
    def text(self) -> str:
        """Its full text."""
        return f"{self.name} Last *: {self.figure}" if self.figure else self.name


def height(entries: Sequence[Entry], room: tuple[float, float]) -> float:
    """Pixels that *entries* take in a panel of the size *room*, in whole lines."""
    if not entries:
        return 0.0
    lines, used = 1, 0.0
    for each in entries:
        wide = min(width(each.text) + _AROUND, room[0])
        if used and used + wide > room[0]:
            lines, used = lines + 1, 0.0
        used += wide
    return min(lines * _LINE, max(room[1] * _SHARE // _LINE, 1) * _LINE)


def legend(entries: Sequence[Entry], high: float) -> Markup:
    """*entries* in a box of *high* pixels."""
    items = (
        element(
            "li",
            element(
                "i", class_="square" if each.square else None, style=f"background:{each.colour}"
            ),
            element("span", each.name),
            *([element("em", f"Last *: {each.figure}")] if each.figure else []),
            title=each.text,
        )
        for each in entries
    )
    return element("ul", *items, class_="legend", style=f"height:{high:.0f}px")
