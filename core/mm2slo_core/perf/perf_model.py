"""What one task can copy at another round trip, from measured rates (pure).

A fetch brings at most `max.partition.fetch.bytes` of a partition, a partition whose records are not
worked off yet is not fetched (KIP-74), and one fetch per broker is in flight. One partition thus
costs a round trip for each fetch of B bytes, and the time to work them off: 1 / rate = 1 / speed +
round trip / B. Several partitions take turns: while the first ones are fetched again the others are
worked off, so that two round trips bring each of them once. Where the CPU was the limit, the rate
is a ceiling as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Final

from mm2slo_core.perf.perf_report import PerfReport, good_runs
from mm2slo_core.perf.perf_schedule import PerfCell, PerfMode
from mm2slo_core.user_errors import UserError

_FETCH_BYTES: Final = "max.partition.fetch.bytes"
_DEFAULT_FETCH_BYTES: Final = 1 << 20
_MOST_FETCHED: Final = 50 << 20  # Kafka's default of fetch.max.bytes
ROUND_TRIP: Final = "round trip"
"""The limit of a run that waited for fetches."""
CPU: Final = "CPU"


@dataclass(frozen=True, slots=True)
class TaskPoint:
    """A measured rate of the busiest task: bytes per second."""

    rate: float
    round_trip: float
    """Seconds."""
    fetch: float
    """Bytes that one round trip can bring."""
    limit: str


@dataclass(frozen=True, slots=True)
class TaskRate:
    rate: float
    """Bytes per second of one task."""
    how: str
    """From which measurements, and how far beyond them."""


def busiest_share(cell: PerfCell) -> int:
    """Partitions of the busiest task; of the only one if the number of tasks is not known."""
    return ceil(cell.load.partitions / min(cell.tasks or 1, cell.load.partitions))


def round_trip_bytes(cell: PerfCell) -> float:
    """What one round trip can bring to the busiest task."""
    given = (v for k, v in cell.properties.items() if k.endswith(_FETCH_BYTES))
    fetch, partitions = int(next(given, _DEFAULT_FETCH_BYTES)), busiest_share(cell)
    return min(fetch * (1 if partitions == 1 else partitions / 2), _MOST_FETCHED)


def task_points(report: PerfReport, name: str) -> Iterator[TaskPoint]:
    """The rates of a measurement. Raises UserError if tasks or round trip are not known."""
    for result in report.cells:
        cell, good = result.cell, good_runs(result.runs)
        load = cell.load
        if load.mode is PerfMode.LATENCY or not good:
            continue
        if cell.tasks is None or cell.round_trip_ms is None:
            raise UserError(
                f"{name} does not have the number of tasks and the round trip: measure again, and "
                "state them with --tasks and --round-trip"
            )
        limits = {each.limit for each in good}
        yield TaskPoint(
            median(each.rate for each in good)
            * load.record_size
            * busiest_share(cell)
            / load.partitions,
            cell.round_trip_ms / 1000,
            round_trip_bytes(cell),
            limits.pop() if len(limits) == 1 else "",
        )


def predict_task_rate(
    report: PerfReport, round_trip_ms: float, name: str, compression: float = 1.0
) -> TaskRate:
    """What one task can copy at a round trip. Raises UserError without a measured rate.

    Fetches are those of the first cell; *compression* is how much more they bring uncompressed.
    """
    points = list(task_points(report, name))
    if not points:
        raise UserError(
            f"{name} has no measured rate: expected one of "
            "`mm2slo perf run --mode sustained --report FILE.json`"
        )
    points = [each for each in points if each.fetch == points[0].fetch]
    fetch, best = points[0].fetch, max(each.rate for each in points)
    waiting = [each for each in points if each.limit == ROUND_TRIP]
    busy = [each.rate for each in points if each.limit == CPU]
    trip = round_trip_ms / 1000
    if waiting:
        near = min(waiting, key=lambda each: abs(each.round_trip - trip))
        # What a byte waits for the way; a rate that was higher than that is its own evidence.
        way = min(near.round_trip / near.fetch, 1 / near.rate)
        needed = 1 / near.rate - way + way / compression * trip / near.round_trip
    else:
        needed = 1 / best + trip / fetch / compression
    nearest = min(each.round_trip for each in points) * 1000
    is_shorter = round_trip_ms < nearest
    # A rate that nothing measured has shown is none to plan with.
    ceiling = max(busy) if busy else best if is_shorter or not waiting else float("inf")
    rate = min(1 / needed, ceiling) if needed > 0 else ceiling
    trips = sorted({each.round_trip * 1000 for each in points})
    measured = ", ".join(f"{each:g}" for each in trips)
    how = f"measured at a round trip of {measured} ms, with {fetch / 1e6:.3g} MB per round trip"
    if round_trip_ms not in trips:
        inside = trips[0] < round_trip_ms < trips[-1]
        how += f"; {'interpolated' if inside else 'extrapolated'} to {round_trip_ms:g} ms by one "
        how += "fetch in flight"
    if not busy and (is_shorter or not waiting):
        how += "; at least, since what limits it nearby was not measured"
    elif not waiting and round_trip_ms > trips[-1]:
        how += ", which was never the limit here: measure at that distance"
    return TaskRate(rate, how)
