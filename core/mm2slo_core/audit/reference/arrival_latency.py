"""Arrival times of records from the watermark timeline, and their latencies."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.audit.audit_scope import TimestampType
from mm2slo_core.audit.latency_histogram import bucket
from mm2slo_core.audit.unit_outcome import LatencyCells
from mm2slo_core.timeline_record import Side

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.audit.audit_record import ArrivalPoll, AuditRecord
    from mm2slo_core.audit.audit_scope import UnitScope
    from mm2slo_core.audit.reference.record_groups import Pair


class Arrival(NamedTuple):
    """A record arrived within [earliest, latest], epoch ms; earliest None: no previous poll."""

    earliest: int | None
    latest: int


class Latencies(NamedTuple):
    """The latencies of one source partition."""

    end_to_end: LatencyCells
    transfer: LatencyCells
    without_bracket: int


class Arrivals:
    """Arrival brackets from the polls of a unit."""

    def __init__(self, polls: Iterable[ArrivalPoll], scope: UnitScope) -> None:
        self._scope = scope
        self._polls: defaultdict[tuple[Side, int, int], list[ArrivalPoll]] = defaultdict(list)
        for poll in sorted(polls, key=lambda each: (each.end, each.latest)):
            flow = poll.flow if poll.side is Side.SOURCE else 0
            self._polls[poll.side, flow, poll.partition].append(poll)

    def of(self, record: AuditRecord) -> Arrival | None:
        """Return the bracket of the first poll whose end is beyond *record*, or None."""
        if self._has_append_time(record):
            return Arrival(record.timestamp, record.timestamp)
        polls = self._polls[record.side, record.flow, record.partition]
        at = bisect_right(polls, record.offset, key=lambda poll: poll.end)
        return Arrival(polls[at].earliest, polls[at].latest) if at < len(polls) else None

    def _has_append_time(self, record: AuditRecord) -> bool:
        scope = self._scope
        target = record.side is Side.TARGET
        time = scope.target_time if target else scope.flows[record.flow].source_time
        return time is TimestampType.LOG_APPEND


def latencies(matched: Iterable[Pair], arrivals: Arrivals, scope: UnitScope) -> Latencies:
    """Measure end to end from the record's timestamp, transfer from its arrival on the source."""
    end_to_end, transfer = _Cells(), _Cells()
    without_bracket = 0
    for source, copy in matched:
        arrived = arrivals.of(copy)
        if arrived is None:
            without_bracket += 1
            continue
        if scope.flows[source.flow].source_time is TimestampType.CREATE:
            end_to_end.add(arrived, Arrival(source.timestamp, source.timestamp))
        started = arrivals.of(source)
        if started is not None:
            transfer.add(arrived, started)
    return Latencies(end_to_end.frozen(), transfer.frozen(), without_bracket)


class _Cells:
    def __init__(self) -> None:
        self._cells: Counter[tuple[int | None, int]] = Counter()
        self._negative = self._total_upper = self._total_lower = 0

    def add(self, arrived: Arrival, started: Arrival) -> None:
        if started.earliest is None:
            return  # no upper bound
        upper = arrived.latest - started.earliest
        if upper < 0:
            self._negative += 1
            return
        lower = None if arrived.earliest is None else max(0, arrived.earliest - started.latest)
        self._cells[None if lower is None else bucket(lower), bucket(upper)] += 1
        self._total_upper += upper
        self._total_lower += lower or 0

    def frozen(self) -> LatencyCells:
        return LatencyCells(dict(self._cells), self._negative, self._total_upper, self._total_lower)
