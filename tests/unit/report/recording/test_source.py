"""What the embedded history says of itself."""

from __future__ import annotations

import pytest
from recorded import AVAILABILITY

from mm2slo_core.errors import UserError
from mm2slo_core.objectives.exclusion import Span
from mm2slo_report.sources.port import SliSourceError
from mm2slo_report.sources.recorder import RecorderSource

DAY = 86_400.0


class Away:
    """A store that is."""

    def _away(self, *_: object) -> tuple[()]:
        raise UserError("the store /results.db cannot be read: it is locked")

    span_counts = minute_counts = first_seen = recorded_indicators = _away


def test_a_store_that_is_away_is_a_problem_of_the_source() -> None:
    source = RecorderSource(Away(), keep=63 * DAY)  # type: ignore[arg-type]
    asks = [
        lambda: source.counts([AVAILABILITY], [Span(0, 1)]),
        lambda: source.minutes(AVAILABILITY, Span(0, 1)),
        lambda: source.known_since([AVAILABILITY]),
        source.indicators,
    ]
    for ask in asks:
        with pytest.raises(SliSourceError, match="it is locked"):
            ask()


def test_a_window_longer_than_minutes_are_kept_is_told() -> None:
    source = RecorderSource(Away(), keep=63 * DAY)  # type: ignore[arg-type]
    assert source.warnings(63 * DAY) == ()
    (warning,) = source.warnings(90 * DAY)
    assert warning == (
        "history is kept by the minute for 63 days and by the hour before that: over 90 days, "
        "events at the edges may belong to the next hour"
    )
