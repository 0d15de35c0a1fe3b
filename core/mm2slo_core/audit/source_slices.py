"""Samples by slices: ranges of source offsets, so that only they and their copies are read.

The offsets of the window, partition after partition, are divided into slices of equal length, and
one in every *n* neighbouring slices is drawn. Equal lengths make slices equal draws, which bounds
require (`slice_interval`): a slice of equal duration would have more records the more traffic there
was. A slice that crosses the end of a partition has a part in each.

The engine judges a unit with one range per partition. So the k-th parts of all partitions become
one *layer*, a unit of its own, and the outcomes of layers are merged. Target ranges may be wider
than the copies of a slice: what has no source record there is a copy of a record that was not read,
not extra.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.audit.audit_scope import SourceSlice, Window
from mm2slo_core.audit.fingerprint import chained, key_hash
from mm2slo_core.audit.latency_histogram import merge as merge_latencies
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.audit.unit_outcome import (
    EVIDENCE_CAP,
    PartitionOutcome,
    UnitOutcome,
    cap_evidence,
)
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mm2slo_core.audit.audit_scope import UnitScope
    from mm2slo_core.audit.record_sample import Sample

LEAST_SLICES: Final = 30
_MOST_PER_PARTITION: Final = 10
"""Each layer is a separate read of both sides."""
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


def split_layers(scope: UnitScope) -> tuple[UnitScope, ...]:
    """The layers of *scope*, with its index; the scope itself if it is read completely."""
    if not scope.slices:
        return (scope,)
    layers: defaultdict[int, list[SourceSlice]] = defaultdict(list)
    seen: Counter[int] = Counter()
    for each in scope.slices:
        if each.target is not None:
            layers[seen[each.partition]].append(each)
            seen[each.partition] += 1
    return tuple(
        _layer(scope, {each.partition: each for each in layer}) for layer in layers.values()
    )


def _layer(scope: UnitScope, slices: Mapping[int, SourceSlice]) -> UnitScope:
    (flow,) = scope.flows
    targets = {number: each.target or (0, 0) for number, each in slices.items()}
    return replace(
        scope,
        window=_ANY_TIME,
        flows=(
            replace(
                flow,
                partitions=tuple(
                    replace(each, read_from=found.start, end=found.end, expired=0, cuts=())
                    for each in flow.partitions
                    if (found := slices.get(each.partition))
                ),
            ),
        ),
        partitions=tuple(
            replace(each, read_from=start, end=end, auditable_from=end)
            for each in scope.partitions
            if each.partition in targets
            for start, end in [targets[each.partition]]
        ),
        sampled=None,
    )


def merge_layers(scope: UnitScope, outcomes: Sequence[UnitOutcome]) -> UnitOutcome:
    """The outcome of the unit *scope* from those of its layers; affinity is not judged."""
    if not scope.slices:
        return replace(outcomes[0], scope=scope)
    parts: defaultdict[int, list[PartitionOutcome]] = defaultdict(list)
    for outcome in outcomes:
        for part in outcome.partitions:
            # Without a flow: copies of records that were not read.
            if part.flow is not None:
                parts[part.partition].append(part)
    settled: defaultdict[int, Counter[Verdict]] = defaultdict(Counter)
    for source in scope.flows[0].partitions:
        settled[source.partition][Verdict.EXPIRED] = source.expired
    for each in scope.slices:
        if each.target is None:
            settled[each.partition][Verdict.UNAUDITABLE] += each.end - each.start
    return UnitOutcome(
        scope=scope,
        partitions=tuple(
            _merge(number, parts[number], +counts) for number, counts in sorted(settled.items())
        ),
        copied_again=sum(each.copied_again for each in outcomes),
        replays=tuple(
            sorted(
                (event for each in outcomes for event in each.replays),
                key=lambda event: (event.partition, event.start),
            )
        ),
        evidence=cap_evidence(
            (
                found
                for each in outcomes
                for found in each.evidence
                if found.verdict is not Verdict.EXTRA
            ),
            EVIDENCE_CAP,
        ),
        oldest_open=min(
            (each.oldest_open for each in outcomes if each.oldest_open is not None), default=None
        ),
        order_judged=all(each.order_judged for each in outcomes),
        slices=len({each.number for each in scope.slices if each.target is not None}),
    )


def _merge(
    partition: int, parts: Sequence[PartitionOutcome], counts: Counter[Verdict]
) -> PartitionOutcome:
    for part in parts:
        counts.update(part.counts)
    return PartitionOutcome(
        flow=0,
        partition=partition,
        counts=dict(counts),
        source_bytes=sum(part.source_bytes for part in parts),
        end_to_end=merge_latencies(part.end_to_end for part in parts),
        transfer=merge_latencies(part.transfer for part in parts),
        without_bracket=sum(part.without_bracket for part in parts),
    )
