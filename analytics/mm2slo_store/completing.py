"""How far a topic is complete, and how one more judged window changes that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mm2slo_core.audit.scope import Window


@dataclass(frozen=True, slots=True)
class Span:
    """Complete in [begin, up_to), epoch ms."""

    begin: int
    up_to: int


def advanced(
    known: Span | None, window: Window, oldest_open: int | None, *, restarts: bool
) -> Span:
    """What is complete once *window* has been judged too.

    A window with an open record is complete up to that one; otherwise up to its end. Windows form
    one chain without gaps: one that lies apart changes nothing, for the next run is to begin where
    the chain ends; unless what is between can never be audited (*restarts*). An open record that
    was found later, as when a producer writes old timestamps, pulls the chain back.
    """
    reached = window.end if oldest_open is None else oldest_open
    if known is None or restarts:
        return Span(window.begin, reached)
    if window.begin > known.up_to or window.end < known.begin:
        return known
    if oldest_open is None:
        return Span(min(known.begin, window.begin), max(known.up_to, window.end))
    if oldest_open < known.begin:
        return known
    return Span(min(known.begin, window.begin), oldest_open)
