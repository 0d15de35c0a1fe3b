"""What plays in the demo: topics, how fast they fill, and who reads them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


@dataclass(frozen=True, slots=True)
class Stream:
    """A topic of a cluster and the records per second written to it."""

    cluster: str
    topic: str
    partitions: int
    rate: float


class Pace(StrEnum):
    """How a consumer group keeps up."""

    HEAD = "head"  # commits the newest record
    BEHIND = "behind"  # commits a second or so late
    IDLE = "idle"  # committed once, and never came back


@dataclass(frozen=True, slots=True)
class Reader:
    """A consumer group on one topic of its own cluster."""

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
"""By so many records of each partition a group is behind."""
