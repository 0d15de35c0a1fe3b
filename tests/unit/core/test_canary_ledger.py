"""What settles a canary: its arrival or its deadline."""

from __future__ import annotations

import pytest
from canary_ledgers import BAD, GOOD, NOTHING, OWN, UNKNOWN, counts, ledger, send

from mm2slo_core.canary_ledger import CanaryRules, CanaryTotals
from mm2slo_core.sli_counters import Sli, SliCount, SliKey
from mm2slo_core.unobservable_periods import UnobservableCause


def test_every_indicator_is_there_from_the_start_at_zero() -> None:
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
def test_good_and_total_move_together_on_arrival_or_at_the_deadline(
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


def test_a_canary_that_does_not_come_is_bad_at_the_deadline_but_not_lost() -> None:
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


def test_a_produce_that_fails_is_unknown_and_neither_good_nor_bad() -> None:
    canaries = ledger()
    canaries.scheduled(0, 0, 0.0)
    canaries.tick(59.9)
    assert counts(canaries)["availability"] == NOTHING
    canaries.tick(60.0)
    assert counts(canaries) == dict.fromkeys(counts(canaries), UNKNOWN)
    assert canaries.totals == CanaryTotals(unknown=1)
    assert canaries.pending == 0


def test_a_failed_produce_that_arrives_all_the_same_is_evidence() -> None:
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
def test_an_unreachable_cluster_makes_it_unknown_and_a_later_arrival_complete(
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


def test_a_cluster_that_came_back_before_the_canary_was_sent_excuses_nothing() -> None:
    canaries = ledger()
    canaries.unreachable(UnobservableCause.TARGET, 0.0)
    canaries.reachable(UnobservableCause.TARGET, 5.0)
    send(canaries, 6)
    canaries.tick(66.0)
    assert counts(canaries)["availability"] == BAD


def test_an_arrival_in_time_is_good_whatever_was_unreachable() -> None:
    canaries = ledger()
    send(canaries, 0)
    canaries.unreachable(UnobservableCause.TARGET, 1.0)
    canaries.reachable(UnobservableCause.TARGET, 8.0)
    canaries.arrived(0, 0, 9.0)
    assert counts(canaries)["availability"] == GOOD


def test_a_reader_that_was_behind_leaves_open_what_its_bracket_straddles() -> None:
    canaries = ledger()
    send(canaries, 0)
    canaries.arrived(0, 0, 40.0, not_before=3.0)
    assert counts(canaries) == {
        "availability": GOOD,
        "10s": UNKNOWN,
        "60s": GOOD,
        "completeness": GOOD,
    }


def test_duplicates_order_and_affinity_are_judged_for_the_own_topic() -> None:
    canaries = ledger(OWN)
    send(canaries, 0, 1, 2, 3)
    for sequence, partition in ((1, 0), (0, 0), (0, 0), (2, 4), (3, 0)):
        canaries.arrived(sequence, partition, 5.0)
    totals = canaries.totals
    assert (totals.received, totals.duplicates, totals.reordered, totals.moved) == (4, 1, 1, 1)
    assert canaries.counters[SliKey(Sli.UNIQUENESS)] == SliCount(4, 5, 0)
    assert canaries.counters[SliKey(Sli.ORDER)] == SliCount(3, 4, 0)
    assert canaries.counters[SliKey(Sli.AFFINITY)] == SliCount(3, 4, 0)


def test_order_is_judged_within_a_partition_only() -> None:
    canaries = ledger(OWN)
    send(canaries, 0, 2, partition=0)
    send(canaries, 1, 3, partition=1)
    for sequence in (3, 2):
        canaries.arrived(sequence, sequence % 2, 5.0)
    assert canaries.totals.reordered == 0


def test_a_duplicate_of_a_late_canary_is_a_duplicate() -> None:
    canaries = ledger(OWN)
    send(canaries, 0)
    canaries.tick(61.0)
    canaries.arrived(0, 0, 70.0)
    canaries.arrived(0, 0, 71.0)
    assert (canaries.totals.late, canaries.totals.duplicates) == (1, 1)
    assert counts(canaries)["completeness"] == GOOD


def test_sequences_of_nobody_are_ignored() -> None:
    canaries = ledger()
    canaries.arrived(7, 0, 1.0)
    send(canaries, 10)
    canaries.arrived(9, 0, 11.0)
    canaries.arrived(11, 0, 11.0)
    assert canaries.totals.received == 0


def test_silence_lasts_from_the_oldest_canary_out_or_the_last_arrival() -> None:
    canaries = ledger()
    assert canaries.silence(0.0) is None
    send(canaries, 0)
    canaries.arrived(0, 0, 0.5)
    assert canaries.silence(5.0) is None  # none is out
    send(canaries, 5, 6, 7)
    assert canaries.silence(8.0) == 3.0
    canaries.arrived(6, 0, 8.0)
    assert canaries.silence(10.0) == 2.0


def test_silence_says_nothing_while_we_are_blind_or_have_stopped_sending() -> None:
    canaries = ledger()
    send(canaries, 0)
    canaries.unreachable(UnobservableCause.TARGET, 10.0)
    assert canaries.silence(40.0) is None
    canaries.reachable(UnobservableCause.TARGET, 45.0)
    assert canaries.silence(50.0) == 5.0
    assert canaries.silence(61.0) is None


def test_tiers_beyond_the_deadline_are_refused() -> None:
    with pytest.raises(ValueError, match=r"not within 0 and 60\.0 s"):
        CanaryRules(latency_tiers=(10.0, 120.0))
