"""Sizes a MirrorMaker 2 flow from stated rates; every figure carries its formula and source.

A task's clients wait a round trip between requests. Connect's producers of source tasks have one
request in flight per broker (`Worker.baseProducerConfigs`) with one batch per partition
(`RecordAccumulator.drain`). Client sizes suit the capacity, which is needed while catching up.
"""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from math import ceil, floor
from typing import Any, Final

from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError

_KIB: Final = 1024
_MIB: Final = 1024 * _KIB
_NEAR_SECONDS: Final = 0.001  # a round trip within a data center
_ACK_SECONDS: Final = 0.005  # replication within the target, for acks=all
_FLUSH_SECONDS: Final = 60  # Connect's default of offset.flush.interval.ms
_SYNCS_IN_FLIGHT: Final = 10  # OffsetSyncWriter.MAX_OUTSTANDING_OFFSET_SYNCS, per task
_ASSUMED_TASK: Final = 2e6
_TUNED_TASK: Final = 10e6

# Name | unit | bound; for a setting its scope and Kafka's default | formula | source
_FIGURES: Final = """
tasks.max | | flow 1 | partitions / partitions that one task can carry | Kafka docs, Geo-Replication
workers | | >= | tasks / tasks per worker + 1 spare | N+1 redundancy
capacity | MB/s | | partitions x rate of one task / partitions of busiest task | even load
partition rate | MB/s | | capacity / partitions / compression | even load
task rate | MB/s | | partition rate x partitions of busiest task | round-robin, KAFKA-9352
network, steady | Mbit/s | | 8.8 x rate / compression | 10 % for headers
network, catching up | Mbit/s | | 8.8 x capacity / compression | 10 % for headers
backlog after outage | records | | records/s x outage | arithmetic
catch-up time | min | | outage x rate / (capacity - rate) | backlog / spare capacity
lowest retention | min | >= | outage + flush interval | lag is highest when the outage ends
safe retention | min | >= | lowest retention + catch-up time | time for a second outage
retention.bytes | B | >= | safe retention x rate / partitions / compression | per partition
replay after crash | records | <= | records/s x flush interval | offset.flush.interval.ms
offset.lag.max | | flow 100 | records/s of a task x source round trip / 10 | OffsetSyncWriter
fetch.min.bytes | B | consumer 1 | steady partition rate x source round trip | Kafka docs, consumer
max.partition.fetch.bytes | B | consumer 1048576 | 2 x partition rate x source round trip | KIP-74
fetch.max.bytes | B | consumer 52428800 | 2 x task rate x source round trip | KIP-74
receive.buffer.bytes | B | consumer 65536 | task rate x source round trip | bandwidth-delay product
batch.size | B | producer 16384 | 2 x partition rate x target round trip | Worker: 1 in flight
linger.ms | ms | producer | batches also fill while a request is in flight | KIP-1030
max.request.size | B | producer 1048576 | 2 x task rate x target round trip | Worker: 1 in flight
buffer.memory | B | producer 33554432 | 2 x batch.size x partitions of a task | one sent, one filled
send.buffer.bytes | B | producer 131072 | task rate x target round trip | bandwidth-delay product
"""


def _input(low: float, high: float, meaning: str, default: Any = MISSING) -> Any:
    return field(default=default, metadata={"low": low, "high": high, "meaning": meaning})


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What to size for, by the names of the command's options. Raises UserError for bad values."""

    records_per_second: float = _input(1e-3, 1e9, "records/s at the peak")
    record_size: float | None = _input(1, 1e8, "average bytes of a record, uncompressed", None)
    bytes_per_second: float | None = _input(1, 1e12, "uncompressed bytes/s at the peak", None)
    partitions: int = _input(1, 1e6, "number of replicated partitions")
    round_trip: float = _input(0.1, 2000, "ping time in ms from workers to the far cluster")
    outage: float = _input(1, 525_600, "minutes without replication to survive")
    retention: float | None = _input(0.1, 1e5, "hours of source retention to check", None)
    compression: float = _input(1, 100, "size before compression / size after it", 1.0)
    headroom: float = _input(1, 10_000, "percent of capacity above the peak", 100.0)
    workers_at_source: bool = _input(0, 1, "workers run next to the source", False)
    task_bytes_per_second: float = _input(
        1000, 5e8, "uncompressed bytes/s of one task", _ASSUMED_TASK
    )
    tasks_per_worker: int = _input(1, 1000, "tasks that one worker can run", 4)

    def __post_init__(self) -> None:
        check_inputs({each.name: getattr(self, each.name) for each in fields(self)})
        if (self.record_size is None) == (self.bytes_per_second is None):
            raise UserError("expected --record-size or --bytes-per-second: state one of them")

    @property
    def rate(self) -> float:
        """Bytes per second before compression."""
        return self.bytes_per_second or self.records_per_second * (self.record_size or 0)


def check_inputs(stated: Mapping[str, float | None]) -> None:
    """Raise UserError if one of *stated*, by the names of Workload, is out of its range."""
    for each in fields(Workload):
        value, limits = stated.get(each.name), each.metadata
        if value is not None and not limits["low"] <= value <= limits["high"]:
            raise UserError(
                f"--{each.name.replace('_', '-')} is {value:g}; expected {limits['low']:g} to "
                f"{limits['high']:g}: state {limits['meaning']}"
            )


def round_trips(round_trip: float, *, workers_at_source: bool) -> tuple[float, float]:
    """Seconds from workers to source, and to target with its ack, from ms to the far cluster."""
    far = round_trip / 1000
    near = min(_NEAR_SECONDS, far)
    source, target = (near, far) if workers_at_source else (far, near)
    return source, target + _ACK_SECONDS


@dataclass(frozen=True, slots=True)
class CapacityFigure:
    """A figure of the plan; a setting if it has a *key*, that of dedicated mode."""

    name: str
    value: float
    unit: str
    bound: str
    formula: str
    source: str
    key: str | None = None
    default: float | None = None


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    figures: tuple[CapacityFigure, ...]
    properties: dict[str, str]  # only those that differ from Kafka's defaults
    notes: tuple[str, ...]


def plan_capacity(work: Workload, flow: Flow) -> CapacityPlan:
    """Size *flow*. Raises UserError if it cannot keep up, or loses records in the outage."""
    prefixes = {
        "flow": f"{flow.label}.",
        "consumer": f"{flow.source}.consumer.",
        "producer": f"{flow.label}.producer.override.",
    }
    values, figures = _values(work), []
    for row in _FIGURES.strip().splitlines():
        name, unit, bound, formula, source = (cell.strip() for cell in row.split("|"))
        scope, _, default = bound.partition(" ")
        key = prefixes[scope] + name if scope in prefixes else None
        kafka = float(default) if key and default else None
        bound = "" if key else bound
        figures.append(
            CapacityFigure(name, values[name], unit, bound, formula, source, key=key, default=kafka)
        )
    changed = {f.key: f"{f.value:.0f}" for f in figures if f.key and f.value != f.default}
    # Without it, workers that are not the leader lose changes of their tasks (KIP-710).
    changed["dedicated.mode.enable.internal.rest"] = "true"
    return CapacityPlan(tuple(figures), changed, tuple(_notes(work, flow, values)))


def _tasks_and_workers(work: Workload, task_rate: float) -> tuple[int, int]:
    needed = work.rate * (1 + work.headroom / 100)
    # A rounding error must not cost a partition.
    carried = max(floor(work.partitions * task_rate / needed + 1e-9), 1)
    tasks = max(ceil(work.partitions / carried), min(2, work.partitions))
    return tasks, ceil(tasks / work.tasks_per_worker) + 1


def _values(work: Workload) -> dict[str, float]:
    source, target = round_trips(work.round_trip, workers_at_source=work.workers_at_source)
    tasks, workers = _tasks_and_workers(work, work.task_bytes_per_second)
    busiest, shares = ceil(work.partitions / tasks), work.partitions * work.compression
    limit = min(work.task_bytes_per_second / busiest, _MIB * work.compression / target)
    capacity = work.partitions * limit
    if capacity <= work.rate:
        raise UserError(
            f"capacity is at most {capacity / 1e6:.3g} MB/s, {limit / 1e6:.3g} MB/s per partition "
            "(one task, one batch of 1 MiB per round trip); expected more than the rate, "
            f"{work.rate / 1e6:.3g} MB/s: add --partitions, raise --task-bytes-per-second by "
            "measurement, or run workers at the target"
        )
    lowest = work.outage * 60 + _FLUSH_SECONDS
    if work.retention is not None and work.retention * 3600 < lowest:
        raise UserError(
            f"--outage {work.outage:g} is too long for --retention {work.retention:g}; expected at "
            f"most {work.retention * 60 - 1:g} minutes (retention - flush interval): raise "
            f"retention.ms of the source topics to {lowest * 1000:.0f} or more"
        )
    safe = lowest + work.outage * 60 * work.rate / (capacity - work.rate)
    partition, steady = capacity / shares, work.rate / shares
    task = partition * busiest
    batch = min(_up(2 * partition * target, 4 * _KIB, 16 * _KIB), _MIB)
    size = min(work.rate / work.records_per_second, 1e8)
    request = _up(2 * max(task * target, size), 64 * _KIB, _MIB)
    syncs = work.records_per_second * busiest / work.partitions * source / _SYNCS_IN_FLIGHT
    return {
        "tasks.max": tasks,
        "workers": workers,
        "capacity": capacity / 1e6,
        "partition rate": partition / 1e6,
        "task rate": task / 1e6,
        "network, steady": 8.8e-6 * work.rate / work.compression,
        "network, catching up": 8.8e-6 * capacity / work.compression,
        "backlog after outage": work.records_per_second * work.outage * 60,
        "catch-up time": (safe - lowest) / 60,
        "lowest retention": lowest / 60,
        "safe retention": safe / 60,
        "retention.bytes": ceil(steady * safe),
        "replay after crash": work.records_per_second * _FLUSH_SECONDS,
        "offset.lag.max": max(100, ceil(syncs)),
        "fetch.min.bytes": max(1, floor(steady * source)),
        "max.partition.fetch.bytes": _up(2 * partition * source, 64 * _KIB, _MIB),
        "fetch.max.bytes": _up(2 * task * source, _MIB, 50 * _MIB),
        "receive.buffer.bytes": _up(task * source, 64 * _KIB, 64 * _KIB),
        "batch.size": batch,
        "linger.ms": 5,
        "max.request.size": request,
        "buffer.memory": max(2 * batch * busiest, request, 32 * _MIB),
        "send.buffer.bytes": _up(task * target, 64 * _KIB, 128 * _KIB),
    }


def _up(value: float, step: int, least: int) -> int:
    return max(ceil(value / step) * step, least)


def _notes(work: Workload, flow: Flow, values: dict[str, float]) -> Iterator[str]:
    spare = values["capacity"] * 1e8 / work.rate - 100
    if spare < work.headroom - 1e-6:
        yield f"headroom is {spare:.0f}, not {work.headroom:g} percent: partitions are the limit"
    if work.task_bytes_per_second == _ASSUMED_TASK:
        tasks, workers = _tasks_and_workers(work, _TUNED_TASK)
        yield f"if a task can do 10 MB/s, {tasks} tasks on {workers} workers suffice: measure one"
    if work.retention is not None and work.retention * 60 < values["safe retention"]:
        yield f"--retention {work.retention:g} survives one outage, not another while catching up"
    if work.compression > 1:
        yield f"also set {flow.label}.producer.override.compression.type (default: none)"
    yield "brokers' socket buffers and workers' net.core.rmem_max, wmem_max must allow the sizes"
    yield "assumes even load, 1 ms to the near cluster, 5 ms for acks=all, and Kafka's defaults"
