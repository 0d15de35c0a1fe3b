"""Which slices of which partitions are looked at record by record, from the marks."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Final

from mm2slo_audit.engine.group_marks import (
    DECIDED,
    DUPLICATED,
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
"""Fine slices by topic, partition and coarse slice."""
Range = tuple[int, int]
"""Of offsets, both ends included."""

_SHOWN: Final = (Verdict.LOST, Verdict.OVERDUE, Verdict.EXTRA)
"""Told verdicts that evidence is shown of."""
_OPEN: Final = (Verdict.PENDING, Verdict.OVERDUE)
MAX_REPEATED: Final = 20_000
"""Groups in a partition that are looked up one by one; beyond it, all of the partition is taken."""


@dataclass(slots=True)
class Choice:
    """What to look at."""

    masks: Masks = field(default_factory=lambda: defaultdict(int))
    whole: set[Place] = field(default_factory=set)
    """Partitions to be looked at from end to end."""
    ranges: defaultdict[tuple[int, int, int], list[Range]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """By topic, partition and side: whatever slices these offsets are in, too."""
    repeated: Masks = field(default_factory=lambda: defaultdict(int))
    """Of `masks`, where records repeat whose order matters."""
    oldest: dict[int, int] = field(default_factory=dict)
    """By topic: the oldest told record that is open, and is so for sure."""

    def look(self, mark: Mark, fine: int) -> None:
        """Add the slices of a mark."""
        if fine:
            self.masks[mark.topic, mark.partition, mark.coarse] |= fine


def choose(found: Iterable[Mark], slices: TimeSlices, cap: int | None) -> Choice:
    """The fewest slices that decide all verdicts, with *cap* records as evidence of each."""
    choice = Choice()
    scopes = {each.index: each for each in slices.units.scopes}
    in_order = sorted(found, key=lambda each: each.topic)
    for topic, of_topic in groupby(in_order, key=lambda each: each.topic):
        _choose(choice, scopes[topic], list(of_topic), slices, cap)
    choice.masks = _without(choice.masks, choice.whole)
    choice.repeated = _without(choice.repeated, choice.whole)
    for topic, partition, side in [each for each in choice.ranges if each[:2] in choice.whole]:
        del choice.ranges[topic, partition, side]
    return choice


def merged(ranges: Iterable[Range]) -> list[Range]:
    """The same offsets in ranges that do not meet."""
    joined: list[Range] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined


def _choose(
    choice: Choice, unit: UnitScope, found: Sequence[Mark], slices: TimeSlices, cap: int | None
) -> None:
    mixed = _mixed(found)
    for mark in found:
        if not mark.has(DECIDED):
            choice.look(mark, mark.fine * mark.has(MISSING | UNEXPLAINED | DUPLICATED | REPEATED))
        elif mark.has(MISSING | UNEXPLAINED):
            choice.look(mark, mark.fine & mixed.get(mark.coarse, 0))
    if judges_order(unit):
        _look_for_disorder(choice, unit, found)
    _look_for_evidence(choice, found, mixed, cap)
    _look_for_oldest(choice, unit, found, mixed, slices)


def _mixed(found: Iterable[Mark]) -> dict[int, int]:
    """TimeSlices in which both sides have something left: only there a record may have moved."""
    missing: defaultdict[int, int] = defaultdict(int)
    unexplained: defaultdict[int, int] = defaultdict(int)
    for mark in found:
        if mark.has(MISSING):
            missing[mark.coarse] |= mark.fine
        if mark.has(UNEXPLAINED):
            unexplained[mark.coarse] |= mark.fine
    return {coarse: fine & unexplained.get(coarse, 0) for coarse, fine in missing.items()}


def _look_for_disorder(choice: Choice, unit: UnitScope, found: Iterable[Mark]) -> None:
    repeated: Counter[int] = Counter()
    for mark in found:
        if mark.has(OVERTAKEN) and mark.low is not None and mark.high is not None:
            choice.ranges[unit.index, mark.partition, TARGET].append((mark.low, mark.high))
        if mark.has(REPEATED):
            repeated[mark.partition] += mark.groups
            choice.repeated[unit.index, mark.partition, mark.coarse] |= mark.fine
    for partition, groups in repeated.items():
        # Offsets of several flows are not comparable.
        if groups > MAX_REPEATED or len(unit.flows) > 1:
            choice.whole.add((unit.index, partition))


def _look_for_evidence(
    choice: Choice, found: Iterable[Mark], mixed: dict[int, int], cap: int | None
) -> None:
    for verdict in _SHOWN:
        told = [each for each in found if each.told is verdict]
        told.sort(key=lambda each: (each.flow or 0, each.partition, each.low or 0))
        sure = 0
        for mark in told:
            if cap is not None and sure >= cap:
                break
            choice.look(mark, mark.fine)
            # The first record of all others may have moved.
            sure += not mark.fine & mixed.get(mark.coarse, 0)


def _look_for_oldest(
    choice: Choice,
    unit: UnitScope,
    found: Iterable[Mark],
    mixed: dict[int, int],
    slices: TimeSlices,
) -> None:
    opened = [
        (each.oldest, each) for each in found if each.told in _OPEN and each.oldest is not None
    ]
    for oldest, mark in sorted(opened, key=lambda each: each[0]):
        coarse, fine = slices.at(unit, oldest)
        if not fine & mixed.get(coarse, 0):
            choice.oldest[unit.index] = oldest
            break
        choice.look(mark, mark.fine)


def _without(masks: Masks, places: set[Place]) -> Masks:
    kept = Masks(int)
    kept.update({key: fine for key, fine in masks.items() if key[:2] not in places})
    return kept
