"""The verdicts on all records of one unit."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from mm2slo_core.audit.audit_scope import Comparison
from mm2slo_core.audit.record_verdict import SURPLUS, UNREMARKABLE, Verdict
from mm2slo_core.audit.reference.arrival_latency import Arrivals, latencies
from mm2slo_core.audit.reference.copy_order import descents
from mm2slo_core.audit.reference.key_affinity import affinity
from mm2slo_core.audit.reference.late_copies import is_late
from mm2slo_core.audit.reference.latest_records import pair_latest
from mm2slo_core.audit.reference.missing_records import missing_verdicts
from mm2slo_core.audit.reference.record_groups import pair
from mm2slo_core.audit.reference.replayed_blocks import find_replays
from mm2slo_core.audit.reference.unmasked_records import find_unmasked
from mm2slo_core.audit.unit_outcome import (
    Evidence,
    PartitionOutcome,
    UnitOutcome,
    cap_evidence,
)
from mm2slo_core.timeline_record import Side

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mm2slo_core.audit.audit_record import ArrivalPoll, AuditRecord
    from mm2slo_core.audit.audit_scope import UnitScope
    from mm2slo_core.audit.record_sample import Sample
    from mm2slo_core.audit.reference.record_groups import Pair, Pairing
    from mm2slo_core.audit.unit_outcome import AffinityOutcome, ReplayEvent

_OPEN = {Verdict.PENDING, Verdict.OVERDUE}


def judge(
    records: Sequence[AuditRecord],
    polls: Sequence[ArrivalPoll],
    scope: UnitScope,
    sample: Sample,
    *,
    evidence_cap: int | None = None,
) -> UnitOutcome:
    """Judge the unit of *scope*; *records* and *polls* may include those of other units.

    Records have their sample strata; *sample* is only used for whether it is a census.
    *evidence_cap* limits evidence per verdict, and broken keys. Raises KeyError for a source
    partition that is not in the scope.
    """
    of_unit = [each for each in records if each.topic == scope.index]
    latest = scope.comparison is Comparison.LATEST
    keyed = [each for each in of_unit if each.in_keys]
    compared = keyed if latest else [each for each in of_unit if each.in_records]
    pairing = pair_latest(compared, scope) if latest else pair(compared, scope)
    ledger = _Ledger(scope)
    ledger.add_sources(compared)
    ledger.add_pairing(pairing, compared, census=sample.census)
    order_judged = not latest and all(flow.has_positions for flow in scope.flows)
    if order_judged and scope.comparison is Comparison.RECORDS:
        ledger.add_disorder(pairing.matched)
    ledger.add_unmasked(find_unmasked(compared, scope))
    arrivals = Arrivals((each for each in polls if each.topic == scope.index), scope)
    in_order = pair(keyed, scope).matched if order_judged else ()
    return ledger.outcome(
        arrivals,
        affinity(keyed, in_order, scope, evidence_cap, census=sample.census),
        order_judged=order_judged,
        evidence_cap=evidence_cap,
    )


_Cell = tuple[int | None, int]
"""Flow, or None for target records of no flow, and partition."""


class _Ledger:
    """Collects verdicts by partition."""

    def __init__(self, scope: UnitScope) -> None:
        self._scope = scope
        self._is_in_window = scope.window.contains
        self._counts: defaultdict[_Cell, Counter[Verdict]] = defaultdict(Counter)
        self._bytes: Counter[_Cell] = Counter()
        self._matched: defaultdict[_Cell, list[Pair]] = defaultdict(list)
        self._evidence: list[Evidence] = []
        self._copied_again: set[int] = set()
        self._replays: set[ReplayEvent] = set()
        self._open: list[int] = []
        for flow, of_flow in enumerate(scope.flows):
            for source in of_flow.partitions:
                self._counts[flow, source.partition] += Counter({Verdict.EXPIRED: source.expired})

    def add_sources(self, records: Iterable[AuditRecord]) -> None:
        for record in records:
            if record.side is Side.SOURCE and self._is_in_window(record.timestamp):
                self._bytes[record.flow, record.partition] += record.size

    def add_pairing(
        self, pairing: Pairing, records: Sequence[AuditRecord], *, census: bool
    ) -> None:
        latest = self._scope.comparison is Comparison.LATEST
        for source, copy in pairing.matched:
            if self._is_in_window(source.timestamp):
                self._matched[source.flow, source.partition].append((source, copy))
                if latest or not is_late((source, copy), self._scope):
                    self._add(Verdict.MATCHED, source)
                else:
                    self._add(Verdict.LATE, source, counterpart=copy)
        for source in pairing.deleted:
            self._add(Verdict.MATCHED, source)
        sources = (each for each in records if each.side is Side.SOURCE)
        missing = missing_verdicts(pairing.missing, pairing.unexplained, sources, self._scope)
        for source, verdict, counterpart in missing.verdicts:
            self._add(verdict, source, counterpart=counterpart)
        duplicates = (*pairing.duplicates, *missing.duplicates)
        events = find_replays(records, duplicates, self._scope.window) if census else {}
        self._replays.update(events.values())
        for owner, copy in duplicates:
            event = events.get((copy.partition, copy.offset))
            verdict = Verdict.DUPLICATE if event is None else Verdict.REPLAY
            block = None if event is None else event.start
            if self._is_in_window(copy.timestamp):
                self._copied_again.add(copy.fingerprint)
            self._add(verdict, copy, cell=(owner.flow, owner.partition), block=block)
        known = {each.partition: each.auditable_from for each in self._scope.partitions}
        for copy in missing.unexplained:
            auditable = copy.offset >= known.get(copy.partition, 0)
            verdict = Verdict.EXTRA if auditable else Verdict.UNAUDITABLE
            self._add(verdict, copy, cell=(None, copy.partition))

    def add_disorder(self, matched: Iterable[Pair]) -> None:
        for source, copy in descents(matched, lambda each: (each[0].flow, each[0].partition)):
            self._add(Verdict.OUT_OF_ORDER, source, counterpart=copy)

    def add_unmasked(self, pairs: Iterable[Pair]) -> None:
        for source, copy in pairs:
            self._add(Verdict.UNMASKED, source, counterpart=copy)

    def outcome(
        self,
        arrivals: Arrivals,
        of_keys: AffinityOutcome,
        *,
        order_judged: bool,
        evidence_cap: int | None,
    ) -> UnitOutcome:
        return UnitOutcome(
            scope=self._scope,
            partitions=tuple(self._partitions(arrivals)),
            affinity=of_keys,
            copied_again=len(self._copied_again),
            replays=tuple(sorted(self._replays, key=lambda each: (each.partition, each.start))),
            evidence=cap_evidence(self._evidence, evidence_cap),
            oldest_open=min(self._open, default=None),
            order_judged=order_judged,
        )

    def _partitions(self, arrivals: Arrivals) -> Iterator[PartitionOutcome]:
        cells = sorted(self._counts, key=lambda cell: (cell[0] is None, cell[0] or 0, cell[1]))
        for flow, partition in cells:
            found = latencies(self._matched[flow, partition], arrivals, self._scope)
            yield PartitionOutcome(
                flow=flow,
                partition=partition,
                counts=dict(self._counts[flow, partition]),
                source_bytes=self._bytes[flow, partition],
                end_to_end=found.end_to_end,
                transfer=found.transfer,
                without_bracket=found.without_bracket,
            )

    def _add(
        self,
        verdict: Verdict,
        record: AuditRecord,
        *,
        cell: _Cell | None = None,
        counterpart: AuditRecord | None = None,
        block: int | None = None,
    ) -> None:
        if not self._is_in_window(record.timestamp):
            return
        flow, partition = cell or (record.flow, record.partition)
        self._counts[flow, partition][verdict] += 1
        if verdict in _OPEN:
            self._open.append(record.timestamp)
        if verdict in UNREMARKABLE:
            return
        self._evidence.append(
            Evidence(
                verdict=verdict,
                side=Side.TARGET if verdict in SURPLUS else Side.SOURCE,
                flow=flow or 0,
                partition=record.partition,
                offset=record.offset,
                timestamp=record.timestamp,
                fingerprint=record.fingerprint,
                key_hash=record.key_hash,
                other_partition=None if counterpart is None else counterpart.partition,
                other_offset=None if counterpart is None else counterpart.offset,
                block=block,
            )
        )
