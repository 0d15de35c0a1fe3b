"""Planned maintenance as it is made and told, the same on the command line and over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from mm2slo_core.objectives.exclusion import Exclusion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mm2slo_core.topology import Flow

LONGEST_REASON: Final = 200
LONGEST_NAME: Final = 80
LATEST_MS: Final = 253_370_764_800_000
"""The year 9999 (epoch ms): no moment lies in it, so that each is a date in any zone."""


def exclusion_id(start: int, suffix: str) -> str:
    """An id that sorts by the day of *start* (epoch ms) and may stand in a path."""
    return f"{datetime.fromtimestamp(start / 1000, UTC):%Y%m%d}-{suffix}"


def covered(patterns: tuple[str, ...], flows: Iterable[Flow]) -> tuple[Flow, ...]:
    """Those of *flows* that one of *patterns* matches."""
    probe = Exclusion(
        id="", flows=patterns, start=0, end=1, reason="", who="", added_at=0
    )  # so that patterns mean here what they mean there
    return tuple(flow for flow in flows if probe.covers(flow))


def exclusion_document(
    exclusion: Exclusion, now: int, moment: Callable[[int], str]
) -> dict[str, Any]:
    """It as it stands at *now*, in JSON's own types; *moment* words times, null is never."""
    mark, removed = exclusion.mark, exclusion.removed_at
    return {
        "id": exclusion.id,
        "state": exclusion.state(now).value,
        "flows": list(exclusion.flows),
        "from": moment(exclusion.start),
        "to": moment(exclusion.end),
        "reason": exclusion.reason,
        "added_by": exclusion.who,
        "added_at": moment(exclusion.added_at),
        "removed_by": exclusion.removed_by,
        "removed_at": None if removed is None else moment(removed),
        "mark": None if mark is None else mark.value,
        "silence": exclusion.silence,
    }
