"""Which time a run is to audit: what the user writes, and the window it becomes (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.config.durations import parse_duration
from mm2slo_core.user_errors import UserError

FIRST_LOOKBACK_MS: Final = 3_600_000
"""What the first incremental run looks back."""


@dataclass(frozen=True, slots=True)
class Span:
    """A wish for a window; all None: from where the last run was complete (incremental)."""

    since_ms: int | None = None
    start: int | None = None
    end: int | None = None

    @property
    def incremental(self) -> bool:
        """Whether the window starts where the flows are complete up to."""
        return self.since_ms is None and self.start is None

    @classmethod
    def parse(cls, since: str | None, start: str | None, end: str | None) -> Span:
        """Read `--since`, `--from` and `--to`.

        Raises UserError when one of them cannot be read, or they contradict each other.
        """
        if since is not None and (start is not None or end is not None):
            raise UserError("--since goes without --from and --to: give one or the other")
        if end is not None and start is None:
            raise UserError("--to needs --from: without it the window has no start")
        return cls(
            None if since is None else _milliseconds(since),
            None if start is None else _moment("--from", start),
            None if end is None else _moment("--to", end),
        )

    def window(self, now: int, complete_up_to: int | None = None) -> Window:
        """The window as of *now* (epoch ms); it never ends in the future.

        *complete_up_to* is where an incremental run goes on. Raises UserError for a window of
        which nothing has happened yet, or that ends before it starts.
        """
        if self.start is not None:
            start = self.start
        elif self.since_ms is not None:
            start = now - self.since_ms
        else:
            start = now - FIRST_LOOKBACK_MS if complete_up_to is None else complete_up_to
        if start >= now:
            raise UserError(
                f"the window starts in the future, at {utc(start)}, and it is {utc(now)}:"
                " nothing can have been copied yet; give an earlier --from"
            )
        end = now if self.end is None else min(self.end, now)
        if start >= end:
            raise UserError(
                f"the window ends at {utc(end)}, before it starts at {utc(start)}:"
                " give a --to that is later than --from"
            )
        return Window(start, end)


def utc(epoch_ms: int) -> str:
    """A moment as ISO 8601 in UTC, as the options read it; milliseconds only where there are."""
    moment = datetime.fromtimestamp(epoch_ms / 1000, UTC)
    text = moment.isoformat(timespec="milliseconds" if epoch_ms % 1000 else "seconds")
    return text.replace("+00:00", "Z")


def _milliseconds(text: str) -> int:
    try:
        seconds = parse_duration(text)
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise UserError(f"--since {text!r} is not a time to look back: write for example 1h or 30m")
    return round(seconds * 1000)


def _moment(option: str, text: str) -> int:
    try:
        moment = datetime.fromisoformat(text.strip())
        # Without an offset it is UTC, as everything that the audit prints.
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return round(aware.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise UserError(
            f"{option} {text!r} is not a time in ISO 8601: write for example 2026-03-01T12:00:00Z"
        ) from None
