"""Evidence that a canary past its deadline is lost, expired or in flight."""

import tracemalloc

from canary_ledgers import BAD, GOOD, NOTHING, counts, ledger, send

from mm2slo_core.indicators.canary_rules import CanaryRules
from mm2slo_core.indicators.sli_counters import SliCount


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
