"""Maps offsets of a source partition to those of its copies, to bound what can be judged (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mm2slo_core.flow_offsets import SyncRuns


@dataclass(frozen=True, slots=True)
class CopyMap:
    """A source partition and the target partition of the same number."""

    runs: SyncRuns | None
    """Runs of the source log's syncs; None: no syncs."""
    copies_start: int
    """Target offset where this log's copies start; lower ones may be of an earlier log."""
    known_from: int
    """Source offset from which the flow should have copied all records."""
    dense: bool
    """Whether each target offset is one record of this flow."""
    source_end: int
    target_end: int
    at_source_start: int | None = None
    """Target offset at the time of the source's first record, if looked up."""
    at_target_start: int | None = None
    """Source offset at the time of the target's first record, if looked up."""

    def auditable_from(self, source_start: int) -> int:
        """The first target offset whose source record is certainly at or above *source_start*."""
        if source_start == 0:
            return self.copies_start
        bounds = None if self.runs is None else self.runs.target_bounds(source_start)
        reached = self.at_source_start if bounds is None else bounds.upper
        reached = self.target_end if reached is None else min(reached, self.target_end)
        return max(self.copies_start, reached)

    def judged_from(self, target_start: int) -> int:
        """The first source offset whose copy the target cannot have removed."""
        if target_start == 0:
            return self.known_from
        reached: int | None = self.at_target_start
        if self.runs is not None and len(self.runs):
            bounds = self.runs.upstream_bounds(target_start)
            if bounds is None:
                reached = next(self.runs.points())[0]
            elif bounds.upper is not None:
                reached = bounds.upper
            else:
                # After the last sync copies are contiguous, otherwise there would be another sync.
                reached = bounds.lower if self.dense else None
        reached = self.source_end if reached is None else min(reached, self.source_end)
        return max(self.known_from, reached)
