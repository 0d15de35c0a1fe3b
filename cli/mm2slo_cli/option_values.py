"""Values of command line options: times, flows and KEY=VALUE pairs."""

import re
import time
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from mm2slo_core.objectives.exclusion import MAX_TIMESTAMP_MS
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError

_EXAMPLE: Final = "2026-12-01T02:00Z"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_IN_ZONE: Final = re.compile(r"(?P<clock>\S.*?)\s+(?P<zone>[A-Za-z]\w*(?:/[\w+-]+)*)\s*")


def now_ms() -> int:
    """Return the current time in epoch ms."""
    return time.time_ns() // 1_000_000


def parse_time(option: str, text: str, now: int) -> int:
    """Parse *text* to epoch ms: ISO 8601 with `Z`, an offset or the name of a time zone, or `now`.

    Raises UserError for a time without a zone, and for a local time that does not exist or is
    ambiguous because clocks change.
    """
    written = text.strip()
    if written == "now":
        return now
    zone = None
    if found := _IN_ZONE.fullmatch(written):
        written, zone = found["clock"], _zone(option, text, found["zone"])
    try:
        read = datetime.fromisoformat(written)
    except ValueError:
        raise UserError(
            f"{option} {text!r} is not an ISO 8601 time: use for example {_EXAMPLE}, or now"
        ) from None
    if zone is not None:
        read = _in_zone(option, text, read, zone)
    if read.tzinfo is None:
        raise UserError(
            f"{option} {text!r} has no time zone: "
            f"add Z for UTC ({written}Z), an offset ({written}+01:00), or a zone "
            f"('{written} Europe/Berlin')"
            if len(written) > len("2026-12-01")
            else f"{option} {text!r} is a date without a time: use for example {written}T02:00Z"
        )
    epoch_ms = round((read - _EPOCH).total_seconds() * 1000)
    if not 0 <= epoch_ms < MAX_TIMESTAMP_MS:
        raise UserError(
            f"{option} {text!r} is out of range (years 1970 to 9998): use for example {_EXAMPLE}"
        )
    return epoch_ms


def format_time(epoch_ms: int) -> str:
    """Format a time in UTC as `parse_time` reads it; seconds only if they are not zero."""
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
            f"{option} {text!r}: unknown time zone {name}: "
            "use an offset such as +01:00, or Z for UTC"
        ) from None


def _in_zone(option: str, text: str, read: datetime, zone: ZoneInfo) -> datetime:
    """Interpret *read* as local time in *zone*."""
    if read.tzinfo is not None:
        raise UserError(f"{option} {text!r} has both an offset and a time zone: give one of them")
    first, second = (read.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() == second.utcoffset():
        return first
    exists = first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == read
    why = "is ambiguous" if exists else "does not exist"
    raise UserError(f"{option} {text!r} {why} because clocks change: use an offset such as +01:00")


def parse_key_values(given: list[str] | None) -> dict[str, str]:
    """Parse KEY=VALUE options. Raises UserError for one without `=`."""
    found: dict[str, str] = {}
    for text in given or []:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise UserError(f"{text!r} is not KEY=VALUE, for example tasks.max=4")
        found[key] = value
    return found


def confirm_flow(warning: str, flow: Flow, given: str | None) -> None:
    """Ask for the name of *flow*, unless it was *given*. Raises UserError for another one."""
    typed = given or typer.prompt(f"{warning}. Type {flow.label} to go on")
    if typed.strip() != flow.label:
        raise UserError(f"{typed!r} is not {flow.label!r}: nothing was done")


def parse_flow(label: str) -> Flow:
    """Parse `us->eu`. Raises UserError."""
    try:
        return Flow.parse(label)
    except ValueError as error:
        raise UserError(str(error)) from None
