"""Moments as people write them, with the zone they mean; and as we write them, in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mm2slo_core.errors import UserError
from mm2slo_core.objectives.planning import LATEST_MS

_EXAMPLE: Final = "2026-12-01T02:00Z"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_IN_ZONE: Final = re.compile(r"(?P<clock>\S.*?)\s+(?P<zone>[A-Za-z]\w*(?:/[\w+-]+)*)\s*")


def moment(option: str, text: str, now: int) -> int:
    """*text* in epoch ms: ISO 8601 with `Z` or an offset, or a time and a zone's name, or `now`.

    Raises UserError for a time without a zone: readers in two places would take it for two
    moments; and for one that the zone's clocks do not show, or show twice.
    """
    words = text.strip()
    if words == "now":
        return now
    zone = None
    if found := _IN_ZONE.fullmatch(words):
        words, zone = found["clock"], _zone(option, text, found["zone"])
    try:
        read = datetime.fromisoformat(words)
    except ValueError:
        raise UserError(
            f"{option} {text!r} is not a time in ISO 8601: write for example {_EXAMPLE}, or now"
        ) from None
    if zone is not None:
        read = _placed(option, text, read, zone)
    if read.tzinfo is None:
        raise UserError(
            f"{option} {text!r} says no zone, so it is another moment in each place: "
            f"write {words}Z for UTC, an offset as in {words}+01:00, or a zone as in "
            f"'{words} Europe/Berlin'"
            if len(words) > len("2026-12-01")
            else f"{option} {text!r} is a day without a time: write for example {words}T02:00Z"
        )
    epoch_ms = round((read - _EPOCH).total_seconds() * 1000)
    if not 0 <= epoch_ms < LATEST_MS:
        raise UserError(
            f"{option} {text!r} is out of range, which is from 1970 to 9998: "
            f"write for example {_EXAMPLE}"
        )
    return epoch_ms


def shown(epoch_ms: int) -> str:
    """A moment in UTC, as the options read it; seconds only where there are."""
    read = datetime.fromtimestamp(epoch_ms / 1000, UTC)
    parts = "minutes"
    if epoch_ms % 60_000:
        parts = "milliseconds" if epoch_ms % 1000 else "seconds"
    return read.isoformat(timespec=parts).replace("+00:00", "Z")


def _zone(option: str, text: str, name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UserError(
            f"{option} {text!r}: this machine knows no zone {name}: "
            "write an offset instead, as in +01:00, or Z for UTC"
        ) from None


def _placed(option: str, text: str, read: datetime, zone: ZoneInfo) -> datetime:
    """*read* on the clocks of *zone*."""
    if read.tzinfo is not None:
        raise UserError(f"{option} {text!r} has both an offset and a zone: give one of them")
    first, second = (read.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() == second.utcoffset():
        return first
    exists = first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == read
    why = "happens twice" if exists else "does not exist"
    raise UserError(
        f"{option} {text!r} {why} there, since the clocks change: "
        "write it with an offset, as in +01:00"
    )
