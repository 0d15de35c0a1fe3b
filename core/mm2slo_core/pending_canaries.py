"""Canaries whose deadline has passed without an arrival, kept until evidence settles them.

While MM2 is stopped for hours, tens of canaries per second accumulate here, at 25 bytes each.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_COMPACT_ABOVE = 1024


class Punctuality(IntEnum):
    """What is settled about availability and latency of a pending canary."""

    SETTLED = 0
    """Bad: it did not arrive by the deadline."""
    OPEN = 1
    """Unknown because the exporter restarted; the arrival time settles it."""
    UNKNOWN = 2
    """Finally unknown: a cluster was unreachable, so the delay is no evidence against MM2."""
    GONE = 3
    """No longer pending."""


class PendingCanary(NamedTuple):
    sequence: int
    source_offset: int
    sent_at: float
    punctuality: Punctuality


class PendingInPartition:
    """The pending canaries of one source partition, in send order."""

    __slots__ = ("_head", "_live", "_offset", "_punctuality", "_sent", "_sequence")

    def __init__(self) -> None:
        self._sequence = array("q")
        self._offset = array("q")
        self._sent = array("d")
        self._punctuality = bytearray()
        self._head = 0
        self._live = 0

    def __len__(self) -> int:
        return self._live

    def append(self, canary: PendingCanary) -> None:
        """Add *canary*; sequences ascend except after late acknowledgements."""
        self._sequence.append(canary.sequence)
        self._offset.append(canary.source_offset)
        self._sent.append(canary.sent_at)
        self._punctuality.append(canary.punctuality)
        self._live += 1

    def first(self) -> PendingCanary | None:
        """Return the oldest pending canary."""
        return self._at(self._head) if self._live else None

    def take(self, sequence: int) -> PendingCanary | None:
        """Remove and return the canary with this *sequence*; None if it is not pending here."""
        if not self._live:
            return None
        k = bisect_left(self._sequence, sequence, self._head)
        if k == len(self._sequence) or self._sequence[k] != sequence:
            try:
                k = self._sequence.index(sequence, self._head)  # appended out of order
            except ValueError:
                return None
        if self._punctuality[k] == Punctuality.GONE:
            return None
        canary = self._at(k)
        self._remove(k)
        return canary

    def take_first(self) -> PendingCanary | None:
        canary = self.first()
        if canary is not None:
            self._remove(self._head)
        return canary

    def take_below(self, offset: int, settle: Callable[[PendingCanary], bool]) -> None:
        """Call *settle* for each canary below source *offset*; remove it if that returns True."""
        k = self._head
        while k < len(self._sequence) and self._offset[k] < offset:
            if self._punctuality[k] != Punctuality.GONE and settle(self._at(k)):
                self._punctuality[k] = Punctuality.GONE
                self._live -= 1
            k += 1
        self._compact()

    def _at(self, k: int) -> PendingCanary:
        return PendingCanary(
            self._sequence[k], self._offset[k], self._sent[k], Punctuality(self._punctuality[k])
        )

    def _remove(self, k: int) -> None:
        self._punctuality[k] = Punctuality.GONE
        self._live -= 1
        self._compact()

    def _compact(self) -> None:
        """Move the head past removed canaries, and free memory occasionally."""
        size = len(self._sequence)
        while self._head < size and self._punctuality[self._head] == Punctuality.GONE:
            self._head += 1
        if self._head == size or self._head > max(_COMPACT_ABOVE, size // 2):
            del self._sequence[: self._head]
            del self._offset[: self._head]
            del self._sent[: self._head]
            del self._punctuality[: self._head]
            self._head = 0


class PendingCanaries:
    """All pending canaries by source partition, up to a limit."""

    __slots__ = ("_limit", "_partitions")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._partitions: dict[int, PendingInPartition] = {}

    def __len__(self) -> int:
        return sum(len(partition) for partition in self._partitions.values())

    def append(self, partition: int, canary: PendingCanary) -> PendingCanary | None:
        """Add *canary*; beyond the limit the oldest one is dropped and returned."""
        self._partitions.setdefault(partition, PendingInPartition()).append(canary)
        if len(self) <= self._limit:
            return None
        oldest = min(
            (each for each in self._partitions.values() if len(each)),
            key=lambda each: first.sequence if (first := each.first()) else 0,
        )
        return oldest.take_first()

    def take(self, sequence: int, likely_partition: int) -> tuple[int, PendingCanary] | None:
        """Remove and return a canary with its partition; searches *likely_partition* first."""
        for partition in sorted(self._partitions, key=likely_partition.__ne__):
            canary = self._partitions[partition].take(sequence)
            if canary is not None:
                return partition, canary
        return None

    def take_below(
        self, partition: int, offset: int, settle: Callable[[PendingCanary], bool]
    ) -> None:
        if partition in self._partitions:
            self._partitions[partition].take_below(offset, settle)

    def drain(self) -> list[int]:
        """Remove all canaries; returns their sequences."""
        drained = []
        for partition in self._partitions.values():
            while (canary := partition.take_first()) is not None:
                drained.append(canary.sequence)
        return drained

    def oldest(self) -> list[PendingCanary]:
        """Return the oldest canary of each partition that has any."""
        return [first for each in self._partitions.values() if (first := each.first())]
