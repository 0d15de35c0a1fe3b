from mm2slo_core.indicators.canary_rules import UnobservableCause, UnobservablePeriods


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
