from __future__ import annotations

from mm2slo_core.blind import Blindness, BlindTimes


def test_a_period_is_found_by_whatever_overlaps_it() -> None:
    blind = BlindTimes()
    blind.start(Blindness.TARGET, 10.0)
    blind.end(Blindness.TARGET, 20.0)
    assert blind.within(0.0, 9.9) == frozenset()
    assert blind.within(0.0, 10.0) == {Blindness.TARGET}
    assert blind.within(12.0, 13.0) == {Blindness.TARGET}
    assert blind.within(20.0, 99.0) == {Blindness.TARGET}
    assert blind.within(20.1, 99.0) == frozenset()


def test_a_period_that_lasts_reaches_into_the_future_and_begins_once() -> None:
    blind = BlindTimes()
    blind.start(Blindness.SOURCE, 10.0)
    blind.start(Blindness.SOURCE, 50.0)
    assert blind.within(20.0, 30.0) == {Blindness.SOURCE}
    blind.end(Blindness.TARGET, 60.0)
    assert blind.within(70.0, 80.0) == {Blindness.SOURCE}


def test_old_periods_are_forgotten() -> None:
    blind = BlindTimes()
    for start in (0.0, 100.0):
        blind.start(Blindness.SOURCE, start)
        blind.end(Blindness.SOURCE, start + 10.0)
    blind.forget_before(50.0)
    assert blind.within(0.0, 50.0) == frozenset()
    assert blind.ended_at() == 110.0


def test_we_excuse_a_silence_only_where_we_were_away_at_the_deadline() -> None:
    blind = BlindTimes()
    blind.start(Blindness.OURSELVES, 10.0)
    blind.end(Blindness.OURSELVES, 30.0)
    assert not blind.excuses(0.0, 60.0)
    assert blind.excuses(0.0, 30.0)
    blind.start(Blindness.TARGET, 40.0)
    blind.end(Blindness.TARGET, 41.0)
    assert blind.excuses(0.0, 60.0)
