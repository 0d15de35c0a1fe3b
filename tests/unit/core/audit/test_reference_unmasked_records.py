"""Parts that a flow must change, and that arrived unchanged."""

from dataclasses import replace
from typing import Any

import pytest
from reference_fingerprint import masked_hashes
from small_audit_unit import dst, found, scope, src

from mm2slo_core.audit.audit_conclusion import conclude
from mm2slo_core.audit.audit_scope import AuditRecord, Comparison
from mm2slo_core.audit.fingerprint import Identity, common_identity
from mm2slo_core.audit.unit_outcome import Verdict

MASKING = Identity(value=False, must_change=("value", "header:ssn"))


def unmasked(*records: AuditRecord, **changes: Any) -> list[tuple[int, int | None]]:
    """Source offsets of unmasked records with the offsets of their copies."""
    outcome = found(records, scope(identity=MASKING, **changes))
    places = [each for each in outcome.evidence if each.verdict is Verdict.UNMASKED]
    assert outcome.counts.get(Verdict.UNMASKED, 0) == len(places)
    return [(each.offset, each.other_offset) for each in places]


def test_unchanged_part_is_unmasked_and_the_record_is_matched() -> None:
    records = [src(0, 1, masked=(7, 8)), dst(5, 1, masked=(70, 8))]
    assert unmasked(*records) == [(0, 5)]
    outcome = found(records)
    assert outcome.counts[Verdict.MATCHED] == 1
    conclusion = conclude([outcome], ())
    assert conclusion.exit_code == 1
    assert conclusion.line.startswith("faults: 1 unmasked; 1 matched; ")
    assert unmasked(records[0], replace(records[1], masked=(70, 80))) == []


@pytest.mark.parametrize("content", [None, b""])
def test_null_empty_or_absent_parts_are_not_unmasked(content: bytes | None) -> None:
    same = masked_hashes(MASKING, b"k", content, [("other", b"x"), ("ssn", content)])
    assert same == masked_hashes(MASKING, b"k", content, None) == ()
    assert unmasked(src(0, 1, masked=same), dst(0, 1, masked=same)) == []


def test_moved_and_additional_copies_are_unmasked_as_well() -> None:
    source = src(0, 1, masked=(7,))
    assert unmasked(source, dst(9, 1, masked=(7,), partition=1)) == [(0, 9)]
    assert unmasked(source, dst(3, 1, masked=(1,)), dst(4, 1, masked=(7,))) == [(0, 4)]


def test_equal_records_are_unmasked_as_often_as_their_copies() -> None:
    twins = [src(n, 1, masked=(7,)) for n in range(3)]
    copies = [dst(n, 1, masked=(hashed,)) for n, hashed in enumerate((50, 7, 60))]
    assert unmasked(*twins, *copies) == [(0, 1)]


def test_unmasked_records_of_compacted_topics_and_outside_the_window() -> None:
    pair = [src(0, 1, key=3, masked=(7,)), dst(0, 1, key=3, masked=(7,))]
    assert unmasked(*pair, comparison=Comparison.LATEST) == [(0, 0)]
    assert unmasked(*(replace(each, timestamp=999) for each in pair)) == []


def test_masked_hashes_cover_configured_parts() -> None:
    identity = Identity(must_change=("key", "header:ssn", "value"))
    headers = [("ssn", b"a"), ("other", b"a"), ("ssn", b"z"), ("ssn", None), ("ssn", b"a")]
    key, first, second, value = masked_hashes(identity, b"a", b"b", headers)
    assert len({key, first, second, value}) == 4
    keyed = replace(identity, hmac_key=b"secret")
    assert len({key, first, *masked_hashes(keyed, b"a", b"b", [])}) == 4


def test_each_header_of_a_name_must_change() -> None:
    of_source = masked_hashes(MASKING, None, None, [("ssn", b"one"), ("ssn", b"two")])
    of_copy = masked_hashes(MASKING, None, None, [("ssn", b"***"), ("ssn", b"two")])
    assert unmasked(src(0, 1, masked=of_source), dst(4, 1, masked=of_copy)) == [(0, 4)]
    assert unmasked(src(0, 1, masked=of_source), dst(4, 1, masked=of_copy[:1])) == []


def test_common_identity_checks_parts_of_all_flows() -> None:
    found = common_identity([MASKING, Identity(must_change=("key",))])
    assert found.must_change == ("header:ssn", "key", "value")
