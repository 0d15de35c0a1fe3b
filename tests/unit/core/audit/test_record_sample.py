import pytest

from mm2slo_core.audit.fingerprint import STEPS, Sample

HASHES = [each * 0x9E3779B97F4A7C15 % 2**64 - 2**63 for each in range(40_000)]


@pytest.mark.parametrize(
    ("text", "rate"),
    [("1%", 0.01), ("100%", 1.0), ("0.01", 0.01), (" 12.5 % ", 0.125), ("1", 1.0), ("1e-3", 0.001)],
)
def test_sample_parse_accepts_percent_and_fraction(text: str, rate: float) -> None:
    assert Sample.parse(text) == Sample(rate)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", "sample rate is 0%"),
        ("0%", "more than 0% and at most 100%"),
        ("101%", "sample rate is 101%"),
        ("1.5", "sample rate is 150%"),
        ("-1%", "sample rate is -1%"),
        ("0.00001%", "expected at least 0.0001%"),
        ("one", "'one' is not a sample rate; expected 1%, 100% or 0.01"),
        ("", "'' is not a sample rate"),
        ("%", "'%' is not a sample rate"),
        ("nan", "'nan' is not a sample rate"),
        ("inf%", "'inf%' is not a sample rate"),
    ],
)
def test_sample_parse_with_invalid_rate_raises_value_error(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        Sample.parse(text)


def test_sample_with_salt_beyond_64_bits_raises_value_error() -> None:
    with pytest.raises(ValueError, match="expected a signed 64-bit number"):
        Sample(0.5, salt=2**63)


def test_census_keeps_all_records() -> None:
    census = Sample(1.0)
    assert census.census
    assert census.record_threshold == census.key_threshold == STEPS
    assert all(census.keeps_record(each) for each in HASHES[:100])
    assert census.keeps_key(None)


def test_sample_keeps_its_rate_and_omits_keyless_records_from_key_stratum() -> None:
    sample = Sample(0.01)
    assert not sample.census
    assert sample.record_threshold == 10_486
    kept = sum(map(sample.keeps_record, HASHES))
    assert 340 <= kept <= 460  # 400 expected; three standard deviations
    assert not sample.keeps_key(None)


def test_sample_with_smaller_rate_is_subset_and_other_salt_differs() -> None:
    one = {each for each in HASHES if Sample(0.01).keeps_record(each)}
    ten = {each for each in HASHES if Sample(0.1).keeps_record(each)}
    other = {each for each in HASHES if Sample(0.01, salt=1).keeps_record(each)}
    assert one < ten
    assert len(one & other) <= 15  # 4 expected of independent draws
    assert {each for each in HASHES if Sample(0.01).keeps_key(each)} == one
