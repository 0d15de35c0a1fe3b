"""Fingerprints, identities and samples."""

import hashlib
import hmac
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_fingerprint import chained, fingerprint, keeps_key, keeps_record, key_hash

from mm2slo_core.audit.fingerprint import (
    STEPS,
    Identity,
    Sample,
    common_identity,
)

UNKEYED = Identity(ignored_headers=("skip",))
KEYED = replace(UNKEYED, hmac_key=b"secret")
Content = tuple[bytes | None, bytes | None, Any, int]

RECORD: Content = (b"k", b"v", [], 1_700_000_000_123)
NULLS: Content = (None, b"", None, 0)
HEADERS: Content = (b"", None, [("h", None), ("skip", b"x"), ("ä", b"")], -5)


# Results of Spark 4.0.5 for the expressions in the module docstring.
@pytest.mark.parametrize(
    ("record", "unkeyed", "keyed"),
    [
        (RECORD, -7666059702139966265, 499163700807010793),
        (NULLS, 7701039772380804354, 200666746368117474),
        (HEADERS, 7760747258155051975, 1005165463574869859),
    ],
)
def test_fingerprint_equals_spark(record: tuple[Any, ...], unkeyed: int, keyed: int) -> None:
    assert fingerprint(UNKEYED, *record) == unkeyed
    assert fingerprint(KEYED, *record) == keyed


def test_key_hash_equals_spark_and_is_none_without_key() -> None:
    assert key_hash(b"k") == -3898340214155060326
    assert key_hash(b"k", b"secret") == 427056208075992867
    assert key_hash(b"") == -7444071767201028348
    assert key_hash(None) is None
    assert key_hash(None, b"secret") is None


def test_chained_equals_spark() -> None:
    assert chained(77, -5223777748767803515) % 2**20 == 322503


def test_keyed_fingerprint_is_hmac_sha_256_of_length_prefixed_parts() -> None:
    key = b"a key longer than the block of SHA-256, which the HMAC therefore hashes at first" * 2
    message = b"2:ab-1700;2;1:h-1:i0:"
    digest = hmac.new(key, message, hashlib.sha256).hexdigest()
    identity = Identity(hmac_key=key)
    found = fingerprint(identity, b"ab", None, [("h", None), ("i", b"")], 1700)
    assert found == int(digest[:15], 16)


def test_identity_repr_omits_hmac_key() -> None:
    assert "secret" not in repr(KEYED)


DIFFERENT: list[Content] = [
    (b"k", b"v", [("h", b"1"), ("i", b"2")], 5),
    (b"k", b"v", [("i", b"2"), ("h", b"1")], 5),
    (b"k", b"v", [("h", b"1i"), ("", b"2")], 5),
    (b"k", b"v", [("h", b"1")], 5),
    (b"k", b"v", [("h", None)], 5),
    (b"k", b"v", [("h", b"")], 5),
    (b"k", b"v", [], 5),
    (b"k", b"v", [], 6),
    (b"kv", b"", [], 5),
    (b"kv", None, [], 5),
    (b"", b"kv", [], 5),
    (None, b"kv", [], 5),
    (None, None, [], 5),
    (b"", b"", [], 5),
]


@pytest.mark.parametrize("identity", [UNKEYED, KEYED])
def test_fingerprint_of_different_records_differs(identity: Identity) -> None:
    assert len({fingerprint(identity, *each) for each in DIFFERENT}) == len(DIFFERENT)


@pytest.mark.parametrize("identity", [UNKEYED, KEYED])
@pytest.mark.parametrize(
    ("left_out", "other"),
    [
        ("key", (b"other", b"v", [("h", b"1")], 5)),
        ("value", (b"k", None, [("h", b"1")], 5)),
        ("headers", (b"k", b"v", None, 5)),
        ("timestamp", (b"k", b"v", [("h", b"1")], 6)),
    ],
)
def test_fingerprint_ignores_parts_outside_identity(
    identity: Identity, left_out: str, other: tuple[Any, ...]
) -> None:
    record = (b"k", b"v", [("h", b"1")], 5)
    changes: dict[str, Any] = {left_out: False}
    less = replace(identity, **changes)
    assert fingerprint(less, *record) == fingerprint(less, *other)
    assert fingerprint(identity, *record) != fingerprint(identity, *other)


@pytest.mark.parametrize("identity", [UNKEYED, KEYED])
def test_fingerprint_ignores_ignored_header_at_any_position(identity: Identity) -> None:
    plain = fingerprint(identity, b"k", b"v", [("h", b"1")], 5)
    assert fingerprint(identity, b"k", b"v", [("skip", b"x"), ("h", b"1")], 5) == plain
    assert fingerprint(identity, b"k", b"v", [("h", b"1"), ("skip", None)], 5) == plain


maybe_bytes = st.none() | st.binary(max_size=40)
headers = st.none() | st.lists(st.tuples(st.text(max_size=5), maybe_bytes), max_size=4)
parts = st.tuples(maybe_bytes, maybe_bytes, headers, st.integers(-(2**63), 2**63 - 1))


@given(parts, parts)
def test_fingerprint_of_equal_records_is_equal(
    one: tuple[Any, ...], other: tuple[Any, ...]
) -> None:
    same = (one[0], one[1], one[2] or [], one[3]) == (other[0], other[1], other[2] or [], other[3])
    for identity in (Identity(), Identity(hmac_key=b"k")):
        left, right = fingerprint(identity, *one), fingerprint(identity, *other)
        assert (left == right) is same
        assert -(2**63) <= left < 2**63


def test_common_identity_omits_parts_that_one_omits() -> None:
    one, other = Identity(value=False, ignored_headers=("b",)), Identity(ignored_headers=("a",))
    assert common_identity([one, other]) == Identity(value=False, ignored_headers=("a", "b"))
    assert common_identity([one, Identity(timestamp=False, headers=False)]) == Identity(
        value=False, timestamp=False, headers=False
    )
    assert common_identity([one, Identity(key=False)]).key is False
    assert common_identity([one]) == one


def test_common_identity_is_keyed_if_one_is_keyed() -> None:
    assert common_identity([Identity(), Identity(hmac_key=b"k")]).hmac_key == b"k"
    assert common_identity([Identity(hmac_key=b"k"), Identity(hmac_key=b"l")]).hmac_key == b"k"


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
    assert all(keeps_record(census, each) for each in HASHES[:100])
    assert keeps_key(census, None)


def test_sample_keeps_its_rate_and_omits_keyless_records_from_key_stratum() -> None:
    sample = Sample(0.01)
    assert not sample.census
    assert sample.record_threshold == 10_486
    kept = sum(keeps_record(sample, each) for each in HASHES)
    assert 340 <= kept <= 460  # 400 expected; three standard deviations
    assert not keeps_key(sample, None)


def test_sample_with_smaller_rate_is_subset_and_other_salt_differs() -> None:
    one = {each for each in HASHES if keeps_record(Sample(0.01), each)}
    ten = {each for each in HASHES if keeps_record(Sample(0.1), each)}
    other = {each for each in HASHES if keeps_record(Sample(0.01, salt=1), each)}
    assert one < ten
    assert len(one & other) <= 15  # 4 expected of independent draws
    assert {each for each in HASHES if keeps_key(Sample(0.01), each)} == one
