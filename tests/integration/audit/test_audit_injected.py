"""The injector says what is true: an independent reader of both clusters finds the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from audited import (
    APPENDED,
    CLEAN,
    COMPACTED,
    EXPIRED,
    FAULTS,
    ODD,
    REPLAY,
    STAMPED,
    TRANSACTIONS,
    WIDER,
)
from fault_injection import Place, replays

from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.timeline_record import Side

if TYPE_CHECKING:
    from audited import Told

pytestmark = pytest.mark.lab


def places(told: Told, name: str, side: Side, *verdicts: Verdict) -> set[Place]:
    """What the injector says of one side."""
    truth = told.story.injectors[name].truth
    return {
        Place(each.partition, each.offset)
        for verdict in verdicts
        for each in truth.places[verdict]
        if each.side is side
    }


def test_records_that_were_tampered_with_are_where_the_injector_says(told: Told) -> None:
    read, truth = told.reads[FAULTS], told.story.injectors[FAULTS].truth
    missing = (Verdict.LOST, Verdict.ALTERED, Verdict.MOVED)
    assert read.missing == places(told, FAULTS, Side.SOURCE, *missing)
    assert read.duplicates == places(told, FAULTS, Side.TARGET, Verdict.DUPLICATE)
    by_hand = {*truth.counterparts.values()} | places(told, FAULTS, Side.TARGET, Verdict.EXTRA)
    assert read.foreign == by_hand
    assert len(read.pairs) == 1_400
    assert truth.counts() == {
        Verdict.LOST: 12,
        Verdict.ALTERED: 12,
        Verdict.MOVED: 6,
        Verdict.DUPLICATE: 11,
        Verdict.EXTRA: 11,
    }


def test_the_kill_left_a_block_of_duplicates_in_each_partition(told: Told) -> None:
    read = told.reads[REPLAY]
    blocks = replays(read.duplicates)
    assert sum(size for _, size in blocks) == len(read.duplicates) >= 1_000
    assert [start.partition for start, _ in blocks] == [0, 1]
    assert read.missing == read.foreign == frozenset()


def test_what_expired_was_never_copied(told: Told) -> None:
    truth = told.story.injectors[EXPIRED].truth
    assert truth.counts() == {Verdict.EXPIRED: 200}
    # 500 before the gap, of which the source has no copy any more, and 50 after it.
    assert len(told.target[EXPIRED]) == 550
    assert len(told.reads[EXPIRED].pairs) == len(told.source[EXPIRED]) == 50


def test_a_compacted_topic_lost_three_newest_values(told: Told) -> None:
    assert told.reads[COMPACTED].missing == places(told, COMPACTED, Side.SOURCE, Verdict.LOST)
    assert len(told.reads[COMPACTED].missing) == 3


@pytest.mark.parametrize(
    ("name", "records"),
    [
        (CLEAN, 205_000),
        (TRANSACTIONS, 600),
        (ODD, 90),
        (APPENDED, 8_000),
        (STAMPED, 8_000),
        (WIDER, 3_000),
    ],
)
def test_all_others_were_copied_as_they_are(told: Told, name: str, records: int) -> None:
    read = told.reads[name]
    assert len(read.pairs) >= records
    assert read.missing == read.duplicates == read.foreign == frozenset()
