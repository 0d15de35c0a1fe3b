"""The record of a canary, unobservable periods and canaries of earlier runs."""

from dataclasses import replace

import pytest
from canary_ledgers import BAD, GOOD, NOTHING, OWN, UNKNOWN, counts, ledger, send
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.indicators.canary_rules import (
    CanaryArrival,
    CanaryRecord,
    CanaryTotals,
    PreviousRun,
    SentCanary,
    UnobservableCause,
    UnobservablePeriods,
    is_canary_heartbeat,
)
from mm2slo_core.indicators.sli_counters import SliCount
from mm2slo_core.records.mirror_records import DecodeError, Heartbeat

CANARY = CanaryRecord(
    instance="eu-1/exporter",
    flow="us->eu",
    sequence=42,
    sent_ms=1_700_000_000_123,
    partition=3,
    floor=40,
    newest_arrived=41,
)


def test_canary_headers_are_text() -> None:
    assert CANARY.headers() == [
        ("mm2slo-instance", b"eu-1/exporter"),
        ("mm2slo-flow", b"us->eu"),
        ("mm2slo-sequence", b"42"),
        ("mm2slo-sent", b"1700000000123"),
        ("mm2slo-partition", b"3"),
        ("mm2slo-floor", b"40"),
        ("mm2slo-arrived", b"41"),
    ]
    assert CANARY.sent_at == 1_700_000_000.123


def test_canary_headers_omit_unknown_values() -> None:
    first = CanaryRecord(instance="i", flow="A->B", sequence=0, sent_ms=1, partition=0)
    assert [name for name, _ in first.headers()] == [
        "mm2slo-instance",
        "mm2slo-flow",
        "mm2slo-sequence",
        "mm2slo-sent",
        "mm2slo-partition",
    ]
    assert CanaryRecord.from_headers(first.headers()) == first


MARK: list[tuple[str, bytes | None]] = [("mm2slo-instance", b"i"), ("mm2slo-flow", b"A->B")]
NUMBERS = st.integers(0, 2**63 - 1)


@given(
    canary=st.builds(
        CanaryRecord,
        instance=st.text(min_size=1, max_size=50),
        flow=st.text(min_size=1, max_size=50),
        sequence=NUMBERS,
        sent_ms=NUMBERS,
        partition=st.integers(0, 10_000),
        floor=st.none() | NUMBERS,
        newest_arrived=st.none() | NUMBERS,
        settled_ms=st.none() | NUMBERS,
    )
)
def test_canary_headers_round_trip_among_other_headers(canary: CanaryRecord) -> None:
    others: list[tuple[str, bytes | None]] = [("traceparent", b"00-1"), ("empty", None)]
    assert CanaryRecord.from_headers([*others, *canary.headers()]) == canary


@pytest.mark.parametrize("headers", [None, [], [("traceparent", b"1")]])
def test_from_headers_without_instance_is_none(
    headers: list[tuple[str, bytes | None]] | None,
) -> None:
    assert CanaryRecord.from_headers(headers) is None


@pytest.mark.parametrize(
    ("case", "headers", "message"),
    [
        ("no flow", [("mm2slo-instance", b"i")], "mm2slo-flow is missing"),
        ("no sequence", MARK, "mm2slo-sequence is missing"),
        (
            "no number",
            [*MARK, ("mm2slo-sequence", b"-4")],
            "mm2slo-sequence is not a number",
        ),
        (
            "null",
            [*MARK, ("mm2slo-sequence", None)],
            "mm2slo-sequence is missing",
        ),
    ],
)
def test_from_headers_with_damaged_value_raises_decode_error(
    case: str, headers: list[tuple[str, bytes | None]], message: str
) -> None:
    with pytest.raises(DecodeError, match=message):
        CanaryRecord.from_headers(headers)
    assert case


def test_canary_heartbeat_is_valid_and_has_own_alias() -> None:
    key, value = CANARY.heartbeat("us")
    heartbeat = Heartbeat.decode(key, value)
    assert heartbeat == Heartbeat("mm2slo-canary/eu-1/exporter/us->eu", "us", 1_700_000_000_123)
    assert is_canary_heartbeat(heartbeat)
    assert not is_canary_heartbeat(Heartbeat("eu", "us", 1))
    # Golden: INT16 length and text, twice; then version 0 and the time.
    short = CanaryRecord(
        instance="i", flow="A->B", sequence=0, sent_ms=1_700_000_000_123, partition=0
    )
    assert short.heartbeat("B") == (
        b"\x00\x14mm2slo-canary/i/A->B\x00\x01B",
        bytes.fromhex("00000000018bcfe5687b"),
    )


def test_canary_on_own_topic_has_key_per_partition() -> None:
    assert CANARY.own() == (b"eu-1/exporter/us->eu/3", b"42")


def test_within_returns_causes_of_overlapping_periods() -> None:
    periods = UnobservablePeriods()
    periods.start(UnobservableCause.TARGET, 10.0)
    periods.end(UnobservableCause.TARGET, 20.0)
    assert periods.within(0.0, 9.9) == frozenset()
    assert periods.within(0.0, 10.0) == {UnobservableCause.TARGET}
    assert periods.within(12.0, 13.0) == {UnobservableCause.TARGET}
    assert periods.within(20.0, 99.0) == {UnobservableCause.TARGET}
    assert periods.within(20.1, 99.0) == frozenset()


def test_open_period_has_no_end_and_starts_once() -> None:
    periods = UnobservablePeriods()
    periods.start(UnobservableCause.SOURCE, 10.0)
    periods.start(UnobservableCause.SOURCE, 50.0)
    assert periods.within(20.0, 30.0) == {UnobservableCause.SOURCE}
    periods.end(UnobservableCause.TARGET, 60.0)
    assert periods.within(70.0, 80.0) == {UnobservableCause.SOURCE}


def test_forget_before_drops_old_periods() -> None:
    periods = UnobservablePeriods()
    for start in (0.0, 100.0):
        periods.start(UnobservableCause.SOURCE, start)
        periods.end(UnobservableCause.SOURCE, start + 10.0)
    periods.forget_before(50.0)
    assert periods.within(0.0, 50.0) == frozenset()
    assert periods.ended_at() == 110.0


def test_explains_absence_if_exporter_down_at_deadline() -> None:
    periods = UnobservablePeriods()
    periods.start(UnobservableCause.EXPORTER, 10.0)
    periods.end(UnobservableCause.EXPORTER, 30.0)
    assert not periods.explains_absence(0.0, 60.0)
    assert periods.explains_absence(0.0, 30.0)
    periods.start(UnobservableCause.TARGET, 40.0)
    periods.end(UnobservableCause.TARGET, 41.0)
    assert periods.explains_absence(0.0, 60.0)


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
