"""Limits, ids and JSON documents of exclusions, shared by command line and HTTP API."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from mm2slo_core.objectives.exclusion import Exclusion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mm2slo_core.topology import Flow

MAX_REASON_LENGTH: Final = 200
MAX_NAME_LENGTH: Final = 80
MAX_TIMESTAMP_MS: Final = 253_370_764_800_000
"""Start of the year 9999 (epoch ms): earlier timestamps are valid dates in any time zone."""


def exclusion_id(start: int, suffix: str) -> str:
    """An id that sorts by the date of *start* (epoch ms) and is valid in URL paths."""
    return f"{datetime.fromtimestamp(start / 1000, UTC):%Y%m%d}-{suffix}"


def matching_flows(patterns: tuple[str, ...], flows: Iterable[Flow]) -> tuple[Flow, ...]:
    """The *flows* that match one of *patterns*."""
    probe = Exclusion(id="", flows=patterns, start=0, end=1, reason="", who="", added_at=0)
    return tuple(flow for flow in flows if probe.covers(flow))


def exclusion_document(
    exclusion: Exclusion, now: int, moment: Callable[[int], str]
) -> dict[str, Any]:
    """*exclusion* at *now* as JSON types; *moment* formats times."""
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
