"""Audit results per partition and per unit: counts, latency, affinity and evidence."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mm2slo_core.audit.record_verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_core.audit.audit_scope import UnitScope
    from mm2slo_core.timeline_record import Side

EVIDENCE_CAP: Final = 100
"""Evidence that is kept per unit and verdict, unless stated otherwise."""
_RANK: Final = {verdict: rank for rank, verdict in enumerate(Verdict)}


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


def cap_evidence(evidence: Iterable[Evidence], cap: int | None) -> tuple[Evidence, ...]:
    """Return *evidence* in order, at most *cap* per verdict."""
    taken: Counter[Verdict] = Counter()
    kept = []
    for each in sorted(
        evidence, key=lambda one: (_RANK[one.verdict], one.flow, one.partition, one.offset)
    ):
        taken[each.verdict] += 1
        if cap is None or taken[each.verdict] <= cap:
            kept.append(each)
    return tuple(kept)


@dataclass(frozen=True, slots=True)
class LatencyCells:
    """Bracketed latencies: (lower bucket, upper bucket) -> records.

    Buckets are those of `latency_histogram`: index = ceil(16 * log2(max(ms, 1))), upper-inclusive.
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
    """For a sample, keys by their numbers of records (see `key_cells`); for a census, one cell with
    all keys. Empty although there are keys: not known."""

    @property
    def total(self) -> KeyCell:
        """All cells merged into one."""
        return KeyCell(
            keys=sum(each.keys for each in self.cells),
            records=sum(each.records for each in self.cells),
            copies=sum(each.copies for each in self.cells),
            moved=sum(each.moved for each in self.cells),
            overtook=sum(each.overtook for each in self.cells),
        )


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
    """Records with additional copies, by their fingerprint, like the draws of a sample."""
    replays: tuple[ReplayEvent, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    """Capped per verdict, unlike `counts`."""
    oldest_open: int | None = None
    """Timestamp (epoch ms) of the oldest pending or overdue record."""
    order_judged: bool = True
    """False if order is not defined (flows without MirrorMaker 2, no positions)."""

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """Counts of all partitions."""
        total: Counter[Verdict] = Counter()
        for each in self.partitions:
            total.update(each.counts)
        return total
