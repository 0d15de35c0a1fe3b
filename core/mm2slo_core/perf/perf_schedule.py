"""What a measurement does and when: the load, the order of runs, the search for a rate (pure).

The load is open: record n is intended for the time start + n / rate, whatever happened to the
records before it. Latency counts from that time, so that a stall of the source, of MirrorMaker 2
or of the generator cannot hide. The generator's own delay is its *slip*; a run with too much of it
measures the generator, and is rejected.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, TypeVar

from mm2slo_core.user_errors import UserError

_Cell = TypeVar("_Cell")

TOPIC: Final = "mm2slo.perf"
"""Prefix of the topics of a measurement, which it creates and deletes."""

MAX_SLIP: Final = 0.1
"""Seconds. A record that is sent later belongs to the generator, not to the replication."""

PRECISION: Final = 1.05
"""The search for a rate ends when the highest good and the lowest bad rate are this near."""

KEPT_BYTES: Final = 1 << 30
"""Of the topic on each cluster, by its retention; a backlog has half of it."""

RECORD_OVERHEAD: Final = 70
"""Bytes: the header with the intended time, and what a batch has for each record."""

_GROWTH: Final = 0.98
"""Of the records sent, at least so many must arrive in the same time: else the backlog grows."""

_BATCH_SECONDS: Final = 0.2
_SETTLED: Final = 0.1
_RESTART_SECONDS: Final = 12.0
_PROBES: Final = 6


class PerfMode(StrEnum):
    LATENCY = "latency"
    """How long records take at a given rate."""
    SUSTAINED = "sustained"
    """The highest rate at which the backlog does not grow and p99 stays within the bound."""
    DRAIN = "drain"
    """How fast a backlog is copied."""


@dataclass(frozen=True, slots=True)
class PerfLoad:
    """What to write and for how long."""

    mode: PerfMode = PerfMode.LATENCY
    rate: float = 1000.0
    """Records per second; of `sustained` and `drain` the highest that may be tried."""
    record_size: int = 1000
    partitions: int = 5
    copy_partitions: int | None = None
    """Of a copy that is made before; None: MirrorMaker 2 makes it."""
    seconds: float = 10.0
    warm_up: float = 60.0
    """At most: it ends when two windows agree."""
    p99: float = 1.0
    """Seconds; the bound of `sustained`."""
    max_bytes: float = 2e9
    """Written in one run."""

    @property
    def window(self) -> float:
        """Seconds of one window of the warm-up."""
        return max(self.seconds / 5, 1.0)


@dataclass(frozen=True, slots=True)
class PerfCell:
    """A point of a matrix: the load, the way to the source, and MirrorMaker 2's properties."""

    name: str
    load: PerfLoad
    round_trip_ms: float | None = 0.0
    """None if it is not known."""
    tasks: int | None = 1
    """`tasks.max`; None if it is not known."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Others than the lab's."""


def is_settled(before: float | None, after: float | None) -> bool:
    """Whether the medians of two windows agree, so that the warm-up is over."""
    if before is None or after is None:
        return False
    return abs(after - before) <= max(_SETTLED * before, 0.001)


def sustains(sent: int, arrived: int, p99: float | None, bound: float) -> bool:
    """Whether a rate can be kept: as much arrives as is sent, and p99 is within the bound."""
    return arrived >= _GROWTH * sent and p99 is not None and p99 <= bound


def backlog_growth(load: PerfLoad, sent: int, arrived: int) -> int:
    """By how much the backlog grew while a rate was measured; 0 for what batches explain."""
    grown = sent - arrived
    return grown if grown > max((1 - _GROWTH) * sent, _BATCH_SECONDS * load.rate) else 0


class RateSearch:
    """The highest rate that is sustained, by bisection of logarithms.

    The first guess comes from how fast a backlog was copied. A rate is too high after two failures
    in a row: one may be a pause of a broker or of this machine.
    """

    def __init__(self, guess: float, limit: float) -> None:
        self._limit = limit
        self._hopeless = min(guess, limit) / 20
        self._low = 0.0
        self._high: float | None = None
        self._failed = 0.0
        self.next_rate = min(guess, limit)

    @property
    def found(self) -> float:
        """The highest rate that was sustained so far; 0 for none."""
        return self._low

    @property
    def is_over(self) -> bool:
        """Whether the rate is found, or so far below the first guess that none will be."""
        if self._low >= self._limit or self.next_rate < self._hopeless:
            return True
        return self._high is not None and self._high <= max(self._low * PRECISION, 1.0)

    def learn(self, *, sustained: bool) -> None:
        """Note how `next_rate` went, and choose the next one."""
        if sustained:
            self._low = self.next_rate
        elif self._failed != self.next_rate:
            self._failed = self.next_rate
            return
        else:
            self._high = self.next_rate
        if self._high is None:
            self.next_rate = min(self._low * 1.3, self._limit)
        elif self._low:
            self.next_rate = (self._low * self._high) ** 0.5
        else:
            self.next_rate = self._high / 1.5


def blocks(cells: Sequence[_Cell], repeats: int) -> Iterator[Sequence[_Cell]]:
    """The order of all runs: each block has each cell once, every second one backwards.

    With two cells that is A B, B A, A B ...: a machine that gets slower or faster meanwhile does
    the same to both. Runs of one block are compared with each other.
    """
    for number in range(repeats):
        yield tuple(cells) if number % 2 == 0 else tuple(reversed(cells))


def expected_seconds(cells: Sequence[PerfCell], repeats: int) -> float:
    """A guess, from the lengths of the windows and the time that a restart takes."""

    def one(load: PerfLoad) -> float:
        each = {
            PerfMode.LATENCY: load.seconds + 3 * load.window,
            PerfMode.DRAIN: 5 * load.seconds,
            PerfMode.SUSTAINED: (5 + _PROBES * 1.5) * load.seconds,
        }
        return each[load.mode] + _RESTART_SECONDS

    return repeats * sum(one(each.load) for each in cells)


FACTORS: Final[Mapping[str, str]] = {
    "batch": "{flow}.producer.override.batch.size",
    "linger": "{flow}.producer.override.linger.ms",
    "compression": "{flow}.producer.override.compression.type",
    "max.poll.records": "{source}.consumer.max.poll.records",
    "fetch.min.bytes": "{source}.consumer.fetch.min.bytes",
    "max.partition.fetch.bytes": "{source}.consumer.max.partition.fetch.bytes",
    "exactly-once": "{target}.exactly.once.source.support",
}
"""MirrorMaker 2's property in dedicated mode, by the name of a factor."""

RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "tasks": (1, 1000),
    "partitions": (1, 1000),
    "record-size": (1, 1_000_000),
    "rate": (0.1, 1e9),
    "round-trip": (0, 2000),
}
"""Of factors that are numbers of the measurement itself."""


def factor_cell(base: PerfCell, factor: str, value: str, flow: str) -> PerfCell:
    """*base* with one factor changed. Raises UserError for a factor or value that is not one."""
    name = f"{factor}={value}"
    if factor in FACTORS:
        if not value:
            raise UserError(f"--factor {name}: expected a value")
        source, _, target = flow.partition("->")
        key = FACTORS[factor].format(flow=flow, source=source, target=target)
        return replace(base, name=name, properties={**base.properties, key: value})
    if factor not in RANGES:
        expected = ", ".join((*RANGES, *FACTORS))
        raise UserError(f"--factor {factor!r} is not known; expected one of {expected}")
    low, high = RANGES[factor]
    try:
        number = float(value) if factor in {"rate", "round-trip"} else int(value)
    except ValueError:
        number = -1
    if not low <= number <= high:
        raise UserError(f"--factor {name}: expected a number from {low:g} to {high:g}")
    if factor == "round-trip":
        return replace(base, name=name, round_trip_ms=number)
    if factor == "tasks":
        return replace(base, name=name, tasks=int(number))
    changed: dict[str, Any] = {factor.replace("-", "_"): number}
    return replace(base, name=name, load=replace(base.load, **changed))
