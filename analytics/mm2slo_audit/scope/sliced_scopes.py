"""Scopes of sampled units with the bounds of their slices, for the engine (pure)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from mm2slo_core.audit.source_slices import bound_by_slices, slice_ranges
from mm2slo_core.timeline_record import Side

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mm2slo_audit.scope.kafka_scopes import KafkaScopes
    from mm2slo_core.audit.audit_record import ArrivalPoll
    from mm2slo_core.audit.audit_scope import UnitScope


def bound_scopes(found: KafkaScopes) -> KafkaScopes:
    """*found* with the bounds of slices, and of sliced units only the polls that bracket them."""
    polls: defaultdict[int, list[ArrivalPoll]] = defaultdict(list)
    for poll in found.polls:
        polls[poll.topic].append(poll)
    return replace(
        found,
        scopes=tuple(map(bound_by_slices, found.scopes)),
        polls=tuple(
            poll
            for scope in found.scopes
            for poll in (_within(polls[scope.index], scope) if scope.slices else polls[scope.index])
        ),
    )


def _within(polls: Sequence[ArrivalPoll], scope: UnitScope) -> Iterator[ArrivalPoll]:
    """Polls that bracket an offset in the slices of *scope*."""
    by_place: defaultdict[tuple[Side, int], list[ArrivalPoll]] = defaultdict(list)
    for poll in polls:
        by_place[poll.side, poll.partition].append(poll)
    for side, ranges in zip((Side.SOURCE, Side.TARGET), slice_ranges(scope), strict=True):
        taken: defaultdict[int, int] = defaultdict(int)
        for number, start, end in ranges:
            held = by_place[side, number]
            first = bisect_right(held, start, key=lambda poll: poll.end)
            last = bisect_left(held, end, key=lambda poll: poll.end)
            yield from held[max(first, taken[number]) : last + 1]
            taken[number] = last + 1
