"""Retention headroom: the time until retention reaches the position of a flow."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNLIMITED = "-1"

HEADROOM_LEAST: Final = 15 * 60.0
"""Seconds of headroom below which the next interruption of a flow loses records."""
HEADROOM_AHEAD: Final = 4 * 3600.0
"""Seconds that on-call needs to find the cause and replicate the backlog, or raise retention."""


class RetentionLimit(StrEnum):
    """The limit that removes the record at the position first."""

    TIME = "time"
    SIZE = "size"
    UNLIMITED = "unlimited"
    """No limit is set, the topic is only compacted, or nothing is produced."""
    PASSED = "passed"
    """The record is already removed: the log start is beyond the position."""
    UNKNOWN = "unknown"
    """The configuration, the record's age or the production rate is not known."""


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """The retention settings of a topic."""

    seconds: float | None
    """`retention.ms`; None: unlimited."""
    size_bytes: int | None
    """`retention.bytes` per partition; None: unlimited."""

    @classmethod
    def from_topic_config(cls, config: Mapping[str, str]) -> RetentionPolicy:
        """Read `cleanup.policy`, `retention.ms` and `retention.bytes`.

        A topic that is only compacted has no limit. Raises KeyError if one of the three is
        missing (brokers always return them) and ValueError if one is not a number.
        """
        policies = {policy.strip() for policy in config["cleanup.policy"].split(",")}
        if "delete" not in policies:
            return cls(None, None)
        milliseconds, size = config["retention.ms"].strip(), config["retention.bytes"].strip()
        return cls(
            seconds=None if milliseconds == _UNLIMITED else int(milliseconds) / 1000,
            size_bytes=None if size == _UNLIMITED else int(size),
        )


class Headroom(NamedTuple):
    """Distance between the log start and the position.

    `records` is negative by the number of records already lost. `seconds` is None for the limits
    unlimited and unknown, 0 for passed, and negative if the record at the position is older than
    the limit and is kept only until its segment is removed.
    """

    records: int
    seconds: float | None
    limit: RetentionLimit


def headroom(
    next_offset: int,
    log_start: int,
    policy: RetentionPolicy | None,
    *,
    lag_records: int,
    oldest_age: float | None,
    production_rate: float | None,
) -> Headroom:
    """Return the time until retention reaches the position: the smaller one of time and size.

    By time: retention.ms - *oldest_age*, the age in seconds of the record at the position
    (retention.ms without a backlog). Kafka removes whole segments by their newest record, so the
    record is kept at least that long.
    By size: (next offset - log start) / *production_rate* in records per second, as if the log
    were full and each new byte removed an old one: a lower bound, since the log may have room and
    the newest segment is never removed.
    If one limit that is set cannot be computed, the result is unknown.
    """
    records = next_offset - log_start
    if records < 0:
        return Headroom(records, 0.0, RetentionLimit.PASSED)
    if policy is None:
        return Headroom(records, None, RetentionLimit.UNKNOWN)
    seconds: float | None = None
    limit = RetentionLimit.UNLIMITED
    if policy.seconds is not None:
        age = 0.0 if lag_records == 0 else oldest_age
        if age is None:
            return Headroom(records, None, RetentionLimit.UNKNOWN)
        seconds, limit = policy.seconds - age, RetentionLimit.TIME
    if policy.size_bytes is not None:
        if production_rate is None:
            return Headroom(records, None, RetentionLimit.UNKNOWN)
        if production_rate > 0 and (seconds is None or records / production_rate <= seconds):
            seconds, limit = records / production_rate, RetentionLimit.SIZE
    return Headroom(records, seconds, limit)
