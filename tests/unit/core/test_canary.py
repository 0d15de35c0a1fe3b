from __future__ import annotations

import tracemalloc

import pytest

from mm2slo_core.blind import Blindness
from mm2slo_core.canary import (
    Arrival,
    CanaryLedger,
    CanaryRules,
    CanaryTotals,
    FormerRun,
    SentCanary,
)
from mm2slo_core.sli import Sli, SliCount, SliKey

AVAILABILITY = SliKey(Sli.AVAILABILITY)
TEN = SliKey(Sli.LATENCY, "10s")
SIXTY = SliKey(Sli.LATENCY, "60s")
COMPLETENESS = SliKey(Sli.COMPLETENESS)
OWN = CanaryRules(own_topic=True)


def ledger(rules: CanaryRules | None = None) -> CanaryLedger:
    return CanaryLedger(rules or CanaryRules())


def send(to: CanaryLedger, *sequences: int, partition: int = 0) -> None:
    """Sequence n is due at second n and gets the source offset 1000 + n."""
    for sequence in sequences:
        to.scheduled(sequence, partition, float(sequence))
        to.produced(sequence, partition, 1000 + sequence, sequence + 0.01)


def counts(of: CanaryLedger) -> dict[str, SliCount]:
    return {
        "availability": of.counters[AVAILABILITY],
        "10s": of.counters[TEN],
        "60s": of.counters[SIXTY],
        "completeness": of.counters[COMPLETENESS],
    }


GOOD = SliCount(1, 1, 0)
BAD = SliCount(0, 1, 0)
UNKNOWN = SliCount(0, 0, 1)
NOTHING = SliCount(0, 0, 0)


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


def test_it_is_lost_once_the_position_passed_it_and_the_target_was_read() -> None:
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


def test_it_is_expired_when_the_source_removed_it_before_it_was_copied() -> None:
    canaries = ledger()
    send(canaries, 0)
    canaries.tick(70.0)
    canaries.position(0, 1000, 1500, target_read=True)
    assert canaries.totals.expired == 0  # one sample cannot tell
    canaries.position(0, 1000, 1500, target_read=True)
    assert (canaries.totals.expired, canaries.totals.lost) == (1, 0)
    assert counts(canaries)["completeness"] == NOTHING
    assert canaries.pending == 0


def test_a_position_that_jumps_over_a_removed_canary_makes_it_expired_not_lost() -> None:
    canaries = ledger()
    send(canaries, 0)
    canaries.tick(70.0)
    canaries.position(0, 1000, 900, target_read=True)
    canaries.position(0, 1600, 1500, target_read=True)
    assert (canaries.totals.expired, canaries.totals.lost) == (1, 0)


def test_a_canary_that_was_passed_before_the_source_removed_it_is_lost() -> None:
    canaries = ledger()
    send(canaries, 0)
    canaries.tick(70.0)
    canaries.position(0, 1001, 900, target_read=False)
    canaries.position(0, 1600, 1500, target_read=True)
    assert (canaries.totals.expired, canaries.totals.lost) == (0, 1)


def test_on_a_compacted_carrier_a_loss_waits_for_a_look_at_the_source() -> None:
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


def test_a_suspect_that_arrives_after_all_is_complete() -> None:
    canaries = ledger(CanaryRules(confirm_losses=True))
    send(canaries, 0)
    canaries.tick(70.0)
    canaries.position(0, 1001, 0, target_read=True)
    canaries.arrived(0, 0, 75.0)
    assert counts(canaries)["completeness"] == GOOD
    assert canaries.suspects() == ()


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


def test_an_acknowledgement_after_the_deadline_makes_completeness_judgeable_again() -> None:
    canaries = ledger()
    canaries.scheduled(0, 0, 0.0)
    canaries.tick(60.0)
    canaries.produced(0, 0, 1000, 61.0)
    canaries.position(0, 1001, 0, target_read=True)
    assert canaries.totals.lost == 1


@pytest.mark.parametrize("cause", [Blindness.SOURCE, Blindness.TARGET])
def test_an_unreachable_cluster_makes_it_unknown_and_a_later_arrival_complete(
    cause: Blindness,
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
    canaries.unreachable(Blindness.TARGET, 0.0)
    canaries.reachable(Blindness.TARGET, 5.0)
    send(canaries, 6)
    canaries.tick(66.0)
    assert counts(canaries)["availability"] == BAD


def test_an_arrival_in_time_is_good_whatever_was_unreachable() -> None:
    canaries = ledger()
    send(canaries, 0)
    canaries.unreachable(Blindness.TARGET, 1.0)
    canaries.reachable(Blindness.TARGET, 8.0)
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


def test_a_lost_canary_that_turns_up_changes_no_indicator() -> None:
    canaries = ledger()
    send(canaries, 0)
    canaries.tick(61.0)
    canaries.position(0, 1001, 0, target_read=True)
    canaries.arrived(0, 0, 100.0)
    assert counts(canaries)["completeness"] == BAD
    assert (canaries.totals.lost, canaries.totals.late, canaries.totals.duplicates) == (1, 1, 0)


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
    canaries.unreachable(Blindness.TARGET, 10.0)
    assert canaries.silence(40.0) is None
    canaries.reachable(Blindness.TARGET, 45.0)
    assert canaries.silence(50.0) == 5.0
    assert canaries.silence(61.0) is None


def test_a_long_stop_costs_25_bytes_a_canary_and_is_settled_when_the_flow_is_back() -> None:
    """Fifty canaries a second; the fixed part is the minute before their deadline."""
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


def test_beyond_its_limit_the_oldest_pending_canary_becomes_unknown() -> None:
    canaries = ledger(CanaryRules(pending_limit=3))
    send(canaries, *range(5))
    canaries.tick(100.0)
    assert canaries.pending == 3
    assert counts(canaries)["completeness"] == SliCount(0, 0, 2)
    assert canaries.floor == 2


def test_tiers_beyond_the_deadline_are_refused() -> None:
    with pytest.raises(ValueError, match=r"not within 0 and 60\.0 s"):
        CanaryRules(latency_tiers=(10.0, 120.0))


# Restarts: the former run sent canaries at seconds 0..100; the last one tells when it ended.


def former(*, floor: int, newest: int | None, resumed_at: float = 300.0) -> FormerRun:
    return FormerRun(floor=floor, newest_arrived=newest, died_at=100.0, resumed_at=resumed_at)


def sent(*sequences: int) -> list[SentCanary]:
    return [SentCanary(sequence, 0, 1000 + sequence, float(sequence)) for sequence in sequences]


def found(sequence: int, at: float = 301.0, not_before: float = 100.0) -> Arrival:
    return Arrival(sequence, 0, at, not_before)


def test_what_the_former_run_settled_is_not_counted_again() -> None:
    canaries = ledger(OWN)
    canaries.restore(
        former(floor=99, newest=100), sent(97, 98, 99, 100), [found(97), found(99), found(100)]
    )
    assert canaries.counters == ledger(OWN).counters
    assert canaries.totals == CanaryTotals()
    assert (canaries.pending, canaries.next_sequence) == (0, 101)
    canaries.arrived(99, 0, 310.0)  # copied again: this one is news
    assert canaries.totals.duplicates == 1


def test_a_deadline_that_passed_while_nobody_looked_is_unknown() -> None:
    canaries = ledger()
    canaries.restore(former(floor=90, newest=89), sent(90), [])
    assert counts(canaries) == {
        "availability": UNKNOWN,
        "10s": UNKNOWN,
        "60s": UNKNOWN,
        "completeness": NOTHING,
    }
    assert canaries.pending == 1


def test_an_arrival_while_nobody_looked_is_complete_and_its_punctuality_unknown() -> None:
    canaries = ledger()
    canaries.restore(former(floor=90, newest=89), sent(90), [found(90)])
    assert counts(canaries) == {
        "availability": UNKNOWN,
        "10s": UNKNOWN,
        "60s": UNKNOWN,
        "completeness": GOOD,
    }


@pytest.mark.parametrize(
    ("append_time", "availability", "ten"), [(95.0, GOOD, GOOD), (120.0, GOOD, BAD)]
)
def test_an_append_time_settles_what_nobody_saw(
    append_time: float, availability: SliCount, ten: SliCount
) -> None:
    canaries = ledger()
    canaries.restore(former(floor=90, newest=89), sent(90), [found(90, append_time, append_time)])
    assert (counts(canaries)["availability"], counts(canaries)["10s"]) == (availability, ten)


def test_an_append_time_after_the_deadline_is_late() -> None:
    canaries = ledger()
    canaries.restore(former(floor=90, newest=89), sent(90), [found(90, 151.0, 151.0)])
    assert (counts(canaries)["availability"], canaries.totals.late) == (BAD, 1)


def test_a_canary_the_former_run_saw_late_is_only_awaited() -> None:
    canaries = ledger()
    canaries.restore(former(floor=10, newest=9), sent(10), [])
    assert counts(canaries)["availability"] == NOTHING
    canaries.arrived(10, 0, 400.0)
    assert counts(canaries)["completeness"] == GOOD
    assert counts(canaries)["availability"] == NOTHING
    assert canaries.totals.late == 1


def test_a_canary_in_flight_over_a_short_restart_is_judged_as_usual() -> None:
    in_time, too_late = ledger(), ledger()
    for canaries in (in_time, too_late):
        canaries.restore(former(floor=99, newest=98, resumed_at=104.0), sent(99), [])
    in_time.arrived(99, 0, 105.0)
    assert counts(in_time)["availability"] == GOOD
    too_late.tick(159.0)
    assert counts(too_late)["availability"] == BAD


def test_without_the_figures_of_the_former_run_nothing_is_counted_twice() -> None:
    canaries = ledger()
    run = FormerRun(floor=None, newest_arrived=None, died_at=100.0, resumed_at=300.0)
    canaries.restore(run, sent(98, 99, 100), [found(98), found(99)])
    assert counts(canaries)["completeness"] == NOTHING
    assert canaries.pending == 1


def test_a_restart_of_the_sender_alone_changes_nothing_that_is_known() -> None:
    canaries = ledger()
    send(canaries, 0, 1)
    canaries.arrived(0, 0, 1.5)
    canaries.scheduled(2, 0, 2.0)  # its acknowledgement was lost with the sender
    before = canaries.counters
    run = FormerRun(floor=None, newest_arrived=None, died_at=2.0, resumed_at=5.0)
    canaries.restore(run, sent(0, 1, 2), [Arrival(0, 0, 5.0, 2.0)])
    assert canaries.counters == before
    assert canaries.totals.duplicates == 0
    canaries.tick(62.0)
    assert counts(canaries)["availability"] == SliCount(1, 3, 0)
