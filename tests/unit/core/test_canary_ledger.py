"""What settles a canary: its arrival or its deadline."""

import pytest
from canary_ledgers import BAD, GOOD, NOTHING, OWN, UNKNOWN, counts, ledger, send

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
