"""Options of a run, their hash, and the window that a requested time span becomes (pure)."""

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from mm2slo_core.audit.audit_conclusion import DuplicateLimit
from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.config.config_model import Config
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.quantity_text import parse_duration
from mm2slo_core.reporting.report_entry import utc_text
from mm2slo_core.user_errors import UserError


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A requested time range; all None: incremental, from where the last run was complete."""

    since_ms: int | None = None
    start: int | None = None
    end: int | None = None

    @property
    def incremental(self) -> bool:
        """Whether the window starts where the last run was complete."""
        return self.since_ms is None and self.start is None

    @classmethod
    def parse(cls, since: str | None, start: str | None, end: str | None) -> Self:
        """Parse `--since`, `--from` and `--to`. Raises UserError for invalid values."""
        if since is not None and (start is not None or end is not None):
            raise UserError("--since cannot be combined with --from or --to")
        if end is not None and start is None:
            raise UserError("--to requires --from")
        return cls(
            None if since is None else _parse_since(since),
            None if start is None else _parse_moment("--from", start),
            None if end is None else _parse_moment("--to", end),
        )

    def window(self, now: int, complete_up_to: int | None = None) -> Window:
        """The window at *now* (epoch ms); it never ends in the future.

        *complete_up_to*: start of an incremental run. Raises UserError for a window that starts in
        the future or ends before it starts.
        """
        start = max(0, self._start(now, complete_up_to))  # Kafka has no timestamps below 0
        if start >= now:
            raise UserError(
                f"the window starts in the future, at {utc_text(start)}; it is {utc_text(now)}:"
                " set an earlier --from"
            )
        end = now if self.end is None else min(self.end, now)
        if start >= end:
            raise UserError(
                f"the window ends at {utc_text(end)}, before it starts at {utc_text(start)}:"
                " set --to later than --from"
            )
        return Window(start, end)

    def _start(self, now: int, complete_up_to: int | None) -> int:
        if self.start is not None:
            return self.start
        if self.since_ms is not None:
            return now - self.since_ms
        return now - FIRST_LOOKBACK_MS if complete_up_to is None else complete_up_to


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """Flows, topics, time and sample of one run."""

    flows: tuple[str, ...] = ()
    """Labels; empty: all configured flows."""
    topics: tuple[str, ...] = ()
    """Names or patterns of source topics; empty: each flow's `audit.topics`."""
    span: TimeSpan = field(default_factory=TimeSpan)
    sample: Sample = field(default_factory=lambda: Sample(1.0))
    max_pending: float | None = None
    """Seconds, instead of each flow's `audit.max_pending`."""
    duplicates: DuplicateLimit = field(default_factory=DuplicateLimit)
    wait: bool = False
    """Whether to wait until the leases of runs that died have expired."""


def select_flows(config: Config, options: AuditOptions) -> tuple[FlowConfig, ...]:
    """The flows to audit, with the options applied. Raises UserError for an unknown flow."""
    if options.max_pending is not None:
        config = override_max_pending(config, options.max_pending)
    return config.select(options.flows)


_WITHOUT_EFFECT = {"canary", "freshness", "kafka_version"}


def hash_options(flows: tuple[FlowConfig, ...], options: AuditOptions) -> str:
    """Hash (16 hexadecimal digits) of the settings that affect verdicts, without window."""
    deciding = {
        "flows": [flow.model_dump(mode="json", exclude=_WITHOUT_EFFECT) for flow in flows],
        "topics": options.topics,
        "sample": [options.sample.rate, options.sample.salt],
    }
    text = json.dumps(deciding, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def override_max_pending(config: Config, seconds: float) -> Config:
    """*config* with `audit.max_pending` set to *seconds* in every flow."""
    change = {"max_pending": seconds}
    flows = tuple(
        flow.model_copy(update={"audit": flow.audit.model_copy(update=change)})
        for flow in config.flows
    )
    return config.model_copy(update={"flows": flows})


_EPOCH: Final = datetime.fromtimestamp(0, UTC)

FIRST_LOOKBACK_MS: Final = 3_600_000
"""Window length of the first incremental run."""


def _parse_since(text: str) -> int:
    try:
        seconds = parse_duration(text)
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise UserError(f"--since {text!r} is not a duration: use for example 1h or 30m")
    return round(seconds * 1000)


def _parse_moment(option: str, text: str) -> int:
    try:
        moment = datetime.fromisoformat(text.strip())
        # Without an offset it is UTC.
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        # An offset may lead out of the years 1 to 9999: astimezone raises OverflowError.
        return (aware.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        raise UserError(
            f"{option} {text!r} is not an ISO 8601 time: use for example 2026-03-01T12:00:00Z"
        ) from None
