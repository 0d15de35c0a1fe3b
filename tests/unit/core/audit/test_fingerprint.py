import hashlib
import hmac
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.audit.fingerprint import Identity, chained, fingerprint, key_hash

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
