"""Error budgets as bars and text, rounded so that they never look better than they are."""

from __future__ import annotations

from datetime import datetime
from math import floor
from typing import TYPE_CHECKING, Final

from mm2slo_core.reporting.percent_text import signed_share
from mm2slo_report.rendering.value_format import length, moment

if TYPE_CHECKING:
    from datetime import tzinfo

_CELLS: Final = 10
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_EMPTY: Final = "░"
_UNKNOWN: Final = "·"
_LEAST: Final = 0.001


def draw_bar(remaining: float | None) -> str:
    """A remaining error budget in 10 cells, rounded down: full only for an unspent budget.

    Dots if it is unknown, all cells empty if it is exhausted.
    """
    if remaining is None:
        return _UNKNOWN * _CELLS
    eighths = floor(min(max(remaining, 0.0), 1.0) * _CELLS * 8)
    if remaining > 0:
        eighths = max(eighths, 1)
    full, part = divmod(eighths, 8)
    drawn = "█" * full + (_EIGHTHS[part] if part else "")
    return drawn.ljust(_CELLS, _EMPTY)


def format_trend(now: float | None, before: float | None) -> str:
    """Compare a remaining budget with that of the previous period; empty if that is unknown."""
    if before is None:
        return ""
    was = signed_share(before)
    if now is None:
        return f"was {was}"
    if signed_share(now) == was:
        return "unchanged"
    return f"{'▲' if now > before else '▼'} was {was}"


def format_spent(consumed: float) -> str:
    """A spent share of a budget in percent; a very small one is `<0.1 %`, never `0 %`."""
    return "<0.1 %" if 0 < consumed < _LEAST else signed_share(consumed)


def format_interval(start: int, end: int, zone: tzinfo) -> str:
    """`2026-07-14 10:02 to 10:31 CEST (29 min)`."""
    first, last = (datetime.fromtimestamp(at / 1000, zone) for at in (start, end))
    same = first.date() == last.date() and first.utcoffset() == last.utcoffset()
    closing = f"{last:%H:%M %Z}" if same else moment(end, zone)
    opening = f"{first:%Y-%m-%d %H:%M}" if same else moment(start, zone)
    return f"{opening} to {closing} ({length((end - start) / 1000)})"
