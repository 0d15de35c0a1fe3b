"""The span in which a topic is complete, and how another window changes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mm2slo_core.audit.audit_scope import Window


@dataclass(frozen=True, slots=True)
class CompletionSpan:
    """Complete in [start, up_to), epoch ms."""

    start: int
    up_to: int


def extend_completion(
    known: CompletionSpan | None, window: Window, reached: int, *, restarts: bool
) -> CompletionSpan:
    """The complete span after *window* was judged and found complete up to *reached*.

    The span has no gaps: a window that is not adjacent changes nothing, because the next run starts
    where the span ends, unless the gap can never be audited (*restarts*). A record that is found
    open later, such as one with an old timestamp, shortens the span.
    """
    if known is None or (restarts and window.start > known.up_to):
        return CompletionSpan(window.start, reached)
    if window.start > known.up_to or window.end < known.start:
        return known
    if reached == window.end:
        return CompletionSpan(min(known.start, window.start), max(known.up_to, window.end))
    if reached < known.start:
        return known
    return CompletionSpan(min(known.start, window.start), reached)


def skip_window(known: CompletionSpan, window: Window, *, gone: bool) -> CompletionSpan:
    """The complete span after *window* was found without records to judge.

    An empty window is complete. If its records are *gone* it can never be audited: the span then
    restarts at its end.
    """
    if not gone:
        return extend_completion(known, window, window.end, restarts=False)
    return CompletionSpan(window.end, window.end) if window.end > known.up_to else known
