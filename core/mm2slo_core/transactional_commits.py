"""Whether MirrorMaker 2 commits source offsets in transactions, by the offsets of its commits.

With exactly-once support each transaction ends with a marker, which uses the offset after the
commits. Compaction leaves such gaps too, but not at the end of a partition: there only a marker
follows the newest commit. Without transactions, commits of one source partition are written one
after another with nothing but other commits between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping


class TransactionalCommits:
    """Follows the commits of one connector in the partitions of Connect's offsets topic."""

    __slots__ = ("_newest", "_newest_at", "_runs", "found")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all commits, of a topic that is read from its start again."""
        self.found: bool | None = None
        """Whether the newest commits are transactional; None as long as nothing shows it."""
        self._runs: dict[int, tuple[int, set[Hashable]]] = {}
        self._newest: int | None = None
        self._newest_at = 0.0

    def add(self, partition: int, offset: int, at: float, committed: Hashable) -> None:
        """Add the commit at *offset*; *committed* identifies the source partition."""
        last, run = self._runs.get(partition, (-1, set()))
        if last != offset - 1:
            run = set()
        elif committed in run:
            self.found = False
            run = set()
        run.add(committed)
        self._runs[partition] = (offset, run)
        if at >= self._newest_at:
            self._newest, self._newest_at = partition, at

    def read_up_to(self, positions: Mapping[int, int | None]) -> None:
        """State up to which offset (exclusive) each partition was read."""
        if self._newest is None:
            return
        last, _ = self._runs[self._newest]
        if (positions.get(self._newest) or 0) > last + 1:
            self.found = True
