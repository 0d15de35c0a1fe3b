"""Latencies and sums."""

from collections import Counter

import pytest
from reference_audit import judge
from small_audit_unit import CENSUS, dst, found, scope, src

from mm2slo_core.audit.audit_scope import ArrivalPoll, TimestampType
from mm2slo_core.audit.fingerprint import Identity
from mm2slo_core.audit.unit_outcome import LatencyCells, Verdict, latency_bucket
from mm2slo_core.records.timeline_record import Side

# Latency.

PAIR = [src(3, 1), dst(7, 1)]


def poll(side: Side, end: int, earliest: int | None, latest: int, **more: int) -> ArrivalPoll:
    place = {"topic": 0, "flow": 0, "partition": 0, **more}
    return ArrivalPoll(side=side, end=end, earliest=earliest, latest=latest, **place)


def cells(low: int | None, high: int) -> LatencyCells:
    return LatencyCells(
        Counter({(None if low is None else latency_bucket(low), latency_bucket(high)): 1}),
        0,
        high,
        low or 0,
    )


T, S = Side.TARGET, Side.SOURCE


@pytest.mark.parametrize(
    ("polls", "end_to_end", "transfer"),
    [
        ([poll(T, 8, 1_600, 1_700)], cells(100, 200), LatencyCells()),
        ([poll(T, 8, None, 1_700)], cells(None, 200), LatencyCells()),
        ([poll(T, 8, 1_400, 1_700)], cells(0, 200), LatencyCells()),
        ([poll(T, 8, 1_300, 1_400)], LatencyCells(negative=1), LatencyCells()),
        (
            [poll(T, 8, 1_600, 1_700), poll(S, 4, 1_510, 1_530)],
            cells(100, 200),
            cells(70, 190),
        ),
        ([poll(T, 8, 1_600, 1_700), poll(S, 4, None, 1_530)], cells(100, 200), LatencyCells()),
        ([poll(T, 8, None, 1_700), poll(S, 4, 1_510, 1_530)], cells(None, 200), cells(None, 190)),
        # The first poll whose end is beyond the record; of equal ends the earlier.
        (
            [poll(T, 9, 1_800, 1_900), poll(T, 7, 1_510, 1_550), poll(T, 8, 1_600, 1_700)],
            cells(100, 200),
            LatencyCells(),
        ),
        (
            [poll(T, 8, 1_800, 1_900), poll(T, 8, 1_600, 1_700)],
            cells(100, 200),
            LatencyCells(),
        ),
    ],
)
def test_latencies_follow_arrival_brackets(
    polls: list[ArrivalPoll], end_to_end: LatencyCells, transfer: LatencyCells
) -> None:
    outcome = judge(PAIR, polls, scope(), CENSUS).partitions[0]
    assert outcome.end_to_end == end_to_end
    assert outcome.transfer == transfer
    assert outcome.without_bracket == 0


@pytest.mark.parametrize(
    "polls",
    [
        [],
        [poll(T, 7, 1_600, 1_700)],
        [poll(T, 8, 1_600, 1_700, partition=1)],
        [poll(T, 8, 1_600, 1_700, topic=1)],
    ],
)
def test_latencies_count_records_without_bracket(polls: list[ArrivalPoll]) -> None:
    outcome = judge(PAIR, polls, scope(), CENSUS).partitions[0]
    assert (outcome.without_bracket, outcome.end_to_end) == (1, LatencyCells())


def test_arrivals_use_other_flows_polls_only_for_target() -> None:
    polls = [poll(T, 8, 1_600, 1_700, flow=1), poll(S, 4, 1_510, 1_530, flow=1)]
    outcome = judge(PAIR, polls, scope(flows=2), CENSUS).partitions[0]
    assert (outcome.end_to_end, outcome.transfer) == (cells(100, 200), LatencyCells())


def test_arrivals_use_log_append_time() -> None:
    unstamped = Identity(timestamp=False)
    copies = [src(3, 1), dst(7, 1, at=1_540)]
    polls = [poll(S, 4, 1_510, 1_530), poll(T, 8, 1_600, 1_700)]
    unit = scope(identity=unstamped, target_time=TimestampType.LOG_APPEND)
    outcome = judge(copies, polls, unit, CENSUS).partitions[0]
    assert (outcome.end_to_end, outcome.transfer) == (cells(40, 40), cells(10, 30))
    unit = scope(flow={"source_time": TimestampType.LOG_APPEND})
    outcome = judge(PAIR, [poll(T, 8, 1_600, 1_700)], unit, CENSUS).partitions[0]
    assert (outcome.end_to_end, outcome.transfer) == (LatencyCells(), cells(100, 200))


def test_latencies_count_first_copy_of_judged_matched_records() -> None:
    records = [src(3, 1), src(4, 2, at=900), dst(7, 1), dst(8, 2, at=900), dst(9, 1)]
    polls = [poll(T, 8, 1_600, 1_700), poll(T, 10, 1_800, 1_900)]
    outcome = judge(records, polls, scope(), CENSUS).partitions[0]
    assert outcome.end_to_end == cells(100, 200)


# Sums.


def test_judge_sums_bytes_expired_records_and_oldest_open() -> None:
    unit = scope(source={"expired": 4})
    records = [src(0, 1), dst(0, 1), src(100, 2, at=1_700), src(101, 3, at=1_600), src(5, 4, at=1)]
    outcome = found(records, unit)
    assert outcome.partitions[0].source_bytes == 30
    assert outcome.counts == {Verdict.EXPIRED: 8, Verdict.MATCHED: 1, Verdict.PENDING: 2}
    assert outcome.oldest_open == 1_600


def test_judge_caps_evidence_per_verdict_but_not_counts() -> None:
    records = [*(src(n, n, key=n) for n in range(5)), *(dst(n, 50 + n, at=1_600) for n in range(4))]
    outcome = judge(records, (), scope(), CENSUS, evidence_cap=2)
    assert outcome.counts == {Verdict.LOST: 5, Verdict.EXTRA: 4}
    assert [(e.verdict, e.offset) for e in outcome.evidence] == [
        (Verdict.LOST, 0),
        (Verdict.LOST, 1),
        (Verdict.EXTRA, 0),
        (Verdict.EXTRA, 1),
    ]
