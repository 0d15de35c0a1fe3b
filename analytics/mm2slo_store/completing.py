"""How far a topic is complete, and how one more judged window changes that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mm2slo_core.audit.scope import Window


@dataclass(frozen=True, slots=True)
class Span:
    """Complete in [start, up_to), epoch ms."""

    start: int
    up_to: int


def advanced(known: Span | None, window: Window, reached: int, *, restarts: bool) -> Span:
    """What is complete once *window* has been judged too, itself complete up to *reached*.

    Windows form one chain without gaps: one that lies apart changes nothing, for the next run is
    to start where the chain ends; unless what is between can never be audited (*restarts*). A
    record that is found open later, as when a producer writes old timestamps, pulls the chain back.
    """
    if known is None or (restarts and window.start > known.up_to):
        return Span(window.start, reached)
    if window.start > known.up_to or window.end < known.start:
        return known
    if reached == window.end:
        return Span(min(known.start, window.start), max(known.up_to, window.end))
    if reached < known.start:
        return known
    return Span(min(known.start, window.start), reached)


def passed(known: Span, window: Window, *, gone: bool) -> Span:
    """What is complete once nothing was found in *window* to be judged.

    That no record is there completes it. Where what was there is *gone* it can never be audited:
    nothing before its end is vouched for, nor is it waited for.
    """
    if not gone:
        return advanced(known, window, window.end, restarts=False)
    return Span(window.end, window.end) if window.end > known.up_to else known
