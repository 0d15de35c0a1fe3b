"""Counts requests per Kafka API from librdkafka's statistics, including retries."""

from __future__ import annotations

import json
import threading
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class RequestCounts:
    """Requests sent to one cluster since start, over all its clients. Thread-safe.

    Each client reports running totals per broker and API name (`brokers.<name>.req` in
    librdkafka's STATISTICS.md); counts of closed clients are kept.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals: Counter[str] = Counter()

    def totals(self) -> Mapping[str, int]:
        """Requests per API name, such as `ListOffsets`, by each client's newest statistics."""
        with self._lock:
            return dict(self._totals)

    def add(self, api: str, count: int = 1) -> None:
        """Count requests of a client without statistics."""
        with self._lock:
            self._totals[api] += count

    def new_handle(self) -> Callable[[str], None]:
        """A statistics callback for one new client."""
        seen: Counter[str] = Counter()

        def on_statistics(document: str) -> None:
            current: Counter[str] = Counter()
            for broker in json.loads(document)["brokers"].values():
                current.update({api: count for api, count in broker["req"].items() if count})
            with self._lock:
                self._totals.update(current - seen)
            seen.clear()
            seen.update(current)

        return on_statistics
