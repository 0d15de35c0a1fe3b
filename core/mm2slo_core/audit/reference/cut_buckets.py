"""Pairs equal records without a common timestamp by the bucket of their offset.

Cuts divide both sides of a partition into buckets, and a copy is in the bucket of its record.
Neighbouring buckets are tried for the rest, because copies may overtake each other across a cut. A
group is within one partition.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from mm2slo_core.timeline_record import Side

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mm2slo_core.audit.audit_record import AuditRecord
    from mm2slo_core.audit.audit_scope import UnitScope

_ROUNDS: Final[tuple[Callable[[int], int], ...]] = (
    lambda bucket: bucket,
    lambda bucket: bucket >> 1,
    lambda bucket: (bucket + 1) >> 1,
)
"""The bucket numbers that paired records must have in common, by round."""


class Buckets:
    """The buckets of one unit."""

    def __init__(self, scope: UnitScope) -> None:
        (flow,) = scope.flows
        self._edges = {
            (side, source.partition): [cut[side is Side.TARGET] for cut in source.cuts]
            for source in flow.partitions
            for side in Side
        }

    def of(self, record: AuditRecord) -> int:
        """Return the bucket of *record*, from 0."""
        return bisect_right(self._edges.get((record.side, record.partition), ()), record.offset)

    def pair(
        self, source: Sequence[AuditRecord], target: Sequence[AuditRecord]
    ) -> tuple[list[tuple[AuditRecord, AuditRecord]], list[AuditRecord], list[AuditRecord]]:
        """Return the pairs of one group, and the unpaired records of either side, in order."""
        left, right = list(source), list(target)
        for cell in _ROUNDS:
            cells: defaultdict[int, tuple[list[AuditRecord], list[AuditRecord]]]
            cells = defaultdict(lambda: ([], []))
            for record in left:
                cells[cell(self.of(record))][0].append(record)
            for copy in right:
                cells[cell(self.of(copy))][1].append(copy)
            left, right = [], []
            for number in sorted(cells):
                records, copies = cells[number]
                left += records[len(copies) :]
                right += copies[len(records) :]
        # Equal records pair in order, whichever round selected them.
        of_source, of_target = _without(source, left), _without(target, right)
        return list(zip(of_source, of_target, strict=True)), left, right


def _without(records: Sequence[AuditRecord], left: Sequence[AuditRecord]) -> list[AuditRecord]:
    over = {each.offset for each in left}
    return [each for each in records if each.offset not in over]
