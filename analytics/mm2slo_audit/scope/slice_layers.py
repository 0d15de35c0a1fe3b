"""Layers of sampled units in place of the units, for the engine (pure)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mm2slo_core.audit.source_slices import merge_layers, split_layers
from mm2slo_core.timeline_record import Side

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mm2slo_audit.scope.kafka_scopes import KafkaScopes
    from mm2slo_core.audit.audit_record import ArrivalPoll
    from mm2slo_core.audit.audit_scope import UnitScope
    from mm2slo_core.audit.unit_outcome import UnitOutcome


@dataclass(frozen=True, slots=True)
class Layers:
    """Scopes of layers; units that are read completely are their own layer."""

    units: Sequence[int]
    """Index of the unit by index of the layer."""

    def of(self, unit: UnitScope, layers: Sequence[UnitScope]) -> list[UnitScope]:
        """Those of *layers* that belong to *unit*, with what earlier audits of it have read."""
        return [
            replace(each, earlier=unit.earlier)
            for each in layers
            if self.units[each.index] == unit.index
        ]

    def merge(self, unit: UnitScope, outcomes: Sequence[UnitOutcome]) -> UnitOutcome:
        """The outcome of *unit* from the *outcomes* of all layers."""
        own = [each for each in outcomes if self.units[each.scope.index] == unit.index]
        return merge_layers(unit, own)


def expand_layers(found: KafkaScopes) -> tuple[KafkaScopes, Layers]:
    """*found* with layers as its scopes; without slices these are the units."""
    if not any(scope.slices for scope in found.scopes):
        return found, Layers([scope.index for scope in found.scopes])
    layers = [(scope, layer) for scope in found.scopes for layer in split_layers(scope)]
    polls: defaultdict[int, list[ArrivalPoll]] = defaultdict(list)
    for poll in found.polls:
        polls[poll.topic].append(poll)
    units = [scope.index for scope, _layer in layers]
    expanded = replace(
        found,
        scopes=tuple(replace(layer, index=at) for at, (_scope, layer) in enumerate(layers)),
        polls=tuple(
            replace(poll, topic=at)
            for at, (scope, layer) in enumerate(layers)
            for poll in (_within(polls[scope.index], layer) if scope.slices else polls[scope.index])
        ),
        isolations=tuple(found.isolations[index] for index in units),
        copies=tuple(found.copies[index] for index in units),
    )
    return expanded, Layers(units)


def _within(polls: Sequence[ArrivalPoll], layer: UnitScope) -> Iterator[ArrivalPoll]:
    """Polls that bracket an offset of *layer*."""
    by_place: defaultdict[tuple[Side, int], list[ArrivalPoll]] = defaultdict(list)
    for poll in polls:
        by_place[poll.side, poll.partition].append(poll)
    for side, ranges in (
        (Side.SOURCE, layer.flows[0].partitions),
        (Side.TARGET, layer.partitions),
    ):
        for each in ranges:
            held = by_place[side, each.partition]
            first = bisect_right(held, each.read_from, key=lambda poll: poll.end)
            last = bisect_left(held, each.end, key=lambda poll: poll.end)
            yield from held[first : last + 1]
