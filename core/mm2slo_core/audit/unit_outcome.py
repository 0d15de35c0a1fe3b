"""What an audit found: counts, latency, affinity and evidence, per partition and per unit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.audit.audit_scope import UnitScope
    from mm2slo_core.audit.record_verdict import Verdict
    from mm2slo_core.timeline_record import Side


@dataclass(frozen=True, slots=True)
class Evidence:
    """One anomaly: where it is and what it is, never what it says."""

    verdict: Verdict
    side: Side
    """Whose offset this is: source for what is missing, target for what is too much."""
    flow: int
    """Index of the flow within the unit."""
    partition: int
    offset: int
    timestamp: int
    fingerprint: int
    key_hash: int | None
    other_partition: int | None = None
    """Moved and altered: where the counterpart is on the target."""
    other_offset: int | None = None
    block: int | None = None
    """Replay: the target offset at which its block starts."""


@dataclass(frozen=True, slots=True)
class LatencyCells:
    """Bracketed latencies: (lower bucket, upper bucket) -> records.

    Buckets are those of `latency_histogram`: index = ceil(16 * log2(max(ms, 1))), upper-inclusive.
    A bucket of None is a lower bound that is not known (no poll preceded).
    """

    cells: Mapping[tuple[int | None, int], int] = field(default_factory=dict)
    negative: int = 0
    """Records whose upper bound lies below zero: the clocks disagree. Counted in no cell."""
    total_upper_ms: int = 0
    """Sum of the upper bounds in ms, for the average; of the records in `cells`."""
    total_lower_ms: int = 0


@dataclass(frozen=True, slots=True)
class PartitionOutcome:
    """One source partition of one flow, or (flow None) what the target alone has in a partition."""

    flow: int | None
    partition: int
    counts: Mapping[Verdict, int]
    """Source records by verdict, and target records by theirs."""
    source_bytes: int = 0
    end_to_end: LatencyCells = field(default_factory=LatencyCells)
    transfer: LatencyCells = field(default_factory=LatencyCells)
    without_bracket: int = 0
    """Matched records that the timeline says nothing about."""


@dataclass(frozen=True, slots=True, order=True)
class KeyCell:
    """Keys that are alike, and the records of all of them together.

    Totals, so that cells add up whatever they hold: of keys that are exactly alike each is the
    number of keys times the figure of one.
    """

    keys: int
    records: int
    """On the source, in the window."""
    copies: int
    """On the target, in the window and auditable."""
    moved: int = 0
    """Of the copies: where their key does not belong."""
    overtook: int = 0
    """Of the source records: their copy lies before that of an earlier record of their key."""


@dataclass(frozen=True, slots=True)
class AffinityOutcome:
    """Whether keys stayed where they were and in their order; of the key stratum."""

    keys: int = 0
    keys_split: int = 0
    """Keys in more partitions of the target than of the source, or in others."""
    keys_disordered: int = 0
    """Keys with a record that overtook an earlier one of the same key."""
    records_moved: int = 0
    broken_keys: tuple[int, ...] = ()
    """Hashes of keys that broke affinity or order, capped."""
    cells: tuple[KeyCell, ...] = ()
    """Of a sample by what one key has, for rates per record are of keys drawn whole (see
    `key_cells`); of a census all keys in one. Empty though there are keys: not known."""

    @property
    def total(self) -> KeyCell:
        """All cells in one."""
        return KeyCell(
            keys=sum(each.keys for each in self.cells),
            records=sum(each.records for each in self.cells),
            copies=sum(each.copies for each in self.cells),
            moved=sum(each.moved for each in self.cells),
            overtook=sum(each.overtook for each in self.cells),
        )


@dataclass(frozen=True, slots=True)
class ReplayEvent:
    """A block that was copied again: `size` records from `start` on."""

    partition: int
    start: int
    end: int
    size: int


@dataclass(frozen=True, slots=True)
class UnitOutcome:
    """Everything a run says about one target topic."""

    scope: UnitScope
    partitions: tuple[PartitionOutcome, ...]
    affinity: AffinityOutcome = field(default_factory=AffinityOutcome)
    replays: tuple[ReplayEvent, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    """Capped per verdict; `counts` are not."""
    oldest_open: int | None = None
    """Timestamp (epoch ms) of the oldest pending or overdue record: complete up to it."""
    order_judged: bool = True
    """False where order means nothing (flows without MirrorMaker 2, no positions)."""

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """Counts over all partitions."""
        total: Counter[Verdict] = Counter()
        for each in self.partitions:
            total.update(each.counts)
        return total
