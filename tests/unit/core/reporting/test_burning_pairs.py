"""Start of burning of a window pair."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.entry_evaluation import burning_since
from mm2slo_core.reporting.report_entry import PairReading, PairState
from mm2slo_core.reporting.step_counts import MINUTE_MS, StepCounts

TARGET = 0.99
MINUTES = 120
SPAN = Span(0, MINUTES * MINUTE_MS)


def pair(factor: float = 10.0, long: int = 20, short: int = 5) -> PairReading:
    """A pair that burns if more than a tenth of the events of both windows are bad."""
    return PairReading(
        name="fast",
        severity="page",
        long_seconds=long * 60.0,
        short_seconds=short * 60.0,
        long=None,
        short=None,
        factor=factor,
        state=PairState.BURNING,
    )


def minutes(*bad: range) -> list[StepCounts]:
    """Minutes with ten events each, which are bad in *bad*."""
    return [
        StepCounts(at * MINUTE_MS, 0.0 if any(at in each for each in bad) else 10.0, 10.0, 0.0)
        for at in range(MINUTES)
    ]


@pytest.mark.parametrize(
    ("bad", "since"),
    [
        # More than a tenth of 20 minutes takes 3 bad ones; the short window has 3 of 5 then.
        ((range(100, 120),), 103),
        # Good minutes in between do not end it while both windows exceed.
        ((range(100, 104), range(107, 120)), 103),
        # Five good minutes end it, and it starts again.
        ((range(80, 90), range(100, 120)), 101),
        ((range(120),), None),
        # The time before the first complete long window is not evaluated.
        ((range(10, 120),), None),
    ],
)
def test_burning_since_is_the_start_of_uninterrupted_burning(
    bad: tuple[range, ...], since: int | None
) -> None:
    found = burning_since(pair(), TARGET, minutes(*bad), SPAN)
    assert found == (None if since is None else since * MINUTE_MS)


def test_burning_since_ignores_minutes_without_sample() -> None:
    some = [each for each in minutes(range(100, 120)) if each.at // MINUTE_MS % 2]
    # 101, 103, 105: three of ten are bad, in half of the window.
    assert burning_since(pair(), TARGET, some, SPAN) == 106 * MINUTE_MS
    assert burning_since(pair(), TARGET, [], SPAN) == SPAN.end


@given(
    st.lists(st.booleans(), min_size=MINUTES, max_size=MINUTES),
    st.sampled_from([2.0, 10.0, 40.0]),
)
def test_burning_since_equals_evaluation_of_each_minute(lost: list[bool], factor: float) -> None:
    counted = [
        StepCounts(at * MINUTE_MS, 0.0 if bad else 10.0, 10.0, 0.0) for at, bad in enumerate(lost)
    ]

    def burns(end: int) -> bool:
        shares = (sum(lost[end - length : end]) / length for length in (20, 5))
        return all(share / (1 - TARGET) > factor + 1e-9 for share in shares)

    expected = None
    for end in range(MINUTES, 19, -1):
        if not burns(end):
            expected = min(end + 1, MINUTES) * MINUTE_MS
            break
    found = burning_since(pair(factor), TARGET, counted, SPAN)
    assert found == expected
