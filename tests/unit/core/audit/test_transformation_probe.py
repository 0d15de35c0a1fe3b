"""Detection of transformed copies."""

from collections import Counter

import pytest

from mm2slo_core.audit.fingerprint import Identity
from mm2slo_core.audit.transformation_probe import (
    Differences,
    ProbedRecord,
    compare_records,
    pair_copies,
    suggest_identity,
)


def record(number: int, **changes: object) -> ProbedRecord:
    """Two records a millisecond, and each key three times."""
    made = ProbedRecord(
        f"k{number // 3}".encode(), f"v{number}".encode(), (("h", b"1"),), 1_000 + number // 2
    )
    return made._replace(**changes)  # type: ignore[arg-type]


ORIGINALS = [record(number) for number in range(100)]

TRANSFORMS = {
    "nothing": ({}, Identity()),
    "masked values": ({"value": b"***"}, Identity(value=False)),
    "masked keys": ({"key": None}, Identity(key=False)),
    "masked keys and values": ({"key": None, "value": b"*"}, Identity(key=False, value=False)),
    "other timestamps": ({"timestamp": 9_999}, Identity(timestamp=False)),
    "an added header": (
        {"headers": (("h", b"1"), ("trace", b"x"))},
        Identity(ignored_headers=("trace",)),
    ),
    "a changed header": ({"headers": (("h", b"2"),)}, Identity(ignored_headers=("h",))),
    "dropped headers and other timestamps": (
        {"headers": (), "timestamp": 9_999},
        Identity(timestamp=False, ignored_headers=("h",)),
    ),
}


@pytest.mark.parametrize(("changes", "identity"), TRANSFORMS.values(), ids=[*TRANSFORMS])
def test_suggest_identity_omits_changed_parts(
    changes: dict[str, object], identity: Identity
) -> None:
    copies = [each._replace(**changes) for each in ORIGINALS]  # type: ignore[arg-type]
    found = compare_records(ORIGINALS, copies)
    assert found.compared == 100
    assert found.unmatched == 0
    assert suggest_identity(found) == identity


def test_pair_copies_matches_each_copy_with_its_original() -> None:
    copies = [each._replace(value=each.value + b"!") for each in ORIGINALS if each.value]
    for original, copy in pair_copies(ORIGINALS, copies):
        assert copy.value == (original.value or b"") + b"!"


def test_suggest_identity_with_reordered_headers_omits_headers() -> None:
    originals = [record(n, headers=(("a", b"1"), ("b", b"2"))) for n in range(40)]
    copies = [record(n, headers=(("b", b"2"), ("a", b"1"))) for n in range(40)]
    found = compare_records(originals, copies)
    assert (found.headers, found.reordered_headers, found.header_names) == (40, 40, {})
    assert suggest_identity(found) == Identity(headers=False)


def test_suggest_identity_ignores_rare_differences() -> None:
    copies = [record(0, value=b"altered"), *ORIGINALS[1:]]
    found = compare_records(ORIGINALS, copies)
    assert (found.compared, found.value) == (100, 1)
    assert suggest_identity(found) == Identity()


def test_compare_records_counts_copies_without_original() -> None:
    found = compare_records(ORIGINALS[:60], ORIGINALS)
    assert (found.compared, found.unmatched) == (60, 40)
    assert suggest_identity(found) == Identity()


def test_compare_records_accepts_more_originals_than_copies() -> None:
    found = compare_records(ORIGINALS, ORIGINALS[40:])
    assert (found.compared, found.unmatched) == (60, 0)


def test_pair_copies_pairs_equal_records_once_each() -> None:
    same = [record(1)] * 3
    assert len(pair_copies(same, same[:2])) == 2
    assert compare_records(same[:2], same).unmatched == 1


def test_differences_of_partitions_add_up() -> None:
    one = Differences(10, 1, 2, 3, 4, Counter(a=3), 0, 5)
    two = Differences(20, 0, 1, 1, 0, Counter(a=1, b=2), 1, 0)
    assert one + two == Differences(30, 1, 3, 4, 4, Counter(a=4, b=2), 1, 5)


def test_suggest_identity_without_pairs_covers_all_parts() -> None:
    assert suggest_identity(Differences()) == Identity()
