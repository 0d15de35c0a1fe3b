"""Rates per record, from counts by verdict."""

import pytest

from mm2slo_core.audit.audit_conclusion import Rate, record_rates
from mm2slo_core.audit.confidence_bounds import Interval
from mm2slo_core.audit.unit_outcome import Verdict

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
