"""Exclusions as text of 80 columns and as JSON."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Final

from mm2slo_cli.exclude_request import length_text
from mm2slo_cli.time_options import format_time
from mm2slo_core.objectives.exclusion import ExclusionState, Mark
from mm2slo_core.objectives.exclusion_document import exclusion_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mm2slo_core.objectives.exclusion import Exclusion

COLUMNS: Final = 80
_INDENT: Final = " " * 17
_MARKS: Final = {
    Mark.ADDED_LATE: "added late at {added}: reports exclude and mark it, burn rates keep "
    "the time before",
    Mark.REMOVED_LATE: "removed late at {removed} by {by}: reports count it again and mark it, "
    "burn rates keep it excluded",
}


def block(exclusion: Exclusion, now: int) -> str:
    """Format one exclusion; the first line has id, state and times."""
    span = exclusion.in_reports or exclusion
    times = f"{format_time(span.start)} to {format_time(span.end)}"
    head = f"{exclusion.id:<15}  {exclusion.state(now):<7}  {times}"
    length = length_text(span.end - span.start)
    fits = len(head) + len(length) + 2 <= COLUMNS
    lines = [f"{head}  {length}" if fits else head]
    lines += _wrapped(f"{', '.join(exclusion.flows)}: {exclusion.reason} ({exclusion.who})")
    lines += [line for each in _remarks(exclusion) for line in _wrapped(each)]
    return "\n".join(lines)


def listing(exclusions: Iterable[Exclusion], now: int) -> str:
    """Format all exclusions, or a sentence if the list is empty."""
    blocks = [block(each, now) for each in exclusions]
    return "\n".join(blocks) or "no planned maintenance; --all includes past and removed"


def as_json(exclusions: Iterable[Exclusion], now: int) -> str:
    """Format as JSON; times are ISO 8601 in UTC or null."""
    found = [exclusion_document(each, now, format_time) for each in exclusions]
    return json.dumps(found, indent=2, ensure_ascii=False)


def is_current(exclusion: Exclusion, now: int) -> bool:
    return exclusion.state(now) in {ExclusionState.PLANNED, ExclusionState.RUNNING}


def _remarks(exclusion: Exclusion) -> Iterator[str]:
    mark, by = exclusion.mark, exclusion.removed_by
    removed = "" if exclusion.removed_at is None else _second(exclusion.removed_at)
    if mark is not None:
        yield _MARKS[mark].format(added=_second(exclusion.added_at), removed=removed, by=by)
    if removed and mark is not Mark.REMOVED_LATE:
        planned = f", planned until {format_time(exclusion.end)}" if exclusion.in_reports else ""
        yield f"{'ended' if exclusion.in_reports else 'removed'} at {removed} by {by}{planned}"
    if exclusion.silence is not None:
        yield f"silence {exclusion.silence}"


def _second(epoch_ms: int) -> str:
    return format_time(epoch_ms // 1000 * 1000)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, COLUMNS, initial_indent=_INDENT, subsequent_indent=_INDENT)
