"""Rates per record, from counts by verdict."""

from __future__ import annotations

import pytest

from mm2slo_core.audit.confidence_bounds import Interval
from mm2slo_core.audit.record_rates import Rate, record_rates
from mm2slo_core.audit.record_verdict import Verdict

COUNTS = {
    Verdict.MATCHED: 88,
    Verdict.LATE: 2,
    Verdict.LOST: 5,
    Verdict.MOVED: 3,
    Verdict.ALTERED: 2,
    Verdict.DUPLICATE: 4,
    Verdict.REPLAY: 6,
    # Not settled, or not looked at.
    Verdict.PENDING: 7,
    Verdict.OVERDUE: 9,
    Verdict.UNAUDITABLE: 11,
    Verdict.EXPIRED: 1_000,
    Verdict.EXTRA: 13,
    Verdict.OUT_OF_ORDER: 1,
}


def test_rates_are_of_what_is_settled_and_those_of_copies_of_what_was_copied() -> None:
    assert record_rates(COUNTS, census=True) == {
        Verdict.LOST: Rate(5, 100),
        Verdict.ALTERED: Rate(2, 100),
        Verdict.MOVED: Rate(3, 100),
        Verdict.DUPLICATE: Rate(10, 95),
    }


def test_a_sample_says_nothing_of_altered_ones() -> None:
    assert Verdict.ALTERED not in record_rates(COUNTS, census=False)


def test_more_copies_than_records_are_all_of_them() -> None:
    found = record_rates({Verdict.MATCHED: 2, Verdict.REPLAY: 50}, census=True)
    assert found[Verdict.DUPLICATE] == Rate(2, 2)


def test_nothing_is_said_of_nothing() -> None:
    assert record_rates({Verdict.PENDING: 5, Verdict.DUPLICATE: 1}, census=True) == {}
    # All is lost: there is a rate of loss, and none of copies.
    assert set(record_rates({Verdict.LOST: 5}, census=False)) == {Verdict.LOST, Verdict.MOVED}


def test_a_census_is_its_own_interval_and_a_sample_has_an_exact_one() -> None:
    assert Rate(5, 10).interval(census=True) == Interval(0.5, 0.5)
    found = Rate(5, 10).interval(census=False)
    assert (found.lower, found.upper) == pytest.approx((0.187086, 0.812914), abs=1e-6)
