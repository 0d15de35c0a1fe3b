"""How often end offsets on a target are read for arrival times.

A record arrived between the request of the last read without it and the response of the first read
with it: its bracket is the interval between two reads plus a response time.
"""

from __future__ import annotations

import math
from typing import Final

MAX_PARTITIONS: Final = 5_000
"""Of a target; with more, brackets are not much narrower than those of ordinary polls."""
REQUESTS_PER_SECOND: Final = 25
"""`ListOffsets` requests to each broker, at most."""
REQUEST_PARTITIONS: Final = 200
"""Partitions of one request."""
_INTERVAL: Final = 0.2
"""300 ms less a response time of 100 ms: 1,000 partitions at a round trip of 50 ms."""
_CPU_SHARE: Final = 0.045
"""Of a core; 5 % with the thread of the producer."""
_CLIENT_CPU: Final = 4e-6
"""CPU seconds per partition of librdkafka's threads (docs/performance.md)."""


def shortest_interval(partitions: int) -> float:
    """Seconds between two reads of *partitions*; all may have the same leader."""
    return max(_INTERVAL, math.ceil(partitions / REQUEST_PARTITIONS) / REQUESTS_PER_SECOND)


def arrival_interval(partitions: int, cpu: float) -> float:
    """The interval after a read for which the reading thread took *cpu* seconds."""
    return max(shortest_interval(partitions), (cpu + partitions * _CLIENT_CPU) / _CPU_SHARE)
