"""What settles a canary: its arrival, its deadline or evidence; invariants by name."""

import tracemalloc
from dataclasses import dataclass

import pytest
from canary_ledgers import BAD, GOOD, NOTHING, OWN, UNKNOWN, counts, ledger, send
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.indicators.canary_ledger import CanaryLedger, SequenceSet
from mm2slo_core.indicators.canary_rules import CanaryRules, CanaryTotals, UnobservableCause
from mm2slo_core.indicators.sli_counters import Sli, SliCount, SliKey


def test_counters_start_at_zero() -> None:
    assert counts(ledger()) == dict.fromkeys(counts(ledger()), NOTHING)
    assert {key.sli for key in ledger().counters} == {
        Sli.AVAILABILITY,
        Sli.LATENCY,
        Sli.COMPLETENESS,
    }
    assert {key.sli for key in ledger(OWN).counters} - {key.sli for key in ledger().counters} == {
        Sli.UNIQUENESS,
        Sli.ORDER,
        Sli.AFFINITY,
    }


@pytest.mark.parametrize(
    ("case", "arrives", "availability", "ten", "sixty"),
    [
        ("at once", 0.5, GOOD, GOOD, GOOD),
        ("on the first threshold", 10.0, GOOD, GOOD, GOOD),
        ("beyond the first threshold", 10.5, GOOD, BAD, GOOD),
        ("on the deadline", 60.0, GOOD, BAD, GOOD),
        ("after the deadline: late", 90.0, BAD, BAD, BAD),
    ],
)
def test_arrival_settles_availability_and_latency(
    case: str,
    arrives: float,
    availability: SliCount,
    ten: SliCount,
    sixty: SliCount,
) -> None:
    canaries = ledger()
    send(canaries, 0)
    canaries.tick(min(arrives, 59.9))
    assert counts(canaries) == dict.fromkeys(counts(canaries), NOTHING), case
    canaries.arrived(0, 0, arrives)
    assert counts(canaries) == {
        "availability": availability,
        "10s": ten,
        "60s": sixty,
        "completeness": GOOD,
    }, case
    canaries.tick(1000.0)
    assert counts(canaries)["availability"] == availability
    assert canaries.take_latencies() == [arrives]
    assert canaries.take_latencies() == []
    assert canaries.totals.late == (availability == BAD)
    assert canaries.pending == 0


def test_missing_canary_is_bad_at_deadline_but_not_lost() -> None:
    canaries = ledger()
    send(canaries, 0)
    canaries.tick(60.0)
    assert counts(canaries) == {
        "availability": BAD,
        "10s": BAD,
        "60s": BAD,
        "completeness": NOTHING,
    }
    canaries.tick(86400.0)
    assert (canaries.pending, canaries.totals.lost) == (1, 0)


def test_failed_produce_is_unknown() -> None:
    canaries = ledger()
    canaries.scheduled(0, 0, 0.0)
    canaries.tick(59.9)
    assert counts(canaries)["availability"] == NOTHING
    canaries.tick(60.0)
    assert counts(canaries) == dict.fromkeys(counts(canaries), UNKNOWN)
    assert canaries.totals == CanaryTotals(unknown=1)
    assert canaries.pending == 0


def test_failed_produce_that_arrives_is_complete() -> None:
    early, late = ledger(), ledger()
    early.scheduled(0, 0, 0.0)
    early.arrived(0, 0, 2.0)
    assert counts(early) == dict.fromkeys(counts(early), GOOD)
    late.scheduled(0, 0, 0.0)
    late.tick(60.0)
    late.arrived(0, 0, 65.0)
    assert counts(late)["completeness"] == SliCount(1, 1, 1)
    assert counts(late)["availability"] == UNKNOWN


@pytest.mark.parametrize("cause", [UnobservableCause.SOURCE, UnobservableCause.TARGET])
def test_unreachable_cluster_makes_canary_unknown_until_arrival(
    cause: UnobservableCause,
) -> None:
    canaries = ledger()
    send(canaries, 0)
    canaries.unreachable(cause, 5.0)
    canaries.unreachable(cause, 6.0)
    canaries.tick(60.0)
    assert counts(canaries)["availability"] == UNKNOWN
    assert counts(canaries)["10s"] == UNKNOWN
    assert counts(canaries)["completeness"] == NOTHING
    canaries.reachable(cause, 100.0)
    canaries.arrived(0, 0, 101.0)
    assert counts(canaries)["availability"] == UNKNOWN
    assert counts(canaries)["completeness"] == GOOD


def test_cluster_reachable_before_send_leaves_canary_bad() -> None:
    canaries = ledger()
    canaries.unreachable(UnobservableCause.TARGET, 0.0)
    canaries.reachable(UnobservableCause.TARGET, 5.0)
    send(canaries, 6)
    canaries.tick(66.0)
    assert counts(canaries)["availability"] == BAD


def test_arrival_in_time_is_good_despite_unreachable_cluster() -> None:
    canaries = ledger()
    send(canaries, 0)
    canaries.unreachable(UnobservableCause.TARGET, 1.0)
    canaries.reachable(UnobservableCause.TARGET, 8.0)
    canaries.arrived(0, 0, 9.0)
    assert counts(canaries)["availability"] == GOOD


def test_arrival_bracket_around_limit_is_unknown() -> None:
    canaries = ledger()
    send(canaries, 0)
    canaries.arrived(0, 0, 40.0, not_before=3.0)
    assert counts(canaries) == {
        "availability": GOOD,
        "10s": UNKNOWN,
        "60s": GOOD,
        "completeness": GOOD,
    }


def test_own_topic_settles_uniqueness_order_and_affinity() -> None:
    canaries = ledger(OWN)
    send(canaries, 0, 1, 2, 3)
    for sequence, partition in ((1, 0), (0, 0), (0, 0), (2, 4), (3, 0)):
        canaries.arrived(sequence, partition, 5.0)
    totals = canaries.totals
    assert (totals.received, totals.duplicates, totals.reordered, totals.moved) == (4, 1, 1, 1)
    assert canaries.counters[SliKey(Sli.UNIQUENESS)] == SliCount(4, 5, 0)
    assert canaries.counters[SliKey(Sli.ORDER)] == SliCount(3, 4, 0)
    assert canaries.counters[SliKey(Sli.AFFINITY)] == SliCount(3, 4, 0)


def test_order_is_per_partition() -> None:
    canaries = ledger(OWN)
    send(canaries, 0, 2, partition=0)
    send(canaries, 1, 3, partition=1)
    for sequence in (3, 2):
        canaries.arrived(sequence, sequence % 2, 5.0)
    assert canaries.totals.reordered == 0


def test_second_arrival_of_late_canary_is_duplicate() -> None:
    canaries = ledger(OWN)
    send(canaries, 0)
    canaries.tick(61.0)
    canaries.arrived(0, 0, 70.0)
    canaries.arrived(0, 0, 71.0)
    assert (canaries.totals.late, canaries.totals.duplicates) == (1, 1)
    assert counts(canaries)["completeness"] == GOOD


def test_unknown_sequences_are_ignored() -> None:
    canaries = ledger()
    canaries.arrived(7, 0, 1.0)
    send(canaries, 10)
    canaries.arrived(9, 0, 11.0)
    canaries.arrived(11, 0, 11.0)
    assert canaries.totals.received == 0


def test_silence_counts_from_oldest_pending_canary_or_last_arrival() -> None:
    canaries = ledger()
    assert canaries.silence(0.0) is None
    send(canaries, 0)
    canaries.arrived(0, 0, 0.5)
    assert canaries.silence(5.0) is None  # none is pending
    send(canaries, 5, 6, 7)
    assert canaries.silence(8.0) == 3.0
    canaries.arrived(6, 0, 8.0)
    assert canaries.silence(10.0) == 2.0


def test_silence_is_none_while_unobservable_or_not_sending() -> None:
    canaries = ledger()
    send(canaries, 0)
    canaries.unreachable(UnobservableCause.TARGET, 10.0)
    assert canaries.silence(40.0) is None
    canaries.reachable(UnobservableCause.TARGET, 45.0)
    assert canaries.silence(50.0) == 5.0
    assert canaries.silence(61.0) is None


def test_latency_tier_beyond_deadline_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"between 0 and the deadline, 60\.0 s"):
        CanaryRules(latency_tiers=(10.0, 120.0))


def test_canary_is_lost_after_position_passed_and_target_read() -> None:
    canaries = ledger()
    send(canaries, 0, 1)
    canaries.tick(70.0)
    canaries.position(0, 1001, 0, target_read=False)
    assert canaries.totals.lost == 0
    canaries.position(0, 1001, 0, target_read=True)
    assert canaries.totals.lost == 1
    assert counts(canaries)["completeness"] == BAD
    assert canaries.pending == 1
    canaries.position(0, 1001, 0, target_read=True)
    assert counts(canaries)["completeness"] == BAD


def test_canary_is_expired_if_source_removed_it_before_replication() -> None:
    canaries = ledger()
    send(canaries, 0)
    canaries.tick(70.0)
    canaries.position(0, 1000, 1500, target_read=True)
    assert canaries.totals.expired == 0  # one sample is no evidence
    canaries.position(0, 1000, 1500, target_read=True)
    assert (canaries.totals.expired, canaries.totals.lost) == (1, 0)
    assert counts(canaries)["completeness"] == NOTHING
    assert canaries.pending == 0


def test_canary_is_expired_if_position_jumps_over_removed_record() -> None:
    canaries = ledger()
    send(canaries, 0)
    canaries.tick(70.0)
    canaries.position(0, 1000, 900, target_read=True)
    canaries.position(0, 1600, 1500, target_read=True)
    assert (canaries.totals.expired, canaries.totals.lost) == (1, 0)


def test_canary_is_lost_if_passed_before_removal() -> None:
    canaries = ledger()
    send(canaries, 0)
    canaries.tick(70.0)
    canaries.position(0, 1001, 900, target_read=False)
    canaries.position(0, 1600, 1500, target_read=True)
    assert (canaries.totals.expired, canaries.totals.lost) == (0, 1)


def test_canary_on_compacted_carrier_is_suspect_until_looked_up() -> None:
    canaries = ledger(CanaryRules(confirm_losses=True))
    send(canaries, 0, 1)
    canaries.tick(70.0)
    canaries.position(0, 1002, 0, target_read=True)
    assert [suspect.sequence for suspect in canaries.suspects()] == [0, 1]
    assert [suspect.source_offset for suspect in canaries.suspects()] == [1000, 1001]
    assert (canaries.totals.lost, canaries.pending) == (0, 2)
    canaries.looked_up(0, present=False)
    canaries.looked_up(1, present=True)
    assert (canaries.totals.lost, canaries.totals.expired) == (1, 1)
    assert counts(canaries)["completeness"] == BAD
    canaries.looked_up(1, present=True)
    assert canaries.totals.lost == 1


def test_suspect_that_arrives_is_complete() -> None:
    canaries = ledger(CanaryRules(confirm_losses=True))
    send(canaries, 0)
    canaries.tick(70.0)
    canaries.position(0, 1001, 0, target_read=True)
    canaries.arrived(0, 0, 75.0)
    assert counts(canaries)["completeness"] == GOOD
    assert canaries.suspects() == ()


def test_late_acknowledgement_allows_completeness_to_settle() -> None:
    canaries = ledger()
    canaries.scheduled(0, 0, 0.0)
    canaries.tick(60.0)
    canaries.produced(0, 0, 1000, 61.0)
    canaries.position(0, 1001, 0, target_read=True)
    assert canaries.totals.lost == 1


def test_lost_canary_that_arrives_changes_no_sli() -> None:
    canaries = ledger()
    send(canaries, 0)
    canaries.tick(61.0)
    canaries.position(0, 1001, 0, target_read=True)
    canaries.arrived(0, 0, 100.0)
    assert counts(canaries)["completeness"] == BAD
    assert (canaries.totals.lost, canaries.totals.late, canaries.totals.duplicates) == (1, 1, 0)


def test_long_stop_uses_25_bytes_per_canary_and_settles_after_recovery() -> None:
    """Fifty canaries a second; the fixed size is for the minute before their deadline."""
    number = 20_000
    tracemalloc.start()
    canaries = ledger()
    for sequence in range(number):
        at = sequence / 50
        canaries.scheduled(sequence, 0, at)
        canaries.produced(sequence, 0, sequence, at)
        if sequence % 250 == 0:
            canaries.tick(at)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert canaries.pending == number
    assert size < 1_000_000 + 30 * number
    back = number / 50 + 100
    canaries.tick(back)
    for sequence in range(number):
        if sequence != 777:
            canaries.arrived(sequence, 0, back)
    canaries.position(0, number, 0, target_read=True)
    totals = canaries.totals
    assert (totals.late, totals.lost, totals.duplicates) == (number - 1, 1, 0)
    assert counts(canaries)["completeness"] == SliCount(number - 1, number, 0)
    assert counts(canaries)["availability"] == SliCount(0, number, 0)
    assert (canaries.pending, canaries.floor) == (0, number)


def test_pending_limit_makes_oldest_canary_unknown() -> None:
    canaries = ledger(CanaryRules(pending_limit=3))
    send(canaries, *range(5))
    canaries.tick(100.0)
    assert canaries.pending == 3
    assert counts(canaries)["completeness"] == SliCount(0, 0, 2)
    assert canaries.floor == 2


@given(numbers=st.lists(st.integers(0, 12), max_size=40))
def test_sequence_set_equals_python_set(numbers: list[int]) -> None:
    sequences, plain = SequenceSet(), set[int]()
    for number in numbers:
        assert sequences.add(number) is (number not in plain)
        plain.add(number)
        assert all((n in sequences) is (n in plain) for n in range(-1, 14))
    assert sequences.runs == sum(number - 1 not in plain for number in plain)


def test_add_that_closes_gap_merges_runs() -> None:
    sequences = SequenceSet()
    for number in (0, 1, 3, 4, 2):
        sequences.add(number)
    assert sequences.runs == 1


def test_consecutive_numbers_are_one_run() -> None:
    sequences = SequenceSet()
    for number in range(100_000):
        sequences.add(number)
    assert sequences.runs == 1


def test_run_limit_closes_oldest_gap() -> None:
    sequences = SequenceSet(run_limit=3)
    for number in (0, 10, 20, 30):
        sequences.add(number)
    assert sequences.runs == 3
    assert 5 in sequences
    assert 15 not in sequences


@dataclass(frozen=True)
class TrueOutcome:
    """What happens to one canary, sent a second after its predecessor."""

    acknowledged: bool
    copies: tuple[float, ...]
    """Delays of its arrivals; empty: it never arrives."""


OUTCOMES = st.lists(
    st.builds(
        TrueOutcome,
        acknowledged=st.booleans(),
        copies=st.lists(st.floats(0.0, 200.0), max_size=3).map(lambda d: tuple(sorted(d))),
    ),
    min_size=1,
    max_size=40,
)


@given(outcomes=OUTCOMES, ticks=st.floats(0.5, 30.0))
def test_ledger_keeps_its_invariants_and_finds_the_true_outcomes(
    outcomes: list[TrueOutcome], ticks: float
) -> None:
    canaries = CanaryLedger(CanaryRules(own_topic=True))
    events: list[tuple[float, int, int]] = []
    for sequence, outcome in enumerate(outcomes):
        events.append((float(sequence), 0, sequence))
        events.extend((sequence + delay, 1, sequence) for delay in outcome.copies)
    at = 0.0
    while at < len(outcomes) + 300.0:
        events.append((at, 2, -1))
        at += ticks
    counted = canaries.counters
    waiting: set[int] = set()
    """Known to be on the source, without an arrival yet."""
    for moment, kind, sequence in sorted(events):
        if kind == 0:
            canaries.scheduled(sequence, 0, moment)
            if outcomes[sequence].acknowledged:
                canaries.produced(sequence, 0, sequence, moment)
                waiting.add(sequence)
        elif kind == 1:
            canaries.arrived(sequence, 0, moment)
            waiting.discard(sequence)
        else:
            canaries.tick(moment)
        after = canaries.counters
        for key, count in after.items():
            assert all(new >= old for new, old in zip(count, counted[key], strict=True)), "A"
            assert 0 <= count.good <= count.total, "A"
        assert canaries.totals.lost == canaries.totals.expired == 0, "C: lost by time alone"
        assert canaries.floor <= min(waiting, default=len(outcomes)), "D"
        counted = after
    canaries.position(0, len(outcomes), 0, target_read=True)

    in_time = [bool(outcome.copies) and outcome.copies[0] <= 60.0 for outcome in outcomes]
    good = sum(in_time)
    known = sum(a or outcome.acknowledged for a, outcome in zip(in_time, outcomes, strict=True))
    assert canaries.counters[SliKey(Sli.AVAILABILITY)] == SliCount(
        good, known, len(outcomes) - known
    ), "B"
    arrived = sum(bool(outcome.copies) for outcome in outcomes)
    lost = sum(outcome.acknowledged and not outcome.copies for outcome in outcomes)
    completeness = canaries.counters[SliKey(Sli.COMPLETENESS)]
    assert (completeness.good, completeness.total) == (arrived, arrived + lost), "A and C"
    totals = canaries.totals
    assert (totals.received, totals.lost) == (arrived, lost)
    assert totals.duplicates == sum(max(len(outcome.copies) - 1, 0) for outcome in outcomes)
    assert (canaries.pending, canaries.floor) == (0, len(outcomes)), "D"
