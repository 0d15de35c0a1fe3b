"""Validation of a requested exclusion: flows, times, reason."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from mm2slo_cli.time_options import format_time, parse_time
from mm2slo_core.config.durations import parse_duration
from mm2slo_core.objectives.exclusion import (
    MAX_EXCLUSION_MS,
    MIN_EXCLUSION_MS,
    Exclusion,
    find_overlap,
)
from mm2slo_core.objectives.exclusion_document import (
    MAX_NAME_LENGTH,
    MAX_REASON_LENGTH,
    exclusion_id,
    matching_flows,
)
from mm2slo_core.promql import duration
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mm2slo_core.config import Config
    from mm2slo_core.topology import Flow


def flow_patterns(config: Config, wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the patterns *wanted*; each must match a flow of *config*.

    Raises UserError for one that does not, with the nearest flow if it has no wildcard.
    """
    if not wanted:
        raise UserError("name the flows: --flow 'us->eu', --flow 'us->*', or --flow '*' for all")
    found = []
    for text in wanted:
        pattern = "->".join(part.strip() for part in text.strip().split("->"))
        if not any(character in pattern for character in "*?["):
            pattern = config.select([text])[0].label
        elif not matching_flows((pattern,), (each.flow for each in config.flows)):
            known = ", ".join(sorted(each.label for each in config.flows))
            raise UserError(f"--flow {text!r} matches no configured flow; configured: {known}")
        if pattern not in found:
            found.append(pattern)
    return tuple(found)


def exclusion_times(start: str, end: str | None, lasting: str | None, now: int) -> tuple[int, int]:
    """Return start and end (epoch ms) from `--from` and either `--to` or `--for`.

    Raises UserError for unreadable or unusable times.
    """
    if (end is None) == (lasting is None):
        raise UserError("no end or two ends: give either --to or --for, for example --for 2h")
    starts = parse_time("--from", start, now)
    ends = starts + _milliseconds(lasting) if lasting else parse_time("--to", end or "", now)
    if ends <= starts:
        raise UserError(
            f"the maintenance ends at {format_time(ends)}, "
            f"not after its start at {format_time(starts)}: give a --to that is later than --from"
        )
    if ends - starts < MIN_EXCLUSION_MS:
        raise UserError(
            f"the maintenance lasts {(ends - starts) / 1000:g} s: rules are evaluated every 30 s, "
            f"so exclude {MIN_EXCLUSION_MS // 1000} s or more"
        )
    if ends - starts > MAX_EXCLUSION_MS:
        raise UserError(
            f"the maintenance lasts {length_text(ends - starts)}, more than "
            f"{length_text(MAX_EXCLUSION_MS)}: an objective without a quarter of its 28 days "
            "means little; exclude only the time of the work, or several shorter times"
        )
    return starts, ends


def new_exclusion(
    patterns: tuple[str, ...], times: tuple[int, int], *, reason: str, who: str, now: int
) -> Exclusion:
    """Return the exclusion with a new id. Raises UserError for an invalid text."""
    return Exclusion(
        id=exclusion_id(times[0], secrets.token_hex(3)),
        flows=patterns,
        start=times[0],
        end=times[1],
        reason=checked_text("--reason", reason, MAX_REASON_LENGTH),
        who=checked_text("--by", who, MAX_NAME_LENGTH),
        added_at=now,
    )


def refuse_overlap(new: Exclusion, existing: Iterable[Exclusion], flows: Iterable[Flow]) -> None:
    """Raise UserError when a part of *new* is already excluded."""
    found = find_overlap(new, existing, flows)
    if found is None:
        return
    other, flow = found
    span = other.in_reports or other
    raise UserError(
        f"{flow.label} is already excluded from {format_time(span.start)} to "
        f"{format_time(span.end)} by {other.id} ({other.reason}): "
        f"give other times, or first run mm2slo exclude remove {other.id}"
    )


def checked_text(option: str, text: str, longest: int) -> str:
    """Return *text* on one line. Raises UserError if it is empty, too long or unprintable."""
    line = " ".join(text.split())
    if not line:
        raise UserError(f"{option} is empty: give a short text for the readers of the report")
    if len(line) > longest:
        raise UserError(f"{option} has {len(line)} characters: expected up to {longest}")
    if not line.isprintable():
        raise UserError(f"{option} {line!r} has control characters: remove them")
    return line


def length_text(milliseconds: int) -> str:
    """Format a duration as Prometheus does, for example `1d6h` or `1m30s`, without a fraction."""
    return duration(milliseconds // 1000 if milliseconds >= 1000 else milliseconds / 1000)


def _milliseconds(text: str) -> int:
    try:
        seconds = parse_duration(text)
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise UserError(f"--for {text!r} is not a duration: write for example 2h or 90m")
    return round(seconds * 1000)
