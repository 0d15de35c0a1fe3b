"""Detects what a flow changes in its records, by comparing originals with their copies.

Originals and copies are matched by the parts they still share, so the changes need not be known
before. Payload is compared and never stored.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Final, NamedTuple

from mm2slo_core.audit.fingerprint import Identity

RARE: Final = 0.05
"""A difference in a smaller share of the pairs is no transformation: rather altered records."""


class ProbedRecord(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int | None


_SHARED: Final = (
    ("key", "value", "headers", "timestamp"),
    ("key", "value", "timestamp"),
    ("key", "headers", "timestamp"),
    ("key", "timestamp"),
    ("value", "timestamp"),
    ("key", "value"),
    ("timestamp",),
    ("value",),
    ("key",),
)
"""Parts by which originals are matched with copies, most specific first."""


def pair_copies(
    originals: Sequence[ProbedRecord], copies: Sequence[ProbedRecord]
) -> list[tuple[ProbedRecord, ProbedRecord]]:
    """Pair the originals of a partition with their copies; both in offset order.

    Records that share parts with several others are paired in order, if both sides have the same
    number: a transformation changes records, not their number.
    """
    pairs: list[tuple[ProbedRecord, ProbedRecord]] = []
    left, right = list(originals), list(copies)
    for parts in _SHARED:
        if not left or not right:
            break
        sources, targets = _grouped(left, parts), _grouped(right, parts)
        left, right = [], []
        for shared, group in sources.items():
            others = targets.pop(shared, [])
            if len(group) == len(others) or parts == _SHARED[0]:
                pairs += zip(group, others, strict=False)
                left += group[len(others) :]
                right += others[len(group) :]
            else:
                left += group
                right += others
        right += [each for group in targets.values() for each in group]
    return pairs


def _grouped(
    records: Iterable[ProbedRecord], parts: Sequence[str]
) -> dict[tuple[object, ...], list[ProbedRecord]]:
    groups: defaultdict[tuple[object, ...], list[ProbedRecord]] = defaultdict(list)
    for record in records:
        groups[tuple(getattr(record, part) for part in parts)].append(record)
    return groups


@dataclass(frozen=True, slots=True)
class Differences:
    """The number of compared pairs in which a part differs."""

    compared: int = 0
    key: int = 0
    value: int = 0
    headers: int = 0
    timestamp: int = 0
    header_names: Counter[str] = field(default_factory=Counter)
    """Pairs by the name of an added, removed or changed header."""
    reordered_headers: int = 0
    """Pairs with the same headers in another order."""
    unmatched: int = 0
    """Copies without an original: changed beyond recognition, or from another producer."""

    def __add__(self, other: Differences) -> Differences:
        names = (each.name for each in fields(self))
        return Differences(**{each: getattr(self, each) + getattr(other, each) for each in names})


def compare_records(
    originals: Sequence[ProbedRecord], copies: Sequence[ProbedRecord]
) -> Differences:
    """Compare the records of a partition with those of its copy; *originals* may have more."""
    pairs = pair_copies(originals, copies)
    names: Counter[str] = Counter()
    reordered = 0
    for original, copy in pairs:
        if original.headers != copy.headers:
            changed = _changed_headers(original, copy)
            names.update(changed)
            reordered += not changed
    return Differences(
        compared=len(pairs),
        key=sum(original.key != copy.key for original, copy in pairs),
        value=sum(original.value != copy.value for original, copy in pairs),
        headers=sum(original.headers != copy.headers for original, copy in pairs),
        timestamp=sum(original.timestamp != copy.timestamp for original, copy in pairs),
        header_names=names,
        reordered_headers=reordered,
        unmatched=len(copies) - len(pairs),
    )


def _changed_headers(original: ProbedRecord, copy: ProbedRecord) -> set[str]:
    names = {name for name, _ in (*original.headers, *copy.headers)}
    return {
        name
        for name in names
        if [value for each, value in original.headers if each == name]
        != [value for each, value in copy.headers if each == name]
    }


def suggest_identity(differences: Differences) -> Identity:
    """Return the identity that matches copies: all parts that the flow does not change.

    Changed headers are ignored by name; if the order of headers changes, all headers are left out.
    """
    limit = differences.compared * RARE

    def is_unchanged(count: int) -> bool:
        return not count or count < limit

    in_order = is_unchanged(differences.reordered_headers)
    ignored = [name for name, count in differences.header_names.items() if not is_unchanged(count)]
    return Identity(
        key=is_unchanged(differences.key),
        value=is_unchanged(differences.value),
        headers=in_order,
        timestamp=is_unchanged(differences.timestamp),
        ignored_headers=tuple(sorted(ignored)) if in_order else (),
    )
