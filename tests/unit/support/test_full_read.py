"""The independent reader's comparison, and the scores built on it."""

import pytest
from fault_injection import Content, Found, Place, Stored, compare, replays, scores

from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.records.timeline_record import Side


def at(partition: int, offset: int, value: bytes | None, timestamp: int = 5) -> Stored:
    return Stored(Place(partition, offset), Content(timestamp, b"k", value))


def test_each_record_is_paired_once_and_what_is_left_has_a_name() -> None:
    source = [at(0, 0, b"a"), at(0, 1, b"a"), at(0, 2, b"b"), at(1, 0, b"c"), at(1, 1, None)]
    target = [at(0, 7, b"a"), at(0, 8, b"a"), at(0, 9, b"a"), at(1, 3, b""), at(1, 4, b"b")]

    found = compare(source, target)

    assert [(s.place, t.place) for s, t in found.pairs] == [((0, 0), (0, 7)), ((0, 1), (0, 8))]
    assert found.missing == {(0, 2), (1, 0), (1, 1)}
    assert found.duplicates == {(0, 9)}
    # A tombstone is not an empty value, and a copy in another partition is none.
    assert found.foreign == {(1, 3), (1, 4)}


@pytest.mark.parametrize(("timestamps", "pairs"), [(True, 0), (False, 1)])
def test_timestamps_can_be_left_out(timestamps: bool, pairs: int) -> None:
    found = compare([at(0, 0, b"a", 5)], [at(0, 0, b"a", 6)], timestamps=timestamps)

    assert len(found.pairs) == pairs


def test_blocks_at_consecutive_offsets_stay_separate() -> None:
    places = [Place(0, 5), Place(0, 4), Place(0, 7), Place(1, 8), Place(1, 9)]

    assert replays(places) == [((0, 4), 2), ((0, 7), 1), ((1, 8), 2)]


def test_scores_count_what_is_true_found_and_both() -> None:
    one, two, three = (Found(Side.SOURCE, 0, offset) for offset in (1, 2, 3))

    score = scores({Verdict.LOST: {one, two}}, {Verdict.LOST: {two, three}})[Verdict.LOST]

    assert (score.true, score.found, score.both) == (2, 2, 1)
    assert (score.recall, score.precision) == (0.5, 0.5)
