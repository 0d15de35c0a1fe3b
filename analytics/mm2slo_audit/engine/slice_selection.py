"""Which time slices need a second pass over their records, from the marks of the first."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Final

from mm2slo_audit.engine.group_marks import (
    DECIDED,
    DUPLICATED,
    LATE,
    MISSING,
    OVERTAKEN,
    REPEATED,
    UNEXPLAINED,
    Mark,
)
from mm2slo_audit.engine.record_schema import TARGET
from mm2slo_audit.engine.unit_columns import judges_order
from mm2slo_core.audit.record_verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mm2slo_audit.engine.time_slices import TimeSlices
    from mm2slo_core.audit.audit_scope import UnitScope

Place = tuple[int, int]
"""Topic and partition."""
Masks = defaultdict[tuple[int, int, int], int]
"""Masks of fine slices by topic, partition and coarse slice."""
Range = tuple[int, int]
"""Offsets, both ends included."""

_SHOWN: Final = (Verdict.LOST, Verdict.OVERDUE, Verdict.EXTRA)
"""Decided verdicts that need evidence."""
_OPEN: Final = (Verdict.PENDING, Verdict.OVERDUE)
MAX_REPEATED: Final = 20_000
"""Groups of a partition that are looked up one by one; with more the whole partition is read."""


@dataclass(slots=True)
class SliceSelection:
    """What the second pass reads."""

    masks: Masks = field(default_factory=lambda: defaultdict(int))
    whole: set[Place] = field(default_factory=set)
    """Partitions to read completely."""
    ranges: defaultdict[tuple[int, int, int], list[Range]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """By topic, partition and side: offsets whose slices are read as well."""
    repeated: Masks = field(default_factory=lambda: defaultdict(int))
    """The part of `masks` with repeated records whose order matters."""
    oldest: dict[int, int] = field(default_factory=dict)
    """By topic: timestamp of the oldest decided record that is certainly open."""

    def add(self, mark: Mark, fine: int) -> None:
        """Add fine slices of a mark."""
        if fine:
            self.masks[mark.topic, mark.partition, mark.coarse] |= fine


def select_slices(found: Iterable[Mark], slices: TimeSlices, cap: int | None) -> SliceSelection:
    """The fewest slices that decide all verdicts, with *cap* records as evidence of each."""
    selection = SliceSelection()
    scopes = {each.index: each for each in slices.units.scopes}
    in_order = sorted(found, key=lambda each: each.topic)
    for topic, of_topic in groupby(in_order, key=lambda each: each.topic):
        _select(selection, scopes[topic], list(of_topic), slices, cap)
    selection.masks = _without(selection.masks, selection.whole)
    selection.repeated = _without(selection.repeated, selection.whole)
    for topic, partition, side in [
        each for each in selection.ranges if each[:2] in selection.whole
    ]:
        del selection.ranges[topic, partition, side]
    return selection


def merge_ranges(ranges: Iterable[Range]) -> list[Range]:
    """The same offsets as disjoint ranges."""
    joined: list[Range] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined


def _select(
    selection: SliceSelection,
    unit: UnitScope,
    found: Sequence[Mark],
    slices: TimeSlices,
    cap: int | None,
) -> None:
    mixed = _mixed(found)
    several = len(unit.partitions) > 1
    for mark in found:
        if not mark.has(DECIDED):
            selection.add(mark, mark.fine * mark.has(MISSING | UNEXPLAINED | DUPLICATED | REPEATED))
        elif several and mark.has(UNEXPLAINED):
            # Its record may be in another partition, replicated or not.
            selection.add(mark, mark.fine)
        elif mark.has(MISSING | UNEXPLAINED):
            selection.add(mark, mark.fine & mixed.get(mark.coarse, 0))
    if judges_order(unit):
        _add_disorder(selection, unit, found)
    _add_evidence(selection, found, mixed, cap)
    _add_oldest(selection, unit, found, mixed, slices)


def _mixed(found: Iterable[Mark]) -> dict[int, int]:
    """Slices with records left over on both sides: only there a record may have moved."""
    missing: defaultdict[int, int] = defaultdict(int)
    unexplained: defaultdict[int, int] = defaultdict(int)
    for mark in found:
        if mark.has(MISSING):
            missing[mark.coarse] |= mark.fine
        if mark.has(UNEXPLAINED):
            unexplained[mark.coarse] |= mark.fine
    return {coarse: fine & unexplained.get(coarse, 0) for coarse, fine in missing.items()}


def _add_disorder(selection: SliceSelection, unit: UnitScope, found: Iterable[Mark]) -> None:
    repeated: Counter[int] = Counter()
    for mark in found:
        if mark.has(OVERTAKEN) and mark.low is not None and mark.high is not None:
            selection.ranges[unit.index, mark.partition, TARGET].append((mark.low, mark.high))
        if mark.has(REPEATED):
            repeated[mark.partition] += mark.groups
            selection.repeated[unit.index, mark.partition, mark.coarse] |= mark.fine
    for partition, groups in repeated.items():
        # Offsets of different flows cannot be compared.
        if groups > MAX_REPEATED or len(unit.flows) > 1:
            selection.whole.add((unit.index, partition))


def _add_evidence(
    selection: SliceSelection, found: Iterable[Mark], mixed: dict[int, int], cap: int | None
) -> None:
    for verdict in _SHOWN:
        decided = [each for each in found if each.verdict is verdict]
        decided.sort(key=lambda each: (each.flow or 0, each.partition, each.low or 0))
        certain = 0
        for mark in decided:
            if cap is not None and certain >= cap:
                break
            selection.add(mark, mark.fine)
            # In a mixed slice the record may have moved.
            certain += not mark.fine & mixed.get(mark.coarse, 0)
    late = [each for each in found if each.has(LATE)]
    # Low offsets of overtaken records are those of other records.
    late.sort(key=lambda each: (not each.has(OVERTAKEN), each.flow or 0, each.partition, each.low))
    sure = sum(each.has(OVERTAKEN) for each in late)
    for mark in late[: None if cap is None else sure + cap]:
        selection.add(mark, mark.fine)


def _add_oldest(
    selection: SliceSelection,
    unit: UnitScope,
    found: Iterable[Mark],
    mixed: dict[int, int],
    slices: TimeSlices,
) -> None:
    opened = [
        (each.oldest, each) for each in found if each.verdict in _OPEN and each.oldest is not None
    ]
    for oldest, mark in sorted(opened, key=lambda each: each[0]):
        coarse, fine = slices.at(unit, oldest)
        if not fine & mixed.get(coarse, 0):
            selection.oldest[unit.index] = oldest
            break
        selection.add(mark, mark.fine)


def _without(masks: Masks, places: set[Place]) -> Masks:
    kept = Masks(int)
    kept.update({key: fine for key, fine in masks.items() if key[:2] not in places})
    return kept
