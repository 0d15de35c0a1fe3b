"""The conclusion of an audit run, and its rates."""

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest
from injected_records import Fault, Plan, Step, inject
from reference_audit import judge
from reference_fingerprint import keeps_key

from mm2slo_core.audit.audit_conclusion import (
    MIN_KEYS,
    DuplicateLimit,
    KeyRate,
    Rate,
    conclude,
    disorder_rate,
    moved_rate,
    rate_statement,
    record_rates,
)
from mm2slo_core.audit.audit_scope import FlowScope, NotAudited, NotAuditedReason, UnitScope, Window
from mm2slo_core.audit.confidence_bounds import Interval, clopper_pearson, cluster_bootstrap
from mm2slo_core.audit.fingerprint import Identity, Sample
from mm2slo_core.audit.unit_outcome import (
    FAULTS,
    AffinityOutcome,
    KeyCell,
    PartitionOutcome,
    UnitOutcome,
    Verdict,
    pool_key_cells,
)
from mm2slo_core.topology import Flow

NOON = 1_767_268_800_000  # 2026-01-01T12:00:00Z
US, AP = Flow("us", "eu"), Flow("ap", "eu")
LEASED = NotAudited("t", NotAuditedReason.LEASED, "held by another run")


def unit(
    counts: Mapping[Verdict, int],
    *flows: Flow,
    oldest_open: int | None = None,
    affinity: AffinityOutcome | None = None,
) -> UnitOutcome:
    scope = UnitScope(
        index=0,
        target_topic="t",
        flows=tuple(FlowScope(flow, "t", ()) for flow in flows or (US,)),
        partitions=(),
        window=Window(NOON - 3_600_000, NOON),
        identity=Identity(),
    )
    partitions = (PartitionOutcome(0, 0, counts),)
    return UnitOutcome(
        scope, partitions, affinity=affinity or AffinityOutcome(), oldest_open=oldest_open
    )


def test_conclude_without_faults_is_complete_up_to_window_end() -> None:
    found = conclude([unit({Verdict.MATCHED: 200_000})], [])
    assert (found.exit_code, found.complete_up_to) == (0, NOON)
    assert found.line == "clean; 200,000 matched; complete up to 2026-01-01T12:00:00Z"


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_conclude_with_any_fault_exits_with_1(fault: Verdict) -> None:
    found = conclude([unit({Verdict.MATCHED: 5}), unit({fault: 1})], [LEASED])
    assert found.exit_code == 1
    assert found.line.startswith(f"faults: 1 {fault}; 5 matched; 1 topic not audited; complete up")


def test_conclude_lists_findings_and_exits_with_0() -> None:
    counts = {Verdict.DUPLICATE: 1_000, Verdict.REPLAY: 3, Verdict.EXTRA: 2, Verdict.PENDING: 1}
    affinity = AffinityOutcome(keys=9, keys_split=1, keys_disordered=2)
    found = conclude([unit(counts, oldest_open=NOON - 1_500, affinity=affinity)], [])
    assert found.exit_code == 0
    assert found.line == (
        "clean; 0 matched; 1,000 duplicate, 3 replay, 2 extra, 1 pending; 1 key split; "
        "2 keys out of order; complete up to 2026-01-01T11:59:58Z"
    )


def test_conclude_excepts_unauditable_source_records_from_completeness() -> None:
    with_copy = unit({Verdict.MATCHED: 5, Verdict.UNAUDITABLE: 2})
    of_no_flow = PartitionOutcome(None, 0, {Verdict.UNAUDITABLE: 3})
    both = replace(with_copy, partitions=(*with_copy.partitions, of_no_flow))
    # Nothing else of this topic could be judged.
    found = conclude([both, unit({Verdict.UNAUDITABLE: 1})], [])
    assert found.exit_code == 0
    assert found.line == (
        "clean; 5 matched; 5 unauditable; complete up to 2026-01-01T12:00:00Z, except 3 unauditable"
        " source records"
    )
    matched = PartitionOutcome(0, 0, {Verdict.MATCHED: 5})
    copies = conclude([replace(with_copy, partitions=(matched, of_no_flow))], [])
    assert copies.line == "clean; 5 matched; 3 unauditable; complete up to 2026-01-01T12:00:00Z"


def test_conclude_with_pending_record_limits_its_flow_and_the_run() -> None:
    open_at = NOON - 60_000
    found = conclude(
        [
            unit({Verdict.MATCHED: 1}, US),
            unit({Verdict.MATCHED: 1, Verdict.OVERDUE: 1}, US, oldest_open=open_at),
            unit({Verdict.MATCHED: 1}, AP),
        ],
        [],
    )
    assert found.by_flow == {US: open_at, AP: NOON}
    assert found.complete_up_to == open_at
    assert found.exit_code == 1


def test_conclude_with_unit_of_two_flows_limits_both() -> None:
    found = conclude([unit({Verdict.PENDING: 1}, US, AP, oldest_open=NOON - 1)], [])
    assert found.by_flow == {US: NOON - 1, AP: NOON - 1}


@pytest.mark.parametrize(
    ("outcomes", "not_audited", "line"),
    [
        ([], [], "nothing could be audited: no record in the window; complete up to: unknown"),
        ([unit({})], [], "nothing could be audited: no record in the window; complete up to"),
        ([], [LEASED] * 2, "nothing could be audited: 2 topics leased; complete up to: unknown"),
        ([unit({Verdict.UNAUDITABLE: 7})], [], "nothing could be audited: 7 unauditable; complete"),
    ],
)
def test_conclude_without_audited_records_exits_with_2(
    outcomes: list[UnitOutcome], not_audited: list[NotAudited], line: str
) -> None:
    found = conclude(outcomes, not_audited)
    assert (found.exit_code, found.complete_up_to) == (2, None)
    assert found.line.startswith(line)


@pytest.mark.parametrize(
    ("not_audited", "sample", "reason"),
    [
        ([], Sample(0.01), "no record of the window in a sample of 1%: set a larger --sample"),
        ([LEASED], Sample(0.01), "1 topic leased, no record of the window in a sample of 1%: set"),
        ([], Sample(1.0), "no record in the window;"),
    ],
)
def test_conclude_without_sampled_records_names_sample(
    not_audited: list[NotAudited], sample: Sample, reason: str
) -> None:
    found = conclude([unit({})], not_audited, sample=sample)
    assert found.exit_code == 2
    assert found.line.startswith(f"nothing could be audited: {reason}")
    without_topics = conclude([], not_audited, sample=sample)
    assert "sample" not in without_topics.line


@pytest.mark.parametrize(
    ("limit", "result", "exit_code"),
    [
        (None, "duplicated", 0),
        (DuplicateLimit(0.87), "clean", 0),
        (DuplicateLimit(0.001, fails=True), "duplicated", 1),
    ],
)
def test_conclude_with_many_duplicates_of_one_topic(
    limit: DuplicateLimit | None, result: str, exit_code: int
) -> None:
    quiet = replace(unit({Verdict.MATCHED: 10_000_000, Verdict.DUPLICATE: 1}), copied_again=1)
    replayed = replace(unit({Verdict.MATCHED: 1_000, Verdict.REPLAY: 1_740}), copied_again=870)
    found = conclude([quiet, replayed], [], duplicates=limit)
    assert (found.result, found.exit_code) == (result, exit_code)
    if result == "duplicated":
        assert found.line.startswith("duplicated: 87% of t, above 0.1%; 10,001,000 matched; ")


def test_conclude_with_sample_shows_rate() -> None:
    found = conclude([unit({Verdict.MATCHED: 5})], [], sample=Sample(0.01))
    assert found.line.startswith("clean; 5 matched in a sample of 1%; complete up to")
    assert "sample" not in conclude([unit({Verdict.MATCHED: 5})], [], sample=Sample(1)).line


COUNTS = {
    Verdict.MATCHED: 88,
    Verdict.LATE: 2,
    Verdict.LOST: 5,
    Verdict.OVERDUE: 9,
    Verdict.MOVED: 3,
    Verdict.ALTERED: 2,
    Verdict.DUPLICATE: 4,
    Verdict.REPLAY: 6,
    # Not settled, or not compared.
    Verdict.PENDING: 7,
    Verdict.UNAUDITABLE: 11,
    Verdict.EXPIRED: 1_000,
    Verdict.EXTRA: 13,
    Verdict.OUT_OF_ORDER: 1,
}


def test_record_rates_are_of_settled_and_replicated_records() -> None:
    assert record_rates(COUNTS, 8, census=True) == {
        Verdict.LOST: Rate(14, 109),
        Verdict.ALTERED: Rate(2, 109),
        Verdict.MOVED: Rate(3, 109),
        Verdict.DUPLICATE: Rate(8, 95),
    }


def test_record_rates_of_sample_omit_altered() -> None:
    assert Verdict.ALTERED not in record_rates(COUNTS, 8, census=False)


def test_record_rates_cap_duplicates_at_replicated_records() -> None:
    found = record_rates({Verdict.MATCHED: 2, Verdict.REPLAY: 50}, 3, census=True)
    assert found[Verdict.DUPLICATE] == Rate(2, 2)


def test_record_rates_without_records_are_empty() -> None:
    assert record_rates({Verdict.PENDING: 5, Verdict.DUPLICATE: 1}, 1, census=True) == {}
    # All records are lost: a loss rate, and no rate of duplicates.
    assert set(record_rates({Verdict.LOST: 5}, 0, census=False)) == {Verdict.LOST, Verdict.MOVED}


def test_rate_interval_of_census_is_rate_and_of_sample_is_exact() -> None:
    assert Rate(5, 10).interval(census=True) == Interval(0.5, 0.5)
    found = Rate(5, 10).interval(census=False)
    assert (found.lower, found.upper) == pytest.approx((0.187086, 0.812914), abs=1e-6)


SAMPLES = 300


def outcome(keys: list[KeyCell]) -> AffinityOutcome:
    return AffinityOutcome(
        keys=len(keys),
        keys_split=sum(each.moved > 0 for each in keys),
        keys_disordered=sum(each.overtook > 0 for each in keys),
        records_moved=sum(each.moved for each in keys),
        cells=pool_key_cells(keys),
    )


KEYS = [KeyCell(1, 50, 40, 20, 0)] * 12 + [KeyCell(1, 10, 12, 0, 1)] * 108


def test_moved_rate_is_per_copy_and_disorder_rate_per_source_record() -> None:
    found = moved_rate(outcome(KEYS), census=True, seed=1)
    assert found == KeyRate(240, 12 * 40 + 108 * 12, 120, 12, census=True, interval=None)
    found = disorder_rate(outcome(KEYS), census=True, seed=1)
    assert found == KeyRate(108, 12 * 50 + 108 * 10, 120, 108, census=True, interval=None)
    assert moved_rate(AffinityOutcome(), census=True, seed=1) is None
    # Stored by a version without key cells.
    assert moved_rate(AffinityOutcome(keys=9, keys_split=1), census=False, seed=1) is None


def test_key_rate_of_sample_has_bootstrap_interval() -> None:
    found = moved_rate(outcome(KEYS), census=False, seed=5)
    assert found is not None
    assert found.interval == cluster_bootstrap([(20, 40)] * 12 + [(0, 12)] * 108, seed=5)
    assert moved_rate(outcome(KEYS), census=False, seed=5) == found


def test_key_rate_with_few_keys_has_no_interval() -> None:
    few = [KeyCell(1, 10, 10, 1)] * (MIN_KEYS - 1) + [KeyCell(1, 10, 10)] * 90
    found = moved_rate(outcome(few), census=False, seed=1)
    assert found is not None
    assert found.interval is None
    enough = moved_rate(outcome([*few, KeyCell(1, 10, 10, 1)]), census=False, seed=1)
    assert enough is not None
    assert enough.interval is not None


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            KeyRate(63, 12_034, 1_204, 40, census=True, interval=None),
            "records that moved: 0.524% (census of 12,034 records, 63 moved)",
        ),
        (
            KeyRate(63, 12_034, 1_204, 40, census=False, interval=Interval(0.00312, 0.0081234)),
            "records that moved: 0.524% (95 %: 0.312% to 0.813%, bootstrap over 1,204 keys)",
        ),
        (
            KeyRate(63, 12_034, 1_204, 4, census=False, interval=None),
            "records that moved: 63 of 12,034 sampled, in 4 keys: too few keys for an interval",
        ),
        (
            KeyRate(63, 12_034, 1_204, 1, census=False, interval=None),
            "records that moved: 63 of 12,034 sampled, in 1 key: too few keys for an interval",
        ),
    ],
)
def test_rate_statement_text(found: KeyRate, expected: str) -> None:
    assert rate_statement("records that moved", found, noun="moved") == expected


def test_cluster_bootstrap_of_many_keys_keeps_spread() -> None:
    draw = random.Random(4)
    sizes = [draw.randint(1, 30) for _ in range(24_000)]
    clusters = [(size if draw.random() < 0.05 else 0, size) for size in sizes]
    rate = sum(events for events, _ in clusters) / sum(sizes)
    # Of a ratio, by linearisation (Cochran, Sampling Techniques, 6.4).
    residuals = sum((events - rate * size) ** 2 for events, size in clusters)
    expected = 2 * 1.96 * residuals**0.5 / sum(sizes)
    found = cluster_bootstrap(clusters, seed=1)
    assert found.contains(rate)
    assert found.upper - found.lower == pytest.approx(expected, rel=0.1)


def of_each_key(faulty: float, moving: float, keys: int) -> dict[int, KeyCell]:
    """Keys of 1 to 40 records; of a *faulty* share of them, records move by the rate *moving*."""
    draw = random.Random(12)
    steps = []
    for key in range(keys):
        bad = draw.random() < faulty
        for _ in range(min(40, 1 + int(draw.expovariate(1 / 8)))):
            moves = bad and draw.random() < moving
            steps.append(Step(0, 0, key, Fault.MOVE if moves else Fault.NONE))
    draw.shuffle(steps)
    return inject(Plan(tuple(steps), cooling=0)).truth.of_keys


@pytest.mark.parametrize(
    ("samples", "required"), [(60, 0.9), pytest.param(1_000, 0.95, marks=pytest.mark.long)]
)
def test_cluster_bootstrap_covers_true_rate_where_clopper_pearson_does_not(
    samples: int, required: float
) -> None:
    keys = of_each_key(faulty=0.2, moving=0.6, keys=800)
    whole = AffinityOutcome(cells=tuple(keys.values())).total
    true = whole.moved / whole.copies
    bootstrapped = naive = 0
    for salt in range(samples):
        sample = Sample(0.15, salt)
        drawn = outcome([cell for key, cell in keys.items() if keeps_key(sample, key)])
        interval = cluster_bootstrap(
            [
                per_key
                for cell in drawn.cells
                for per_key in [(cell.moved / cell.keys, cell.copies / cell.keys)] * cell.keys
            ],
            seed=salt,
            replicates=120,
        )
        bootstrapped += interval.contains(true)
        naive += clopper_pearson(drawn.total.moved, drawn.total.copies).contains(true)
    print(f"\ntrue {true:.3%}: bootstrap {bootstrapped}, binomial {naive} of {samples}")
    assert bootstrapped >= required * samples
    assert naive <= 0.80 * samples


@pytest.mark.long
def test_cluster_bootstrap_with_dominant_keys_is_too_narrow() -> None:
    """The limit stated in docs/audit.md: key sizes of a Pareto distribution without variance."""
    draw = random.Random(1)
    inside = 0
    for seed in range(SAMPLES):
        clusters = []
        for _ in range(200):
            size = min(500, int(draw.paretovariate(1.3)))
            bad = draw.random() < 0.2
            clusters.append((sum(draw.random() < 0.6 for _ in range(size)) if bad else 0, size))
        inside += cluster_bootstrap(clusters, seed=seed, replicates=150).contains(0.2 * 0.6)
    print(f"\n{inside} of {SAMPLES}")
    assert 0.85 * SAMPLES <= inside <= 0.92 * SAMPLES


def test_reference_cells_equal_simulated_keys() -> None:
    plan = Plan(
        tuple(Step(0, 0, n % 40, Fault.MOVE if n % 7 == 0 else Fault.NONE) for n in range(400))
    )
    sample = Sample(0.5, salt=3)
    made = inject(plan, sample=sample)
    found = judge(made.records, made.polls, made.scope, sample).affinity
    kept = [cell for key, cell in made.truth.of_keys.items() if keeps_key(sample, key)]
    assert 10 <= len(kept) <= 30
    assert moved_rate(found, census=False, seed=3) == moved_rate(
        outcome(kept), census=False, seed=3
    )
