"""Arrival times of records, and the polls of the watermark timeline."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from mm2slo_core.audit.audit_scope import ArrivalPoll, AuditRecord
from mm2slo_core.records.timeline_record import Side

Place = tuple[Side, int, int, int]
"""Side, flow (0 on the target), partition, offset."""

POLL_EVERY = 5_000
UNPOLLED_MS = 60_000
"""The polls end this long before the last arrival: later records have no bracket."""


def place(record: AuditRecord) -> Place:
    return record.side, record.flow, record.partition, record.offset


def poll_times(arrivals: Mapping[Place, int]) -> range:
    """Times of all polls; the first is after the first arrival."""
    first = min(arrivals.values(), default=0)
    last = max(arrivals.values(), default=0) - UNPOLLED_MS
    start = first + 2 * POLL_EVERY
    return range(start, max(start, last) + 1, POLL_EVERY)


def bracket(arrival: int, times: range) -> tuple[int | None, int] | None:
    """The poll before the arrival, and the one at or after it."""
    at = max(0, -(-(arrival - times.start) // POLL_EVERY))
    if at >= len(times):
        return None
    return (None if at == 0 else times[at - 1]), times[at]


def polls_of(arrivals: Mapping[Place, int], index: int) -> Iterator[ArrivalPoll]:
    """The polls at which an end offset had changed."""
    times = poll_times(arrivals)
    logs: defaultdict[tuple[Side, int, int], dict[int, int]] = defaultdict(dict)
    for (side, flow, partition, offset), arrival in arrivals.items():
        logs[side, flow, partition][offset] = arrival
    for (side, flow, partition), log in logs.items():
        for offset in sorted(log):
            seen = bracket(log[offset], times)
            later = bracket(log[offset + 1], times) if offset + 1 in log else None
            if seen is not None and seen != later:
                yield ArrivalPoll(index, flow, side, partition, offset + 1, *seen)
