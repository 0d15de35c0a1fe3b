"""Exclusions for people, within 80 columns, and as JSON."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Final

from mm2slo_cli.exclude_request import lasts
from mm2slo_cli.moments import shown
from mm2slo_core.objectives.exclusion import ExclusionState, Mark
from mm2slo_core.objectives.planning import exclusion_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mm2slo_core.objectives.exclusion import Exclusion

COLUMNS: Final = 80
_INDENT: Final = " " * 17
_MARKS: Final = {
    Mark.ADDED_LATE: "added late at {added}: reports leave it out and say so, burn rates keep "
    "what had passed",
    Mark.TAKEN_BACK: "taken back at {removed} by {by}: reports count it again and say so, burn "
    "rates had left it out",
}


def block(exclusion: Exclusion, now: int) -> str:
    """One exclusion in a few lines; the first is id, state and times."""
    span = exclusion.in_reports or exclusion
    head = (
        f"{exclusion.id:<15}  {exclusion.state(now):<7}  {shown(span.start)} to {shown(span.end)}"
    )
    length = lasts(span.end - span.start)
    fits = len(head) + len(length) + 2 <= COLUMNS
    lines = [f"{head}  {length}" if fits else head]
    lines += _wrapped(f"{', '.join(exclusion.flows)}: {exclusion.reason} ({exclusion.who})")
    lines += [line for each in _remarks(exclusion) for line in _wrapped(each)]
    return "\n".join(lines)


def listing(exclusions: Iterable[Exclusion], now: int) -> str:
    """All of them, or a sentence that there is none."""
    blocks = [block(each, now) for each in exclusions]
    return "\n".join(blocks) or "no planned maintenance; --all shows past and removed ones"


def as_json(exclusions: Iterable[Exclusion], now: int) -> str:
    """All of them; times are ISO 8601 in UTC, null for never."""
    found = [exclusion_document(each, now, shown) for each in exclusions]
    return json.dumps(found, indent=2, ensure_ascii=False)


def is_current(exclusion: Exclusion, now: int) -> bool:
    """Whether it is planned or running."""
    return exclusion.state(now) in {ExclusionState.PLANNED, ExclusionState.RUNNING}


def _remarks(exclusion: Exclusion) -> Iterator[str]:
    mark, by = exclusion.mark, exclusion.removed_by
    removed = "" if exclusion.removed_at is None else _second(exclusion.removed_at)
    if mark is not None:
        yield _MARKS[mark].format(added=_second(exclusion.added_at), removed=removed, by=by)
    if removed and mark is not Mark.TAKEN_BACK:
        planned = f", planned until {shown(exclusion.end)}" if exclusion.in_reports else ""
        yield f"{'ended' if exclusion.in_reports else 'removed'} at {removed} by {by}{planned}"
    if exclusion.silence is not None:
        yield f"silence {exclusion.silence}"


def _second(epoch_ms: int) -> str:
    return shown(epoch_ms // 1000 * 1000)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, COLUMNS, initial_indent=_INDENT, subsequent_indent=_INDENT)
