"""An independent reader that compares both topics byte by byte.

It uses no hash, sample, window or code of the audit: all records of both topics are in memory.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from fault_injection.stored_records import Content, Place, Stored


@dataclass(frozen=True, slots=True)
class FullRead:
    """The difference of two topics as multisets of records, partition by partition."""

    pairs: tuple[tuple[Stored, Stored], ...]
    """Each source record with its first copy, in the order of source offsets."""
    missing: frozenset[Place]
    """On the source: records without a copy."""
    duplicates: frozenset[Place]
    """On the target: additional copies."""
    foreign: frozenset[Place]
    """On the target: records without a source record."""


def compare(
    source: Sequence[Stored], target: Sequence[Stored], *, timestamps: bool = True
) -> FullRead:
    """Pair each record of *source* with a record of *target* in its partition, oldest first.

    Without *timestamps* they are ignored, as for a target with LogAppendTime.
    """
    here, there = _grouped(source, timestamps=timestamps), _grouped(target, timestamps=timestamps)
    pairs = [
        pair
        for group, records in here.items()
        for pair in zip(records, there.get(group, ()), strict=False)
    ]
    return FullRead(
        pairs=tuple(sorted(pairs, key=lambda pair: pair[0].place)),
        missing=_beyond(here, lambda group: len(there.get(group, ()))),
        duplicates=_beyond(
            {group: records for group, records in there.items() if group in here},
            lambda group: len(here[group]),
        ),
        foreign=_beyond(
            {group: records for group, records in there.items() if group not in here},
            lambda _group: 0,
        ),
    )


def replays(places: Iterable[Place]) -> list[tuple[Place, int]]:
    """Blocks of *places* at consecutive offsets: first place and size."""
    blocks: list[tuple[Place, int]] = []
    for place in sorted(places):
        if blocks:
            start, size = blocks[-1]
            if (start.partition, start.offset + size) == place:
                blocks[-1] = start, size + 1
                continue
        blocks.append((place, 1))
    return blocks


_Group = tuple[int, "Content"]


def _grouped(records: Sequence[Stored], *, timestamps: bool) -> dict[_Group, list[Stored]]:
    groups: defaultdict[_Group, list[Stored]] = defaultdict(list)
    for record in sorted(records, key=lambda each: each.place):
        content = record.content if timestamps else replace(record.content, timestamp=0)
        groups[record.place.partition, content].append(record)
    return groups


def _beyond(groups: dict[_Group, list[Stored]], count: Callable[[_Group], int]) -> frozenset[Place]:
    """The records of each group after its first *count*."""
    return frozenset(
        record.place for group, records in groups.items() for record in records[count(group) :]
    )
