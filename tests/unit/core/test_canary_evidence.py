"""What proves that a canary past its deadline is lost, expired or on its way."""

from __future__ import annotations

import tracemalloc

from canary_ledgers import BAD, GOOD, NOTHING, counts, ledger, send

from mm2slo_core.canary_ledger import CanaryRules
from mm2slo_core.sli_counters import SliCount


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


def test_an_acknowledgement_after_the_deadline_makes_completeness_judgeable_again() -> None:
    canaries = ledger()
    canaries.scheduled(0, 0, 0.0)
    canaries.tick(60.0)
    canaries.produced(0, 0, 1000, 61.0)
    canaries.position(0, 1001, 0, target_read=True)
    assert canaries.totals.lost == 1


def test_a_lost_canary_that_turns_up_changes_no_indicator() -> None:
    canaries = ledger()
    send(canaries, 0)
    canaries.tick(61.0)
    canaries.position(0, 1001, 0, target_read=True)
    canaries.arrived(0, 0, 100.0)
    assert counts(canaries)["completeness"] == BAD
    assert (canaries.totals.lost, canaries.totals.late, canaries.totals.duplicates) == (1, 1, 0)


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
