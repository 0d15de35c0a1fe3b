"""Collects the rows that Spark returns into outcomes of units."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mm2slo_audit.engine.latency_cells import unpack_row
from mm2slo_audit.engine.leftover_verdicts import VERDICTS
from mm2slo_audit.engine.unit_columns import judges_order
from mm2slo_core.audit.key_cells import pool_key_cells
from mm2slo_core.audit.latency_histogram import merge
from mm2slo_core.audit.record_verdict import SURPLUS, Verdict
from mm2slo_core.audit.unit_outcome import (
    AffinityOutcome,
    Evidence,
    KeyCell,
    LatencyCells,
    PartitionOutcome,
    ReplayEvent,
    UnitOutcome,
)
from mm2slo_core.timeline_record import Side

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Row

    from mm2slo_audit.engine.group_marks import Mark
    from mm2slo_core.audit.audit_scope import UnitScope

OPEN = (Verdict.PENDING, Verdict.OVERDUE)

_Cell = tuple[int | None, int]
_Latency = tuple[LatencyCells, LatencyCells, int]
_NO_LATENCY: _Latency = (LatencyCells(), LatencyCells(), 0)


@dataclass(slots=True)
class UnitLedger:
    scope: UnitScope
    counts: defaultdict[_Cell, Counter[Verdict]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    matched: dict[_Cell, int] = field(default_factory=dict)
    source_bytes: dict[_Cell, int] = field(default_factory=dict)
    latency: dict[_Cell, _Latency] = field(default_factory=dict)
    evidence: list[Evidence] = field(default_factory=list)
    copied_again: int = 0
    replays: list[ReplayEvent] = field(default_factory=list)
    affinity: AffinityOutcome = field(default_factory=AffinityOutcome)
    key_cells: list[KeyCell] = field(default_factory=list)
    broken_keys: list[int] = field(default_factory=list)
    oldest_open: int | None = None

    def __post_init__(self) -> None:
        for flow, of_flow in enumerate(self.scope.flows):
            for each in of_flow.partitions:
                cell = self.counts[flow, each.partition]
                if each.expired:
                    cell[Verdict.EXPIRED] = each.expired

    def add_tally(self, row: Row) -> None:
        """Add matches and latencies of a partition or of a part of its records."""
        cell = row.flow, row.partition
        self.matched[cell] = self.matched.get(cell, 0) + row.matched - row.late
        self.counts[cell][Verdict.LATE] += row.late
        end_to_end, transfer, without = self.latency.get(cell, _NO_LATENCY)
        more_end_to_end, more_transfer, more_without = unpack_row(row)
        self.latency[cell] = (
            merge((end_to_end, more_end_to_end)),
            merge((transfer, more_transfer)),
            without + more_without,
        )

    def add_decided(self, mark: Mark) -> None:
        """Add verdicts that needed no second pass."""
        if mark.verdict is not None:
            self.counts[mark.flow, mark.partition][mark.verdict] += mark.groups

    def add_open(self, timestamp: int) -> None:
        """Add the timestamp of a pending or overdue record."""
        oldest = self.oldest_open
        self.oldest_open = timestamp if oldest is None else min(oldest, timestamp)

    def add_deleted(self, row: Row) -> None:
        """Add tombstones that match without a copy."""
        self.counts[row.flow, row.partition][Verdict.MATCHED] += row["count"]

    def add_bytes(self, row: Row) -> None:
        """Add bytes of source records."""
        cell = row.flow, row.partition
        self.source_bytes[cell] = self.source_bytes.get(cell, 0) + row.source_bytes

    def add_count(self, row: Row) -> None:
        """Add the count of a verdict in a partition."""
        verdict = VERDICTS[row.verdict]
        self.counts[row.cell_flow, row.cell_partition][verdict] += row.n
        if verdict in OPEN and row.oldest is not None:
            self.add_open(row.oldest)

    def add_evidence(self, row: Row) -> None:
        verdict = VERDICTS[row.verdict]
        self.evidence.append(
            Evidence(
                verdict=verdict,
                side=Side.TARGET if verdict in SURPLUS else Side.SOURCE,
                flow=row.cell_flow or 0,
                partition=row.partition,
                offset=row.offset,
                timestamp=row.ts,
                fingerprint=row.fp,
                key_hash=row.kh,
                other_partition=row.other_partition,
                other_offset=row.other_offset,
                block=row.block,
            )
        )

    def add_replay(self, row: Row) -> None:
        """Add a block that was replicated again."""
        self.replays.append(ReplayEvent(row.partition, row.block, row.block_end, row.block_size))

    def add_affinity(self, row: Row) -> None:
        """Add counts of keys: of all keys, or of those with equal counts."""
        self.affinity = AffinityOutcome(
            keys=self.affinity.keys + row.keys_,
            keys_split=self.affinity.keys_split + row.keys_split,
            keys_disordered=self.affinity.keys_disordered + row.keys_disordered,
            records_moved=self.affinity.records_moved + row.strays,
        )
        self.key_cells.append(KeyCell(row.keys_, row.records, row.copies, row.strays, row.overtook))

    def outcome(self) -> UnitOutcome:
        for cell, matched in self.matched.items():
            if matched:
                self.counts[cell][Verdict.MATCHED] += matched
        rank = {verdict: place for place, verdict in enumerate(VERDICTS)}
        return UnitOutcome(
            scope=self.scope,
            partitions=tuple(self._partitions()),
            affinity=replace(
                self.affinity,
                broken_keys=tuple(sorted(self.broken_keys)),
                cells=pool_key_cells(self.key_cells),
            ),
            copied_again=self.copied_again,
            replays=tuple(sorted(self.replays, key=lambda each: (each.partition, each.start))),
            evidence=tuple(
                sorted(
                    self.evidence,
                    key=lambda each: (rank[each.verdict], each.flow, each.partition, each.offset),
                )
            ),
            oldest_open=self.oldest_open,
            order_judged=judges_order(self.scope),
        )

    def _partitions(self) -> Iterable[PartitionOutcome]:
        for cell in sorted(self.counts, key=lambda each: (each[0] is None, each[0] or 0, each[1])):
            counts = {verdict: number for verdict, number in self.counts[cell].items() if number}
            if cell[0] is None and not counts:
                continue  # all its records had moved or were altered
            end_to_end, transfer, without = self.latency.get(cell, _NO_LATENCY)
            yield PartitionOutcome(
                flow=cell[0],
                partition=cell[1],
                counts=counts,
                source_bytes=self.source_bytes.get(cell, 0),
                end_to_end=end_to_end,
                transfer=transfer,
                without_bracket=without,
            )
