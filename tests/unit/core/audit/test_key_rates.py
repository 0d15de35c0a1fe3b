"""Rates per record of keys that are sampled whole, and the coverage of their intervals."""

import random

import pytest
from injected_records import Fault, Plan, Step, inject
from reference_audit import judge

from mm2slo_core.audit.audit_conclusion import (
    MIN_KEYS,
    KeyRate,
    disorder_rate,
    moved_rate,
    rate_statement,
)
from mm2slo_core.audit.confidence_bounds import Interval, clopper_pearson, cluster_bootstrap
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import AffinityOutcome, KeyCell, pool_key_cells

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
        drawn = outcome([cell for key, cell in keys.items() if sample.keeps_key(key)])
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
    kept = [cell for key, cell in made.truth.of_keys.items() if sample.keeps_key(key)]
    assert 10 <= len(kept) <= 30
    assert moved_rate(found, census=False, seed=3) == moved_rate(
        outcome(kept), census=False, seed=3
    )
