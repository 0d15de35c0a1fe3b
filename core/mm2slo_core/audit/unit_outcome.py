"""Audit results per partition and unit: verdicts, counts, latency, affinity and evidence.

Latency histograms have 16 buckets per doubling and are accurate to 4.4 %. A bucket is ceil(16 *
log2(max(ms, 1))), upper-inclusive as in Prometheus' native histograms of schema 4; bucket 0 holds
all up to 1 ms, and lower bounds below zero. Latencies are whole milliseconds, so a bucket is
described by its smallest and largest whole number; up to 23 ms a bucket holds at most one number,
without loss.

A latency is a bracket (lower, upper), and so are derived values: the percentile of the lower bounds
is a lower bound of the percentile, that of the upper bounds an upper bound.

Cells of keys: keys with equal numbers share a cell without loss. A cell holds totals, so cells of
several outcomes can be added. Distinct sizes are usually few (n records have at most about
sqrt(2n)). Beyond a limit, keys with similar numbers share a cell, and a resample draws their mean.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Final

from mm2slo_core.audit.audit_scope import UnitScope
from mm2slo_core.audit.confidence_bounds import order_statistic_ranks
from mm2slo_core.objectives.exclusion import MAX_TIMESTAMP_MS
from mm2slo_core.records.timeline_record import Side

EVIDENCE_CAP: Final = 100
"""Evidence that is kept per unit and verdict, unless stated otherwise."""


class Verdict(StrEnum):
    """One per source record, and one per surplus target record.

    Invariants of matching:
    A. Each source record of the window has exactly one verdict besides those of `ADDITIONAL`.
    B. Each target record is the copy of at most one source record; the rest is surplus, with one
       verdict of `SURPLUS`, or unauditable.
    C. A record without a copy is lost only below the position, and pending only from there on.
       Offsets are read in the order position, target end, source end (`audit_scope`), so a copy
       that was written after the position was read is no reason for a fault.
    """

    MATCHED = "matched"
    """The source record has its copy in the expected partition."""
    LATE = "late"
    """Matched, but lost or overdue in an earlier run of the same window."""
    PENDING = "pending"
    """Not replicated yet: beyond the position, younger than `max_pending`."""
    OVERDUE = "overdue"
    """Not replicated yet: beyond the position, older than `max_pending`."""
    LOST = "lost"
    """The position passed the record, and the target has no copy."""
    EXPIRED = "expired-unreplicated"
    """Removed from the source before replication. Counted from offsets."""
    UNAUDITABLE = "unauditable"
    """The counterpart is gone, or the target may have removed the copy."""
    MOVED = "moved"
    """The copy is in another partition."""
    ALTERED = "altered"
    """The copy has the same key and timestamp and other content."""
    UNMASKED = "unmasked"
    """A part that the flow must change arrived unchanged; an additional verdict on the record."""
    DUPLICATE = "duplicate"
    """An additional copy of a record."""
    REPLAY = "replay"
    """A duplicate in a block that was replicated again, as after a crash."""
    EXTRA = "extra"
    """A target record without a source record, from another producer."""
    OUT_OF_ORDER = "out-of-order"
    """A copy that precedes the copy of an earlier record of its source partition."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One anomaly by place and verdict, without payload."""

    verdict: Verdict
    side: Side
    """The side of the offset: source for missing records, target for surplus ones."""
    flow: int
    """Index of the flow within the unit."""
    partition: int
    offset: int
    timestamp: int
    fingerprint: int
    key_hash: int | None
    other_partition: int | None = None
    """Moved and altered: the partition of the copy on the target."""
    other_offset: int | None = None
    block: int | None = None
    """Replay: the target offset at which its block starts."""

    @property
    def time(self) -> int | None:
        """The timestamp if it is a date: a record may have none, or any 64-bit number."""
        return self.timestamp if 0 <= self.timestamp < MAX_TIMESTAMP_MS else None


@dataclass(frozen=True, slots=True)
class LatencyCells:
    """Bracketed latencies: (lower bucket, upper bucket) -> records.

    A bucket of None is an unknown lower bound (no previous poll).
    """

    cells: Mapping[tuple[int | None, int], int] = field(default_factory=dict)
    negative: int = 0
    """Records with an upper bound below zero (inconsistent clocks), in no cell."""
    total_upper_ms: int = 0
    """Sum of the upper bounds in ms of the records in `cells`, for the average."""
    total_lower_ms: int = 0


@dataclass(frozen=True, slots=True)
class PartitionOutcome:
    """One source partition of one flow; with flow None, target records of no flow."""

    flow: int | None
    partition: int
    counts: Mapping[Verdict, int]
    """Source and target records by verdict."""
    source_bytes: int = 0
    end_to_end: LatencyCells = field(default_factory=LatencyCells)
    transfer: LatencyCells = field(default_factory=LatencyCells)
    without_bracket: int = 0
    """Matched records that the timeline does not cover."""


@dataclass(frozen=True, slots=True, order=True)
class KeyCell:
    """Keys with similar numbers of records, and the totals of their records.

    For exactly equal keys, a total is the number of keys times the number of one.
    """

    keys: int
    records: int
    """Source records in the window."""
    copies: int
    """Auditable target records in the window."""
    moved: int = 0
    """Copies in a partition where their key does not belong."""
    overtook: int = 0
    """Source records whose copy precedes that of an earlier record of their key."""


def merge_key_cells(cells: Collection[KeyCell]) -> KeyCell:
    return KeyCell(
        **{part.name: sum(getattr(each, part.name) for each in cells) for part in fields(KeyCell)}
    )


@dataclass(frozen=True, slots=True)
class AffinityOutcome:
    """Affinity and order of the keys in the key stratum."""

    keys: int = 0
    keys_split: int = 0
    """Keys in more, or other, partitions on the target than on the source."""
    keys_disordered: int = 0
    """Keys with a record that overtook an earlier one of the same key."""
    records_moved: int = 0
    broken_keys: tuple[int, ...] = ()
    """Hashes of keys that violated affinity or order, capped."""
    cells: tuple[KeyCell, ...] = ()
    """For a sample, keys by their numbers of records (see `pool_key_cells`); for a census, one cell
    with all keys. Empty although there are keys: not known."""

    @property
    def total(self) -> KeyCell:
        return merge_key_cells(self.cells)


@dataclass(frozen=True, slots=True)
class ReplayEvent:
    """A block that was replicated again: `size` records from offset `start` on."""

    partition: int
    start: int
    end: int
    size: int


@dataclass(frozen=True, slots=True)
class UnitOutcome:
    """The result of a run for one target topic."""

    scope: UnitScope
    partitions: tuple[PartitionOutcome, ...]
    affinity: AffinityOutcome = field(default_factory=AffinityOutcome)
    copied_again: int = 0
    """Records with additional copies. Of equal records, a copy each: a thousand equal records and
    ten additional copies are ten records that were copied again."""
    replays: tuple[ReplayEvent, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    """Capped per verdict, unlike `counts`."""
    oldest_open: int | None = None
    """Timestamp (epoch ms) of the oldest pending or overdue record."""
    order_judged: bool = True
    """False if order is not defined (flows without MirrorMaker 2, no positions)."""

    @property
    def counts(self) -> Mapping[Verdict, int]:
        total: Counter[Verdict] = Counter()
        for each in self.partitions:
            total.update(each.counts)
        return total


FAULTS: Final = frozenset(
    {
        Verdict.OVERDUE,
        Verdict.LOST,
        Verdict.EXPIRED,
        Verdict.MOVED,
        Verdict.ALTERED,
        Verdict.UNMASKED,
    }
)
"""Verdicts that make a run exit with code 1. Duplicates, replays, extra and out-of-order records do
not: MirrorMaker 2 delivers at least once, and other producers may be intended."""

ADDITIONAL: Final = frozenset({Verdict.OUT_OF_ORDER, Verdict.UNMASKED})
"""Verdicts on records that have another one as well."""

UNREMARKABLE: Final = frozenset({Verdict.MATCHED, Verdict.PENDING, Verdict.UNAUDITABLE})
"""Verdicts that are no anomalies and have no evidence."""

EVIDENCED: Final = frozenset(Verdict) - UNREMARKABLE - {Verdict.EXPIRED}
"""Verdicts with evidence; expired records are only counted."""

SURPLUS: Final = frozenset({Verdict.DUPLICATE, Verdict.REPLAY, Verdict.EXTRA})
"""Verdicts on target records; unauditable is on both sides, all others on source records."""
PER_DOUBLING: Final = 16
PERCENTILES: Final = (0.5, 0.9, 0.95, 0.99, 0.999)
_ERROR: Final = 0.05


def latency_bucket(ms: int) -> int:
    """Return the index of the bucket of *ms*. Spark: `ceil(16 * log2(greatest(ms, 1)))`.

    Spark's `log2` is inexact at 2^29, 2^31 and 2^39 ms (6 days and more), one bucket too high.
    """
    return math.ceil(PER_DOUBLING * math.log2(max(ms, 1)))


def upper_bound_ms(index: int) -> int:
    """Return the largest whole number of milliseconds in a bucket."""
    return math.floor(math.pow(2.0, index / PER_DOUBLING))


def lower_bound_ms(index: int) -> int:
    """Return the smallest whole number of milliseconds in a bucket; 0 for the first."""
    return upper_bound_ms(index - 1) + 1 if index > 0 else 0


def minimum_n(q: float) -> int:
    """Return the observations needed for a 95 % upper bound of the q-quantile: q^n <= 5 %.

    p95 59, p99 299, p99.9 2995.
    """
    # All of n draws are below the q-quantile with probability q^n: then no rank bounds it.
    return math.ceil(math.log(_ERROR) / math.log(q))


@dataclass(frozen=True, slots=True)
class LatencyBracket:
    """Bounds of a latency in ms."""

    lower: float | None
    """None: not known."""
    upper: float


def percentile_name(q: float) -> str:
    """Format as `p99`, `p99.9`."""
    return f"p{q * 100:.3f}".rstrip("0").rstrip(".")


def merge_latencies(parts: Iterable[LatencyCells]) -> LatencyCells:
    """Combine the latencies of disjoint records."""
    cells: Counter[tuple[int | None, int]] = Counter()
    negative = total_upper = total_lower = 0
    for part in parts:
        cells.update(part.cells)
        negative += part.negative
        total_upper += part.total_upper_ms
        total_lower += part.total_lower_ms
    return LatencyCells(cells, negative, total_upper, total_lower)


def count_latencies(latency: LatencyCells) -> int:
    """Return the number of records with a known upper bound."""
    return sum(latency.cells.values())


def latency_percentile(
    latency: LatencyCells, q: float, *, sampled: bool = False
) -> LatencyBracket | None:
    """Return the q-quantile by nearest rank; None below `minimum_n(q)` records.

    *sampled* widens it by the 95 % order-statistic interval, so that it encloses the quantile of
    all records, not only of the sample. Also None if no rank of the sample is high enough (p99:
    below 368); lower is None if none is low enough.
    """
    n = count_latencies(latency)
    if n < minimum_n(q):
        return None
    rank = math.ceil(q * n - 1e-9)  # 0.57 * 100 is slightly more than 57
    low, high = order_statistic_ranks(n, q) if sampled else (rank, rank)
    upper = _at_rank(((each, count) for (_, each), count in latency.cells.items()), high)
    if upper is None:
        return None
    lower = _at_rank(((each, count) for (each, _), count in latency.cells.items()), low)
    return LatencyBracket(None if lower is None else lower_bound_ms(lower), upper_bound_ms(upper))


def average_latency(latency: LatencyCells) -> LatencyBracket | None:
    """Return the mean of the records in the cells, or None; unknown lower bounds count as 0."""
    n = count_latencies(latency)
    if n == 0:
        return None
    return LatencyBracket(latency.total_lower_ms / n, latency.total_upper_ms / n)


def _at_rank(cells: Iterable[tuple[int | None, int]], rank: int | None) -> int | None:
    """Return the bucket of the rank-th smallest record; unknown ones are the smallest."""
    if rank is None:
        return None
    passed = 0
    for index, count in sorted(cells, key=lambda each: -1 if each[0] is None else each[0]):
        passed += count
        if passed >= rank:
            return index
    return None


MAX_CELLS: Final = 512

_FINEST: Final = 1 / 16
"""Doublings per bucket: numbers in one bucket are within 4.4 % of each other."""

_WIDENINGS: Final = 12
"""After this many widenings all numbers except zero share one bucket: 16 cells."""
_PerKey = tuple[float, ...]


def pool_key_cells(cells: Iterable[KeyCell], limit: int = MAX_CELLS) -> tuple[KeyCell, ...]:
    """Return at most *limit* cells (16 or more) with the same totals, sorted.

    If equal keys alone need more cells, keys whose records, copies, moved and overtaking records
    are each in the same bucket share one. Zero has its own bucket, so the number of keys with an
    event stays exact, as all totals do. Buckets are 16 per doubling, then double in width until
    there are few enough cells.
    """
    exact = _merged(cells, _mean_of_cell)
    found = exact
    for widening in range(_WIDENINGS):
        if len(found) <= limit:
            break
        found = _merged(exact, _bucketed(_FINEST * 2**widening))
    return tuple(sorted(found))


def _merged(cells: Iterable[KeyCell], trait: Callable[[KeyCell], _PerKey]) -> list[KeyCell]:
    groups: defaultdict[_PerKey, list[KeyCell]] = defaultdict(list)
    for cell in cells:
        groups[trait(cell)].append(cell)
    return [merge_key_cells(alike) for alike in groups.values()]


def _mean_of_cell(cell: KeyCell) -> _PerKey:
    """Return the mean numbers per key of a cell."""
    totals = (cell.records, cell.copies, cell.moved, cell.overtook)
    return tuple(total / cell.keys for total in totals)


def _bucketed(doublings: float) -> Callable[[KeyCell], _PerKey]:
    def bucket(cell: KeyCell) -> _PerKey:
        return tuple(
            math.floor(math.log2(number) / doublings) if number else -1.0
            for number in _mean_of_cell(cell)
        )

    return bucket
