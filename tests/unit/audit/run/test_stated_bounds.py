"""Confidence bounds of a topic."""

import pytest
from small_audit_unit import scope

from mm2slo_audit.audit_run import compute_stated_bounds
from mm2slo_core.audit.confidence_bounds import clopper_pearson, cluster_bootstrap
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import (
    AffinityOutcome,
    KeyCell,
    PartitionOutcome,
    UnitOutcome,
    Verdict,
    pool_key_cells,
)

CENSUS, SAMPLE = Sample(1.0), Sample(0.01, salt=7)
QUIET = [KeyCell(1, 10, 10)] * 180


def unit(*keys: KeyCell, order_judged: bool = True) -> UnitOutcome:
    affinity = AffinityOutcome(
        keys=len(keys),
        keys_split=sum(each.moved > 0 for each in keys),
        keys_disordered=sum(each.overtook > 0 for each in keys),
        records_moved=sum(each.moved for each in keys),
        cells=pool_key_cells(keys),
    )
    part = PartitionOutcome(0, 0, {Verdict.MATCHED: 2_000})
    return UnitOutcome(scope(), (part,), affinity, order_judged=order_judged)


def of_keys(outcome: UnitOutcome, sample: Sample) -> dict[str, str]:
    """Sentences of the bounds after loss and duplication."""
    loss, duplication, *rest = compute_stated_bounds(outcome, sample)
    assert (loss.name, duplication.name) == ("loss", "duplication")
    return {each.name: each.sentence for each in rest}


def test_stated_bounds_census_is_exact() -> None:
    outcome = unit(*QUIET, *[KeyCell(1, 10, 10, 3, 2)] * 20)
    assert of_keys(outcome, CENSUS) == {
        "broken affinity": "broken affinity is 10% (census of 200 keys, 20 split)",
        "copies in another partition than their key": (
            "copies in another partition than their key: 3% (census of 2,000 records, 60 copies)"
        ),
        "broken order": "broken order is 10% (census of 200 keys, 20 out of order)",
        "records out of order within their key": (
            "records out of order within their key: 2% (census of 2,000 records, 40 out of order)"
        ),
    }
    *_, moved, _, overtook = compute_stated_bounds(outcome, CENSUS)
    assert (moved.lower, moved.upper) == (0.03, 0.03)
    assert (overtook.lower, overtook.upper) == (0.02, 0.02)


def test_stated_bounds_sample_resamples_keys_for_record_rates() -> None:
    outcome = unit(*QUIET, *[KeyCell(1, 10, 10, 3)] * 20)
    moved = compute_stated_bounds(outcome, SAMPLE)[3]
    expected = cluster_bootstrap([(3, 10)] * 20 + [(0, 10)] * 180, seed=7)
    assert (moved.lower, moved.upper) == (expected.lower, expected.upper)
    assert moved.sentence.startswith("copies in another partition than their key: 3% (95 %: ")
    assert moved.sentence.endswith(", bootstrap over 200 keys)")
    naive = clopper_pearson(60, 2_000)
    assert moved.upper - moved.lower > 1.5 * (naive.upper - naive.lower)


def test_stated_bounds_sample_without_events_bounds_only_keys() -> None:
    assert of_keys(unit(*QUIET), SAMPLE) == {
        "broken affinity": (
            "broken affinity is 0% (95 %: 0% to 2.03%; 180 keys sampled, 0 split);"
            " of their 1,800 records, none moved"
        ),
        "broken order": (
            "broken order is 0% (95 %: 0% to 2.03%; 180 keys sampled, 0 out of order);"
            " of their 1,800 records, none out of order"
        ),
    }


def test_stated_bounds_few_broken_keys_have_no_interval() -> None:
    moved = compute_stated_bounds(unit(*QUIET, KeyCell(1, 10, 10, 4)), SAMPLE)[3]
    assert (moved.lower, moved.upper) == (0.0, 1.0)
    assert moved.sentence == (
        "copies in another partition than their key: 4 of 1,810 sampled, in 1 key: too few keys"
        " for an interval"
    )


def test_stated_bounds_count_overdue_records_as_not_arrived() -> None:
    part = PartitionOutcome(0, 0, {Verdict.MATCHED: 99_997, Verdict.OVERDUE: 3})
    loss = compute_stated_bounds(UnitOutcome(scope(), (part,)), SAMPLE)[0]
    expected = clopper_pearson(3, 100_000)
    assert (loss.lower, loss.upper) == (expected.lower, expected.upper)
    assert loss.sentence == (
        "loss is 0.003% (95 %: 0.000619% to 0.00877%; 100,000 records sampled, 0 lost, 3 overdue)"
    )


@pytest.mark.parametrize("sample", [CENSUS, SAMPLE])
def test_stated_bounds_without_keys_or_order_are_omitted(sample: Sample) -> None:
    assert of_keys(unit(), sample) == {}
    names = of_keys(unit(*QUIET, order_judged=False), sample)
    assert next(iter(names)) == "broken affinity"
    assert not any("order" in name for name in names)
