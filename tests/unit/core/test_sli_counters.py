import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.indicators.sli_counters import (
    BAD,
    GOOD,
    UNKNOWN,
    DueSlices,
    Sli,
    SliceClock,
    SliCount,
    SliCounters,
    SliKey,
    latency_tier,
)

KEY = SliKey(Sli.LATENCY, "10s")
OTHER = SliKey(Sli.AVAILABILITY)


def test_declared_counters_start_at_zero() -> None:
    counters = SliCounters([KEY, OTHER])
    assert counters.snapshot() == {KEY: SliCount(0, 0, 0), OTHER: SliCount(0, 0, 0)}
    with pytest.raises(KeyError):
        counters.add(SliKey(Sli.ORDER), GOOD)


def test_add_sums_events() -> None:
    counters = SliCounters([KEY])
    for event in (GOOD, GOOD, BAD, UNKNOWN):
        counters.add(KEY, event)
    counters.add_all({KEY: SliCount(3, 4, 5)})
    assert counters[KEY] == SliCount(5, 7, 6)


@pytest.mark.parametrize("events", [SliCount(-1, 1, 0), SliCount(2, 1, 0), SliCount(0, 0, -1)])
def test_add_with_invalid_events_raises_value_error(events: SliCount) -> None:
    with pytest.raises(ValueError, match="expected 0 <= good <= total"):
        SliCounters([KEY]).add(KEY, events)


@pytest.mark.parametrize(
    ("seconds", "tier"), [(10.0, "10s"), (60.0, "60s"), (0.5, "0.5s"), (3600.0, "3600s")]
)
def test_latency_tier_label(seconds: float, tier: str) -> None:
    assert latency_tier(seconds) == tier


@pytest.mark.parametrize(
    ("case", "start", "looks", "expected"),
    [
        ("one a slice", 0.0, [15.0, 30.1], [DueSlices(1, 0), DueSlices(1, 0)]),
        ("not ended yet", 0.0, [14.9], [DueSlices(0, 0)]),
        ("two calls in one slice", 0.0, [15.0, 20.0], [DueSlices(1, 0), DueSlices(0, 0)]),
        ("late by two", 0.0, [46.0], [DueSlices(1, 2)]),
        ("the clock went back", 100.0, [50.0, 105.0], [DueSlices(0, 0), DueSlices(1, 0)]),
        ("started within a slice", 14.0, [16.0], [DueSlices(1, 0)]),
        ("down for long", 0.0, [15.0 * 101], [DueSlices(1, 60, 40)]),
    ],
)
def test_slice_clock_due_slices(
    case: str, start: float, looks: list[float], expected: list[DueSlices]
) -> None:
    clock = SliceClock(15.0, start, limit=60)
    assert [clock.due(at) for at in looks] == expected, case


@given(looks=st.lists(st.floats(0.1, 500.0), min_size=1, max_size=50))
def test_slice_clock_counts_every_slice_once(looks: list[float]) -> None:
    clock, now = SliceClock(15.0, 0.0), 0.0
    total = 0
    for gap in looks:
        now += gap
        total += sum(clock.due(now))
    assert total == int(now // 15.0)


def test_slice_clock_with_non_positive_length_raises_value_error() -> None:
    with pytest.raises(ValueError, match="positive number of seconds"):
        SliceClock(0.0, 0.0)
