"""Replays: blocks of records that were replicated again."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from mm2slo_core.audit.unit_outcome import ReplayEvent
from mm2slo_core.timeline_record import Side

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mm2slo_core.audit.audit_record import AuditRecord
    from mm2slo_core.audit.audit_scope import Window
    from mm2slo_core.audit.reference.record_groups import Pair


def find_replays(
    records: Iterable[AuditRecord], duplicates: Sequence[Pair], window: Window
) -> dict[tuple[int, int], ReplayEvent]:
    """Return the replay of each judged duplicate that is in one, by (partition, offset).

    A replay is a run of two or more duplicates without another target record in between.
    """
    copies = {(copy.partition, copy.offset) for _, copy in duplicates}
    targets = sorted(
        (each for each in records if each.side is Side.TARGET),
        key=lambda each: (each.partition, each.offset),
    )
    events: dict[tuple[int, int], ReplayEvent] = {}

    def run_of(record: AuditRecord) -> tuple[int, bool]:
        return record.partition, (record.partition, record.offset) in copies

    for (partition, surplus), run in groupby(targets, key=run_of):
        block = list(run)
        judged = [each.offset for each in block if window.contains(each.timestamp)]
        if surplus and len(block) > 1 and judged:
            event = ReplayEvent(partition, judged[0], judged[-1] + 1, len(judged))
            events.update(((partition, offset), event) for offset in judged)
    return events
