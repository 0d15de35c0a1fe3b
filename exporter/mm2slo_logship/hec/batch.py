"""Envelopes that are sent together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_logship.files.tailed_file import Item

MAX_BYTES: Final = 1_000_000
"""Below the limit of every release: 1 MB before Splunk 7, 5 MB in trials of Splunk Cloud."""
MAX_EVENTS: Final = 1_000


class Batch(NamedTuple):
    items: tuple[Item, ...]

    @property
    def body(self) -> bytes:
        return b"".join(item.body for item in self.items)

    def split(self, at: int) -> tuple[Batch, Batch]:
        return Batch(self.items[:at]), Batch(self.items[at:])


class BatchBuilder:
    """Collects items until a batch is full, or as old as *linger* seconds."""

    def __init__(self, linger: float) -> None:
        self._linger = linger
        self._items: list[Item] = []
        self._size = 0
        self.since = 0.0  # when the first item was added

    def __len__(self) -> int:
        return len(self._items)

    @property
    def is_full(self) -> bool:
        return self._size >= MAX_BYTES or len(self._items) >= MAX_EVENTS

    def add(self, items: Iterable[Item], now: float) -> None:
        if not self._items:
            self.since = now
        for item in items:
            self._items.append(item)
            self._size += len(item.body)

    def is_due(self, now: float) -> bool:
        """Whether there is something to send now."""
        return bool(self._items) and (self.is_full or now - self.since >= self._linger)

    def take(self, now: float) -> Batch:
        """As many items as one request may have; at least one, however large it is."""
        size = count = 0
        for item in self._items[:MAX_EVENTS]:
            if count and size + len(item.body) > MAX_BYTES:
                break
            size += len(item.body)
            count += 1
        batch = Batch(tuple(self._items[:count]))
        del self._items[:count]
        self._size -= size
        self.since = now
        return batch
