"""The reference against injected faults: every verdict, by offset."""

from collections import Counter, defaultdict

import pytest
from hypothesis import given
from injected_records import (
    Fault,
    Injected,
    Place,
    Plan,
    bracket,
    inject,
    plans,
    poll_times,
    random_plan,
)
from reference_audit import judge
from reference_fingerprint import keeps_key

from mm2slo_core.audit.audit_scope import Comparison
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import (
    ADDITIONAL,
    FAULTS,
    SURPLUS,
    AffinityOutcome,
    LatencyCells,
    UnitOutcome,
    Verdict,
    latency_bucket,
    merge_latencies,
    pool_key_cells,
)
from mm2slo_core.records.timeline_record import Side

CENSUS = Sample(1.0)
IN_EVIDENCE = (FAULTS | SURPLUS | {Verdict.OUT_OF_ORDER}) - {Verdict.EXPIRED}


@given(plans())
def test_judge_finds_exactly_the_injected_faults(plan: Plan) -> None:
    made = inject(plan)
    compare(made, judge(made.records, made.polls, made.scope, CENSUS))


@pytest.mark.parametrize("seed", range(60))
def test_judge_finds_exactly_the_injected_faults_in_long_runs(seed: int) -> None:
    made = inject(random_plan(seed, steps=150), index=3)
    compare(made, judge(made.records, made.polls, made.scope, CENSUS))


@pytest.mark.parametrize("seed", range(60))
def test_key_cells_of_sample_equal_truth(seed: int) -> None:
    sample = Sample(0.5, salt=seed)
    made = inject(random_plan(seed, steps=150), sample=sample)
    found = judge(made.records, made.polls, made.scope, sample).affinity
    kept = [cell for key, cell in made.truth.of_keys.items() if keeps_key(sample, key)]
    assert found.cells == pool_key_cells(kept)
    assert found.keys == len(kept)


def test_plans_cover_every_fault_and_verdict() -> None:
    made = [inject(random_plan(seed, steps=150)) for seed in range(60)]
    for verdict in set(Verdict) - {Verdict.LATE, Verdict.UNMASKED}:
        assert sum(each.truth.count(verdict) for each in made) >= 20, verdict
    assert sum(each.scope.comparison is Comparison.KEYS for each in made) >= 10
    assert sum(len(each.scope.flows) == 2 for each in made) >= 10
    assert sum(len(each.truth.split) for each in made) >= 20
    assert sum(len(each.truth.disordered) for each in made) >= 10
    cells = [cell for each in made for cell in each.truth.of_keys.values()]
    assert sum(0 < cell.moved < cell.copies != cell.records for cell in cells) >= 20
    assert sum(cell.overtook > 1 for cell in cells) >= 3
    steps = [step for seed in range(60) for step in random_plan(seed).steps]
    assert {step.fault for step in steps} == set(Fault)


def compare(made: Injected, found: UnitOutcome) -> None:
    truth = made.truth
    for verdict in Verdict:
        assert found.counts.get(verdict, 0) == truth.count(verdict), verdict
    assert evidence_places(found) == {
        verdict: places for verdict, places in truth.places.items() if verdict in IN_EVIDENCE
    }
    assert by_partition(found) == true_by_partition(made)
    waiting = truth.places[Verdict.PENDING] | truth.places[Verdict.OVERDUE]
    timestamps = {place_of(each): each.timestamp for each in made.records}
    assert found.oldest_open == min((timestamps[each] for each in waiting), default=None)
    compare_affinity(made, found)
    compare_replays(made, found)
    compare_latency(made, found)
    check_invariants(made, found)


def check_invariants(made: Injected, found: UnitOutcome) -> None:
    """Those of `Verdict`, by name, from nothing but the records of both sides."""
    sources = [each for each in made.records if each.side is Side.SOURCE]
    in_window = sum(made.scope.window.contains(each.timestamp) for each in sources)
    own = frozenset(Verdict) - ADDITIONAL - SURPLUS - {Verdict.EXPIRED}
    judged = Counter[Verdict]()
    for each in found.partitions:
        if each.flow is not None:
            judged.update(each.counts)
    assert sum(judged[verdict] for verdict in own) == in_window, "A"

    copied = sum(judged[each] for each in (Verdict.MATCHED, Verdict.MOVED, Verdict.ALTERED))
    surplus = sum(found.counts.get(verdict, 0) for verdict in SURPLUS)
    assert copied + surplus <= len(made.records) - len(sources), "B"

    positions = {
        (flow, each.partition): each.next_offset
        for flow, scope in enumerate(made.scope.flows)
        for each in scope.partitions
    }
    for anomaly in found.evidence:
        position = positions.get((anomaly.flow, anomaly.partition))
        if anomaly.verdict is Verdict.LOST:
            assert position is not None, "C"
            assert anomaly.offset < position, "C"
        if anomaly.verdict is Verdict.PENDING and position is not None:
            assert anomaly.offset >= position, "C"


def place_of(record: object) -> Place:
    side, flow, partition, offset = (
        getattr(record, name) for name in ("side", "flow", "partition", "offset")
    )
    return side, flow if side is Side.SOURCE else 0, partition, offset


def evidence_places(found: UnitOutcome) -> dict[Verdict, set[Place]]:
    places: defaultdict[Verdict, set[Place]] = defaultdict(set)
    for each in found.evidence:
        assert place_of(each) not in places[each.verdict]
        places[each.verdict].add(place_of(each))
    return places


def by_partition(found: UnitOutcome) -> dict[tuple[Verdict, int, int], int]:
    """Source verdicts by flow and partition."""
    return {
        (verdict, each.flow, each.partition): count
        for each in found.partitions
        for verdict, count in each.counts.items()
        if each.flow is not None and verdict not in SURPLUS | {Verdict.EXPIRED}
    }


def true_by_partition(made: Injected) -> dict[tuple[Verdict, int, int], int]:
    return Counter(
        (verdict, flow, partition)
        for verdict, places in made.truth.places.items()
        for side, flow, partition, _ in places
        if side is Side.SOURCE
    )


def compare_affinity(made: Injected, found: UnitOutcome) -> None:
    truth, affinity = made.truth, found.affinity
    assert affinity.keys == len(truth.keys)
    assert affinity.keys_split == len(truth.split)
    assert affinity.keys_disordered == len(truth.disordered)
    assert affinity.records_moved == truth.records_moved
    assert set(affinity.broken_keys) == truth.split | truth.disordered
    # A census has all keys in one cell.
    assert len(affinity.cells) == bool(truth.keys)
    assert affinity.total == AffinityOutcome(cells=tuple(truth.of_keys.values())).total


def compare_replays(made: Injected, found: UnitOutcome) -> None:
    replayed = made.truth.places[Verdict.REPLAY]
    assert sum(each.size for each in found.replays) == len(replayed)
    for each in found.replays:
        block = {o for _, _, p, o in replayed if p == each.partition and each.start <= o < each.end}
        assert len(block) == each.size
        assert (min(block), max(block) + 1) == (each.start, each.end)
    blocks = {(each.partition, each.start) for each in found.replays}
    assert blocks == {
        (each.partition, each.block) for each in found.evidence if each.block is not None
    }


def compare_latency(made: Injected, found: UnitOutcome) -> None:
    truth = made.truth
    times = poll_times(truth.arrivals)
    timestamps = {place_of(each): each.timestamp for each in made.records}
    end_to_end: list[tuple[int | None, int]] = []
    transfer: list[tuple[int | None, int]] = []
    without = 0
    for place, (partition, offset) in truth.copies.items():
        arrived = bracket(truth.arrivals[Side.TARGET, 0, partition, offset], times)
        started = bracket(truth.arrivals[place], times)
        if arrived is None:
            without += 1
            continue
        sent = timestamps[place]
        earliest, latest = arrived
        end_to_end.append((None if earliest is None else max(0, earliest - sent), latest - sent))
        if started is not None and started[0] is not None:
            lower = None if earliest is None else max(0, earliest - started[1])
            transfer.append((lower, latest - started[0]))
    assert sum(each.without_bracket for each in found.partitions) == without
    assert merge_latencies(each.end_to_end for each in found.partitions) == cells(end_to_end)
    assert merge_latencies(each.transfer for each in found.partitions) == cells(transfer)


def cells(brackets: list[tuple[int | None, int]]) -> LatencyCells:
    return LatencyCells(
        Counter(
            (None if low is None else latency_bucket(low), latency_bucket(high))
            for low, high in brackets
        ),
        total_upper_ms=sum(high for _, high in brackets),
        total_lower_ms=sum(low or 0 for low, _ in brackets),
    )
