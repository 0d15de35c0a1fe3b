"""Canaries over a restart; the previous run sent them at seconds 0 to 100."""

from dataclasses import replace

import pytest
from canary_ledgers import BAD, GOOD, NOTHING, OWN, UNKNOWN, counts, ledger, send

from mm2slo_core.indicators.canary_rules import CanaryArrival, CanaryTotals, PreviousRun, SentCanary
from mm2slo_core.indicators.sli_counters import SliCount


def previous_run(*, floor: int, newest: int | None, resumed_at: float = 300.0) -> PreviousRun:
    return PreviousRun(
        floor=floor,
        newest_arrived=newest,
        settled_to=100.0,
        started_at=resumed_at,
        resumed_at=resumed_at,
        sending_since=100.5,
    )


def sent(*sequences: int) -> list[SentCanary]:
    return [SentCanary(sequence, 0, 1000 + sequence, float(sequence)) for sequence in sequences]


def found(sequence: int, at: float = 301.0, not_before: float = 100.0) -> CanaryArrival:
    return CanaryArrival(sequence, 0, at, not_before)


def test_restore_does_not_recount_settled_canaries() -> None:
    canaries = ledger(OWN)
    canaries.restore(
        previous_run(floor=99, newest=100),
        sent(97, 98, 99, 100),
        [found(97), found(99), found(100)],
    )
    assert canaries.counters == ledger(OWN).counters
    assert canaries.totals == CanaryTotals()
    assert (canaries.pending, canaries.floor) == (0, 101)
    canaries.arrived(99, 0, 310.0)  # replicated again: a duplicate
    assert canaries.totals.duplicates == 1


def test_restore_with_deadline_between_runs_is_unknown() -> None:
    canaries = ledger()
    canaries.restore(previous_run(floor=90, newest=89), sent(90), [])
    assert counts(canaries) == {
        "availability": UNKNOWN,
        "10s": UNKNOWN,
        "60s": UNKNOWN,
        "completeness": NOTHING,
    }
    assert canaries.pending == 1


def test_restore_with_arrival_between_runs_is_complete_and_times_unknown() -> None:
    canaries = ledger()
    canaries.restore(previous_run(floor=90, newest=89), sent(90), [found(90)])
    assert counts(canaries) == {
        "availability": UNKNOWN,
        "10s": UNKNOWN,
        "60s": UNKNOWN,
        "completeness": GOOD,
    }


@pytest.mark.parametrize(
    ("append_time", "availability", "ten"), [(95.0, GOOD, GOOD), (120.0, GOOD, BAD)]
)
def test_restore_with_append_time_settles_times(
    append_time: float, availability: SliCount, ten: SliCount
) -> None:
    canaries = ledger()
    canaries.restore(
        previous_run(floor=90, newest=89), sent(90), [found(90, append_time, append_time)]
    )
    assert (counts(canaries)["availability"], counts(canaries)["10s"]) == (availability, ten)


def test_restore_with_append_time_after_deadline_is_late() -> None:
    canaries = ledger()
    canaries.restore(previous_run(floor=90, newest=89), sent(90), [found(90, 151.0, 151.0)])
    assert (counts(canaries)["availability"], canaries.totals.late) == (BAD, 1)


def test_restore_of_late_canary_only_awaits_arrival() -> None:
    canaries = ledger()
    canaries.restore(previous_run(floor=10, newest=9), sent(10), [])
    assert counts(canaries)["availability"] == NOTHING
    canaries.arrived(10, 0, 400.0)
    assert counts(canaries)["completeness"] == GOOD
    assert counts(canaries)["availability"] == NOTHING
    assert canaries.totals.late == 1


def test_restore_before_deadline_settles_normally() -> None:
    in_time, too_late = ledger(), ledger()
    for canaries in (in_time, too_late):
        canaries.restore(previous_run(floor=99, newest=98, resumed_at=104.0), sent(99), [])
    in_time.arrived(99, 0, 105.0)
    assert counts(in_time)["availability"] == GOOD
    too_late.tick(159.0)
    assert counts(too_late)["availability"] == BAD


def test_restore_without_headers_counts_nothing_twice() -> None:
    canaries = ledger()
    run = replace(previous_run(floor=0, newest=None), floor=None)
    canaries.restore(run, sent(98, 99, 100), [found(98), found(99)])
    assert counts(canaries)["completeness"] == NOTHING
    assert canaries.pending == 1


def test_restore_after_sender_restart_keeps_tracked_canaries() -> None:
    canaries = ledger()
    send(canaries, 0, 1)
    canaries.arrived(0, 0, 1.5)
    canaries.scheduled(2, 0, 2.0)  # its acknowledgement was lost with the sender
    before = canaries.counters
    run = PreviousRun(None, None, None, started_at=4.0, resumed_at=5.0, sending_since=2.5)
    canaries.restore(run, sent(0, 1, 2), [CanaryArrival(0, 0, 5.0, 2.0)])
    assert canaries.counters == before
    assert canaries.totals.duplicates == 0
    canaries.tick(62.0)
    assert counts(canaries)["availability"] == SliCount(1, 3, 0)
