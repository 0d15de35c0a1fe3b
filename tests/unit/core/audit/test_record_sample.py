from __future__ import annotations

import pytest

from mm2slo_core.audit.record_sample import STEPS, Sample

HASHES = [each * 0x9E3779B97F4A7C15 % 2**64 - 2**63 for each in range(40_000)]


@pytest.mark.parametrize(
    ("text", "rate"),
    [("1%", 0.01), ("100%", 1.0), ("0.01", 0.01), (" 12.5 % ", 0.125), ("1", 1.0), ("1e-3", 0.001)],
)
def test_rates_are_read(text: str, rate: float) -> None:
    assert Sample.parse(text) == Sample(rate)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0", "a sample of 0% cannot be drawn"),
        ("0%", "more than 0% and at most 100%"),
        ("101%", "a sample of 101% cannot be drawn"),
        ("1.5", "a sample of 150% cannot be drawn"),
        ("-1%", "a sample of -1% cannot be drawn"),
        ("0.00001%", "too small: the smallest is 0.0001%"),
        ("one", "'one' is not a sample rate: expected 1%, 100% or 0.01"),
        ("", "'' is not a sample rate"),
        ("%", "'%' is not a sample rate"),
        ("nan", "'nan' is not a sample rate"),
        ("inf%", "'inf%' is not a sample rate"),
    ],
)
def test_what_is_no_rate_is_refused_with_what_to_give(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Sample.parse(text)


def test_a_salt_beyond_64_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit 64 bits"):
        Sample(0.5, salt=2**63)


def test_a_census_keeps_all_and_records_without_a_key() -> None:
    census = Sample(1.0)
    assert census.census
    assert census.record_threshold == census.key_threshold == STEPS
    assert all(census.keeps_record(each) for each in HASHES[:100])
    assert census.keeps_key(None)


def test_a_sample_has_its_rate_and_leaves_out_records_without_a_key() -> None:
    sample = Sample(0.01)
    assert not sample.census
    assert sample.record_threshold == 10_486
    kept = sum(map(sample.keeps_record, HASHES))
    assert 340 <= kept <= 460  # 400 expected; three standard deviations
    assert not sample.keeps_key(None)


def test_smaller_samples_are_subsets_and_salts_draw_others() -> None:
    one = {each for each in HASHES if Sample(0.01).keeps_record(each)}
    ten = {each for each in HASHES if Sample(0.1).keeps_record(each)}
    other = {each for each in HASHES if Sample(0.01, salt=1).keeps_record(each)}
    assert one < ten
    assert len(one & other) <= 15  # 4 expected of independent draws
    assert {each for each in HASHES if Sample(0.01).keeps_key(each)} == one
