"""What the user asks to exclude, checked: flows, times, reason (pure)."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from mm2slo_cli.moments import moment, shown
from mm2slo_core.config.durations import format_duration, parse_duration
from mm2slo_core.errors import UserError
from mm2slo_core.objectives.exclusion import LONGEST_MS, SHORTEST_MS, Exclusion, clash
from mm2slo_core.objectives.planning import (
    LONGEST_NAME,
    LONGEST_REASON,
    covered,
    exclusion_id,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mm2slo_core.config import Config
    from mm2slo_core.topology import Flow


def patterns_of(config: Config, wanted: Sequence[str]) -> tuple[str, ...]:
    """The patterns *wanted*, each of which means a flow of *config*.

    Raises UserError for one that means none, with the nearest label where it has no wildcard.
    """
    if not wanted:
        raise UserError("name the flows: --flow 'us->eu', --flow 'us->*', or --flow '*' for all")
    found = []
    for text in wanted:
        pattern = "->".join(part.strip() for part in text.strip().split("->"))
        if not any(character in pattern for character in "*?["):
            pattern = config.select([text])[0].label
        elif not covered((pattern,), (each.flow for each in config.flows)):
            known = ", ".join(sorted(each.label for each in config.flows))
            raise UserError(f"--flow {text!r} matches no configured flow: expected some of {known}")
        if pattern not in found:
            found.append(pattern)
    return tuple(found)


def times_of(start: str, end: str | None, lasting: str | None, now: int) -> tuple[int, int]:
    """Begin and end in epoch ms, of `--from` and one of `--to` and `--for`.

    Raises UserError for times that cannot be read or be an exclusion.
    """
    if (end is None) == (lasting is None):
        raise UserError("say when it ends: give either --to, or --for as in --for 2h")
    starts = moment("--from", start, now)
    ends = starts + _milliseconds(lasting) if lasting else moment("--to", end or "", now)
    if ends <= starts:
        raise UserError(
            f"the maintenance ends at {shown(ends)}, and it starts at {shown(starts)}: "
            "give a --to that is later than --from"
        )
    if ends - starts < SHORTEST_MS:
        raise UserError(
            f"the maintenance lasts {(ends - starts) / 1000:g} s: rules look every 30 s, so "
            f"exclude {SHORTEST_MS // 1000} s or more"
        )
    if ends - starts > LONGEST_MS:
        raise UserError(
            f"the maintenance lasts {lasts(ends - starts)}, more than {lasts(LONGEST_MS)}: with a "
            "quarter of 28 days left out, an objective says little; exclude the time of the work "
            "alone, or several shorter times"
        )
    return starts, ends


def exclusion_of(
    patterns: tuple[str, ...], times: tuple[int, int], *, reason: str, who: str, now: int
) -> Exclusion:
    """The exclusion, with an id that no other has. Raises UserError for an unusable text."""
    return Exclusion(
        id=exclusion_id(times[0], secrets.token_hex(3)),
        flows=patterns,
        start=times[0],
        end=times[1],
        reason=text_of("--reason", reason, LONGEST_REASON),
        who=text_of("--by", who, LONGEST_NAME),
        added_at=now,
    )


def refuse_clash(new: Exclusion, existing: Iterable[Exclusion], flows: Iterable[Flow]) -> None:
    """Raise UserError when a part of *new* is excluded already."""
    found = clash(new, existing, flows)
    if found is None:
        return
    former, flow = found
    span = former.in_reports or former
    raise UserError(
        f"{flow.label} is excluded from {shown(span.start)} to {shown(span.end)} already, by "
        f"{former.id} ({former.reason}): give other times, or first run: "
        f"mm2slo exclude remove {former.id}"
    )


def text_of(option: str, text: str, longest: int) -> str:
    """*text* on one line. Raises UserError when it is empty, too long or not to be printed."""
    words = " ".join(text.split())
    if not words:
        raise UserError(f"{option} is empty: say it in a few words, for those who read the report")
    if len(words) > longest:
        raise UserError(f"{option} has {len(words)} characters: expected up to {longest}")
    if not words.isprintable():
        raise UserError(f"{option} {words!r} holds control characters: leave them out")
    return words


def lasts(milliseconds: int) -> str:
    """A length of time in the largest units, as in `1d6h` or `90s`."""
    words, rest = "", milliseconds // 1000
    for unit, seconds in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, rest = divmod(rest, seconds)
        words += f"{count}{unit}" if count else ""
    return words or format_duration(milliseconds / 1000)


def _milliseconds(text: str) -> int:
    try:
        seconds = parse_duration(text)
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise UserError(f"--for {text!r} is not a length of time: write for example 2h or 90m")
    return round(seconds * 1000)
