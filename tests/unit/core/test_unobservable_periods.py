from __future__ import annotations

from mm2slo_core.unobservable_periods import UnobservableCause, UnobservablePeriods


def test_a_period_is_found_by_whatever_overlaps_it() -> None:
    blind = UnobservablePeriods()
    blind.start(UnobservableCause.TARGET, 10.0)
    blind.end(UnobservableCause.TARGET, 20.0)
    assert blind.within(0.0, 9.9) == frozenset()
    assert blind.within(0.0, 10.0) == {UnobservableCause.TARGET}
    assert blind.within(12.0, 13.0) == {UnobservableCause.TARGET}
    assert blind.within(20.0, 99.0) == {UnobservableCause.TARGET}
    assert blind.within(20.1, 99.0) == frozenset()


def test_a_period_that_lasts_reaches_into_the_future_and_begins_once() -> None:
    blind = UnobservablePeriods()
    blind.start(UnobservableCause.SOURCE, 10.0)
    blind.start(UnobservableCause.SOURCE, 50.0)
    assert blind.within(20.0, 30.0) == {UnobservableCause.SOURCE}
    blind.end(UnobservableCause.TARGET, 60.0)
    assert blind.within(70.0, 80.0) == {UnobservableCause.SOURCE}


def test_old_periods_are_forgotten() -> None:
    blind = UnobservablePeriods()
    for start in (0.0, 100.0):
        blind.start(UnobservableCause.SOURCE, start)
        blind.end(UnobservableCause.SOURCE, start + 10.0)
    blind.forget_before(50.0)
    assert blind.within(0.0, 50.0) == frozenset()
    assert blind.ended_at() == 110.0


def test_we_excuse_a_silence_only_where_we_were_away_at_the_deadline() -> None:
    blind = UnobservablePeriods()
    blind.start(UnobservableCause.EXPORTER, 10.0)
    blind.end(UnobservableCause.EXPORTER, 30.0)
    assert not blind.explains_absence(0.0, 60.0)
    assert blind.explains_absence(0.0, 30.0)
    blind.start(UnobservableCause.TARGET, 40.0)
    blind.end(UnobservableCause.TARGET, 41.0)
    assert blind.explains_absence(0.0, 60.0)
