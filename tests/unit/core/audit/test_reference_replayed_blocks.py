"""Duplicates, replays, extras; several flows; order."""

from small_audit_unit import counts, dst, found, scope, src

from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import Verdict

# Surplus.


def test_find_replays_needs_consecutive_duplicates() -> None:
    first = [src(n, n) for n in range(4)]
    copies = [dst(n, n) for n in range(4)]
    again = [dst(10 + n, n) for n in range(3)]  # offsets without records lie between
    single = [dst(20, 50), dst(21, 3)]
    outcome = found([*first, *copies, *again, *single])
    assert outcome.counts == {
        Verdict.MATCHED: 4,
        Verdict.REPLAY: 3,
        Verdict.EXTRA: 1,
        Verdict.DUPLICATE: 1,
    }
    assert [(e.start, e.end, e.size) for e in outcome.replays] == [(10, 13, 3)]
    assert [e.block for e in outcome.evidence if e.verdict is Verdict.REPLAY] == [10] * 3


def test_sample_has_duplicates_but_no_replays() -> None:
    records = [src(0, 0), src(1, 1), dst(0, 0), dst(1, 1), dst(2, 0), dst(3, 1)]
    assert counts(records)[Verdict.REPLAY] == 2
    outcome = found(records, sample=Sample(0.5))
    assert outcome.counts == {Verdict.MATCHED: 2, Verdict.DUPLICATE: 2}
    assert outcome.replays == ()


def test_replay_across_window_start_counts_records_in_window() -> None:
    times = (998, 999, 1_000)
    records = [
        *(src(n, n, at=at) for n, at in enumerate(times)),
        *(dst(n, n, at=at) for n, at in enumerate(times)),
        *(dst(3 + n, n, at=at) for n, at in enumerate(times)),
    ]
    outcome = found(records)
    assert outcome.counts == {Verdict.MATCHED: 1, Verdict.REPLAY: 1}
    assert [(e.start, e.end, e.size) for e in outcome.replays] == [(5, 6, 1)]


def test_of_equal_records_as_many_were_copied_again_as_have_a_copy() -> None:
    records = [src(n, 7) for n in range(20)] + [dst(n, 7) for n in range(30)]
    assert found(records).copied_again == 10
    three_times = [*records, *(dst(n, 7) for n in range(30, 60))]
    assert found(three_times).copied_again == 20
    assert found([src(0, 7), *(dst(n, 7) for n in range(4))]).copied_again == 1


def test_equal_records_copied_again_are_counted_by_partition() -> None:
    records = [
        *(src(n, 7, partition=p) for p in (0, 1) for n in range(10)),
        *(dst(n, 7, partition=0) for n in range(30)),
        *(dst(n, 7, partition=1) for n in range(14)),
    ]
    assert found(records).copied_again == 10 + 4


def test_equal_records_copied_again_to_another_partition_are_counted_there() -> None:
    records = [src(n, 7) for n in range(5)] + [dst(n, 7) for n in range(5)]
    elsewhere = [dst(n, 7, partition=1) for n in range(3)]
    assert found([*records, *elsewhere]).copied_again == 3


def test_surplus_below_auditable_from_is_unauditable() -> None:
    unit = scope(target={"auditable_from": 5})
    outcome = found([dst(4, 1), dst(5, 2)], unit)
    assert outcome.counts == {Verdict.UNAUDITABLE: 1, Verdict.EXTRA: 1}
    assert [(each.flow, each.partition) for each in outcome.partitions][-1] == (None, 0)


def test_duplicates_count_for_flow_of_their_record() -> None:
    records = [src(0, 1, flow=1, partition=1), dst(0, 1, partition=1), dst(1, 1, partition=1)]
    outcome = found(records, scope(flows=2))
    cells = {(each.flow, each.partition): each.counts for each in outcome.partitions}
    assert cells[1, 1] == {Verdict.MATCHED: 1, Verdict.DUPLICATE: 1}
    assert not any(count for cell, count in cells.items() if cell != (1, 1))


# Several flows.


def test_two_flows_into_one_topic_match_their_own_records() -> None:
    records = [src(0, 1, flow=0), src(0, 2, flow=1), dst(0, 2), dst(1, 1)]
    assert counts(records, scope(flows=2)) == {Verdict.MATCHED: 2}
    lost = found([*records[:2], dst(0, 1)], scope(flows=2)).evidence
    assert [(each.verdict, each.flow) for each in lost] == [(Verdict.LOST, 1)]


def test_identical_records_of_two_flows_need_two_copies() -> None:
    records = [src(0, 1, flow=0), src(0, 1, flow=1), dst(0, 1)]
    assert counts(records, scope(flows=2)) == {Verdict.MATCHED: 1, Verdict.LOST: 1}


# Order.


def test_swapped_records_put_all_between_them_out_of_order() -> None:
    """The copies of the first and the last record are swapped: all but the first follow it."""
    places = [12, *range(1, 12), 0]
    copies = [dst(place, content) for content, place in enumerate(places)]
    outcome = found([*(src(content, content) for content in range(13)), *copies])
    assert outcome.counts == {Verdict.MATCHED: 13, Verdict.OUT_OF_ORDER: 12}
    assert [each.offset for each in outcome.evidence] == list(range(1, 13))


def test_out_of_order_copies_precede_that_of_an_earlier_record() -> None:
    records = [src(n, n) for n in range(4)]
    copies = [dst(offset, n) for n, offset in enumerate((0, 3, 1, 2))]
    outcome = found([*records, *copies])
    assert outcome.counts == {Verdict.MATCHED: 4, Verdict.OUT_OF_ORDER: 2}
    assert [(e.offset, e.other_offset) for e in outcome.evidence] == [(2, 1), (3, 2)]
    copies = [dst(offset, n) for n, offset in enumerate((3, 2, 1, 0))]
    assert counts([*records, *copies])[Verdict.OUT_OF_ORDER] == 3


def test_order_ignores_duplicates_and_other_flows() -> None:
    assert Verdict.OUT_OF_ORDER not in counts(
        [src(0, 0), src(1, 1), dst(0, 0), dst(1, 1), dst(2, 0)]
    )
    records = [src(0, 1, flow=0), src(1, 2, flow=1), dst(5, 1), dst(0, 2)]
    assert counts(records, scope(flows=2)) == {Verdict.MATCHED: 2}


def test_order_is_not_judged_without_positions() -> None:
    records = [src(0, 0, key=5), src(1, 1, key=5), dst(1, 0, key=5), dst(0, 1, key=5)]
    outcome = found(records)
    assert outcome.order_judged
    assert (outcome.counts[Verdict.OUT_OF_ORDER], outcome.affinity.keys_disordered) == (1, 1)
    outcome = found(records, scope(flow={"has_positions": False}))
    assert not outcome.order_judged
    assert outcome.counts == {Verdict.MATCHED: 2}
    assert outcome.affinity.keys_disordered == 0
