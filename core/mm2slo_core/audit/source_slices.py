"""Samples by slices: ranges of source offsets, so that only they and their copies are read.

The offsets of the window, partition after partition, are divided into slices of equal length, and
one in every *n* neighbouring slices is drawn. Equal lengths make slices equal draws, which bounds
require (`slice_interval`): a slice of equal duration would have more records the more traffic there
was. A slice that crosses the end of a partition has a part in each.

The slices of a unit are judged together. Target ranges may be wider than the copies of a slice:
what has no source record there is a copy of a record that was not read, not extra. Duplicates on
both sides of offsets that were not read may count as one replay.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.audit.audit_scope import SourceSlice, Window
from mm2slo_core.audit.fingerprint import chained, key_hash
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.audit.unit_outcome import AffinityOutcome
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mm2slo_core.audit.audit_scope import UnitScope
    from mm2slo_core.audit.record_sample import Sample
    from mm2slo_core.audit.unit_outcome import UnitOutcome

LEAST_SLICES: Final = 30
_MOST_PER_PARTITION: Final = 10
"""Finding the copies of a slice passes over the timeline of its partition."""
_ANY_TIME: Final = Window(-1, 1 << 53)
"""Every record of a slice is judged, whatever its timestamp; as far as Spark's timestamps reach."""
_MEGABYTE: Final = 1_000_000


class OffsetRange(NamedTuple):
    """Source offsets [start, end) of a partition."""

    partition: int
    start: int
    end: int


def plan_slices(
    topic: str, ranges: Sequence[OffsetRange], record_bytes: float, sample: Sample
) -> tuple[SourceSlice, ...]:
    """Draw slices from the *ranges* of the window; none if a census reads less than 30 slices.

    Raises UserError if the sample has fewer than 30 slices of at least `sample.slice_bytes`.
    """
    total = sum(each.end - each.start for each in ranges)
    enough = LEAST_SLICES * sample.slice_bytes
    if total * record_bytes <= enough:
        return ()
    if total * record_bytes < enough * sample.every:
        needed = math.ceil(enough / (total * record_bytes) * 1000) / 10
        slices = int(total * record_bytes / (sample.slice_bytes * sample.every))
        raise UserError(
            f"{topic} has {slices} slices of {sample.slice_bytes / _MEGABYTE:.3g} MB in a sample of"
            f" {sample.rate * 100:g}%; expected at least {LEAST_SLICES}: use --sample {needed:g}%,"
            " a longer window or --sample-by hash"
        )
    largest = max(each.end - each.start for each in ranges)
    most = max(_MOST_PER_PARTITION, math.ceil(LEAST_SLICES * largest / total))
    length = max(sample.slice_bytes / record_bytes, largest / (most * sample.every))
    return tuple(_draw(topic, ranges, max(1, math.floor(length)), sample))


def _draw(
    topic: str, ranges: Sequence[OffsetRange], length: int, sample: Sample
) -> Iterator[SourceSlice]:
    seed = chained(sample.salt, key_hash(topic.encode()) or 0)
    stride = length * sample.every
    before = 0
    for each in ranges:
        size = each.end - each.start
        for number in range(before // stride, -(-(before + size) // stride)):
            drawn = number * sample.every + chained(seed, number) % sample.every
            first = each.start + drawn * length - before
            start, end = max(each.start, first), min(each.end, first + length)
            if start < end:
                yield SourceSlice(number, each.partition, start, end)
        before += size


def slice_ranges(scope: UnitScope) -> tuple[list[OffsetRange], list[OffsetRange]]:
    """Source and target offsets to read for the slices of *scope*, disjoint and in order."""
    sources: list[OffsetRange] = []
    targets: list[OffsetRange] = []
    for each in sorted(scope.slices, key=lambda one: (one.partition, one.target or (0, 0))):
        if each.target is None:
            continue
        sources.append(OffsetRange(each.partition, each.start, each.end))
        start, end = each.target
        if targets and targets[-1].partition == each.partition and start <= targets[-1].end:
            start, end = targets[-1].start, max(end, targets.pop().end)
        targets.append(OffsetRange(each.partition, start, end))
    return sorted(sources), targets


def bound_by_slices(scope: UnitScope) -> UnitScope:
    """*scope* as it is read and judged: from the first of its slices to the last."""
    if not scope.slices:
        return scope
    sources, targets = map(_bounds, slice_ranges(scope))
    (flow,) = scope.flows
    return replace(
        scope,
        window=_ANY_TIME,
        flows=(
            replace(
                flow,
                partitions=tuple(
                    replace(each, read_from=start, end=end, cuts=())
                    for each in flow.partitions
                    for start, end in [sources.get(each.partition, (each.end, each.end))]
                ),
            ),
        ),
        partitions=tuple(
            replace(each, read_from=start, end=end, auditable_from=end)
            for each in scope.partitions
            for start, end in [targets.get(each.partition, (each.end, each.end))]
        ),
    )


def _bounds(ranges: Iterable[OffsetRange]) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for number, start, end in ranges:
        low, high = found.get(number, (start, end))
        found[number] = min(low, start), max(high, end)
    return found


def conclude_slices(scope: UnitScope, outcome: UnitOutcome) -> UnitOutcome:
    """The outcome of the unit *scope* from that of `bound_by_slices`; affinity is not judged."""
    if not scope.slices:
        return replace(outcome, scope=scope)
    unread: defaultdict[int, Counter[Verdict]] = defaultdict(Counter)
    for each in scope.slices:
        if each.target is None:
            unread[each.partition][Verdict.UNAUDITABLE] += each.end - each.start
    return replace(
        outcome,
        scope=scope,
        partitions=tuple(
            replace(part, counts=dict(Counter(part.counts) + unread[part.partition]))
            for part in outcome.partitions
            # Without a flow: copies of records that were not read.
            if part.flow is not None
        ),
        affinity=AffinityOutcome(),
        evidence=tuple(each for each in outcome.evidence if each.verdict is not Verdict.EXTRA),
        slices=len({each.number for each in scope.slices if each.target is not None}),
    )
