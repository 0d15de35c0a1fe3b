"""Tracks the replicated position of one source partition."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mm2slo_core.flow_offsets import PositionQuality, estimate_position

if TYPE_CHECKING:
    from mm2slo_core.flow_offsets import Position
    from mm2slo_exporter.state.partition_reading import FlowRules, PartitionReading

NOTHING_REPLICATED = frozenset({PositionQuality.NOT_STARTED, PositionQuality.SOURCE_RESET})
"""The position is then the log start, which retention advances, not replication."""


class PositionTracker:
    """The position over rounds; it skips offsets without records and removed ones."""

    __slots__ = ("_estimate", "_removed_below", "advance")

    def __init__(self) -> None:
        self._estimate: Position | None = None
        self._removed_below = 0
        self.advance = 0
        """Offsets that replication passed since the preceding round."""

    def observe(
        self, reading: PartitionReading, end: int | None, rules: FlowRules
    ) -> Position | None:
        """The position of a round; the last one while the source is not read."""
        before = self._estimate
        self.advance = 0
        if end is not None and reading.source_start is not None:
            self._estimate = _estimate(reading, end, reading.source_start, rules, before)
            if before is not None and self._estimate.quality not in NOTHING_REPLICATED:
                self.advance = max(0, self._estimate.next_offset - before.next_offset)
        if self._estimate is None:
            return None
        next_offset = max(self._estimate.next_offset, self._removed_below)
        return replace(self._estimate, next_offset=reading.skip_empty_offsets(next_offset))

    def skip_removed(self, log_start: int) -> None:
        """Continue at *log_start*: MirrorMaker 2 has resumed, and can only do so there."""
        self._removed_below = log_start


def _estimate(
    reading: PartitionReading,
    end: int,
    log_start: int,
    rules: FlowRules,
    before: Position | None,
) -> Position:
    position = estimate_position(
        committed=reading.committed,
        sync=reading.sync,
        target_end=reading.target_end,
        high_watermark=end,
        log_start=log_start,
        shared_target=rules.shared_target,
        exactly_once=rules.exactly_once,
    )
    if (
        before is not None
        and position.quality is PositionQuality.STALE
        and position.next_offset < before.next_offset <= end
    ):
        # The position does not go back while the target is unreadable.
        return replace(position, next_offset=before.next_offset)
    return position
