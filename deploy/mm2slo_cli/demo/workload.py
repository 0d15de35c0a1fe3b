"""Topics, record rates and consumer groups of the demo."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


@dataclass(frozen=True, slots=True)
class Stream:
    """A topic and the records per second produced to it."""

    cluster: str
    topic: str
    partitions: int
    rate: float


class Pace(StrEnum):
    """How far a consumer group lags."""

    HEAD = "head"  # commits the newest record
    BEHIND = "behind"  # commits about a second late
    IDLE = "idle"  # committed once and stopped


@dataclass(frozen=True, slots=True)
class Reader:
    """A consumer group of one topic."""

    cluster: str
    topic: str
    group: str
    pace: Pace


STREAMS: Final = (
    Stream("us", "orders", partitions=3, rate=40),
    Stream("us", "payments", partitions=2, rate=20),
    Stream("eu", "orders", partitions=3, rate=15),
    Stream("eu", "clicks", partitions=4, rate=80),
)
READERS: Final = (
    Reader("us", "orders", "order-service", Pace.HEAD),
    Reader("us", "payments", "fraud-check", Pace.BEHIND),
    Reader("us", "orders", "monthly-report", Pace.IDLE),
    Reader("eu", "clicks", "recommendations", Pace.HEAD),
    Reader("eu", "orders", "invoicing", Pace.BEHIND),
    Reader("eu", "clicks", "ad-hoc-analysis", Pace.IDLE),
)
BEHIND_RECORDS: Final = 10
"""Lag of a group in records per partition."""
