"""Since when a pair of windows burns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.burning import burning_since
from mm2slo_core.reporting.entry import PairReading, PairState
from mm2slo_core.reporting.history import MINUTE_MS, MinuteCounts

TARGET = 0.99
MINUTES = 120
SPAN = Span(0, MINUTES * MINUTE_MS)


def pair(factor: float = 10.0, long: int = 20, short: int = 5) -> PairReading:
    """It burns where both windows lose a tenth of their events."""
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


def minutes(*bad: range) -> list[MinuteCounts]:
    """Ten events in each; all of them bad in those of *bad*."""
    return [
        MinuteCounts(at * MINUTE_MS, 0.0 if any(at in each for each in bad) else 10.0, 10.0, 0.0)
        for at in range(MINUTES)
    ]


@pytest.mark.parametrize(
    ("bad", "since"),
    [
        # More than a tenth of 20 minutes takes 3 bad ones; the short window has 3 of 5 then.
        ((range(100, 120),), 103),
        # Good minutes in between do not end it while both windows still hold enough.
        ((range(100, 104), range(107, 120)), 103),
        # Five good minutes empty the short window: it started anew.
        ((range(80, 90), range(100, 120)), 101),
        ((range(120),), None),
        # What burned before the long window is first whole is not looked at.
        ((range(10, 120),), None),
    ],
)
def test_it_burns_since_both_windows_exceed_without_a_break(
    bad: tuple[range, ...], since: int | None
) -> None:
    found = burning_since(pair(), TARGET, minutes(*bad), SPAN)
    assert found == (None if since is None else since * MINUTE_MS)


def test_minutes_without_a_sample_hold_no_event() -> None:
    some = [each for each in minutes(range(100, 120)) if each.at // MINUTE_MS % 2]
    # 101, 103: two of ten are bad, which is more than a tenth.
    assert burning_since(pair(), TARGET, some, SPAN) == 104 * MINUTE_MS
    assert burning_since(pair(), TARGET, [], SPAN) == SPAN.end


@given(
    st.lists(st.booleans(), min_size=MINUTES, max_size=MINUTES),
    st.sampled_from([2.0, 10.0, 40.0]),
)
def test_it_is_as_a_look_at_each_minute_says(lost: list[bool], factor: float) -> None:
    counted = [
        MinuteCounts(at * MINUTE_MS, 0.0 if bad else 10.0, 10.0, 0.0) for at, bad in enumerate(lost)
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
