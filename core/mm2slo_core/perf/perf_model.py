"""What one task can copy at another round trip, from measured rates (pure).

A fetch brings at most `max.partition.fetch.bytes` of a partition, and a partition whose records are
not worked off yet is not fetched (KIP-74). So a task needs, for each fetch of B bytes, the round
trip and the time to work B off: 1 / rate = 1 / speed + round trip / B. Where the CPU was the limit,
the rate is a ceiling as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Final

from mm2slo_core.perf.perf_report import PerfReport, good_runs
from mm2slo_core.perf.perf_schedule import PerfMode
from mm2slo_core.user_errors import UserError

FETCH_BYTES: Final = "max.partition.fetch.bytes"
DEFAULT_FETCH_BYTES: Final = 1 << 20
ROUND_TRIP: Final = "round trip"
"""The limit of a run that waited for fetches."""
CPU: Final = "CPU"


@dataclass(frozen=True, slots=True)
class TaskPoint:
    """A measured rate of one task: bytes per second."""

    rate: float
    round_trip: float
    """Seconds."""
    fetch: int
    """Bytes that one fetch can bring."""
    limit: str


@dataclass(frozen=True, slots=True)
class TaskRate:
    rate: float
    """Bytes per second of one task."""
    how: str
    """From which measurements, and how far beyond them."""


def task_points(report: PerfReport) -> Iterator[TaskPoint]:
    """The rates of a measurement; of one task if it does not say how many there were."""
    for result in report.cells:
        load, good = result.cell.load, good_runs(result.runs)
        if load.mode is PerfMode.LATENCY or not good:
            continue
        tasks = min(int(result.cell.properties.get("tasks.max", "1")), load.partitions)
        given = (v for k, v in result.cell.properties.items() if k.endswith(FETCH_BYTES))
        fetch = int(next(given, DEFAULT_FETCH_BYTES)) * ceil(load.partitions / tasks)
        limits = {each.limit for each in good}
        yield TaskPoint(
            median(each.rate for each in good) * load.record_size / tasks,
            result.cell.round_trip_ms / 1000,
            fetch,
            limits.pop() if len(limits) == 1 else "",
        )


def predict_task_rate(report: PerfReport, round_trip_ms: float, name: str) -> TaskRate:
    """What one task can copy at a round trip. Raises UserError without a measured rate."""
    points = list(task_points(report))
    if not points:
        raise UserError(
            f"{name} has no measured rate: expected one of "
            "`mm2slo perf run --mode sustained --report FILE.json`"
        )
    waiting = [each for each in points if each.limit == ROUND_TRIP]
    ceilings = [each.rate for each in points if each.limit != ROUND_TRIP]
    # What is left of the time for a byte without its part of the round trip.
    spans = [max(1 / each.rate - each.round_trip / each.fetch, 0) for each in waiting]
    per_byte = median(spans) if spans else 1 / max(ceilings)
    fetch = median(each.fetch for each in points)
    needed = per_byte + round_trip_ms / 1000 / fetch
    rate = min([*ceilings, 1 / needed] if needed > 0 else ceilings)
    trips = sorted({each.round_trip * 1000 for each in points})
    measured = ", ".join(f"{each:g}" for each in trips)
    how = f"measured at a round trip of {measured} ms, with {fetch / 1e6:.3g} MB per fetch"
    if round_trip_ms not in trips:
        inside = trips[0] < round_trip_ms < trips[-1]
        how += f"; {'interpolated' if inside else 'extrapolated'} to {round_trip_ms:g} ms by one "
        how += "fetch per round trip"
    if not waiting and round_trip_ms > trips[-1]:
        how += ", which was never the limit here: measure at that distance"
    return TaskRate(rate, how)
