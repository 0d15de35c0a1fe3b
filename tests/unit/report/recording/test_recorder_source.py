"""Errors and warnings of the recorder source."""

from __future__ import annotations

import pytest
from recorder_fakes import AVAILABILITY

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.user_errors import UserError
from mm2slo_report.sources.recorder_source import RecorderSource
from mm2slo_report.sources.sli_source import SliSourceError

DAY = 86_400.0


class LockedStore:
    """A store that cannot be read."""

    def _fail(self, *_: object) -> tuple[()]:
        raise UserError("the store /results.db cannot be read: it is locked")

    span_counts = minute_counts = first_seen = recorded_indicators = _fail


def test_unreadable_store_raises_source_errors() -> None:
    source = RecorderSource(LockedStore(), keep=63 * DAY)  # type: ignore[arg-type]
    queries = [
        lambda: source.counts([AVAILABILITY], [Span(0, 1)]),
        lambda: source.minutes(AVAILABILITY, Span(0, 1)),
        lambda: source.known_since([AVAILABILITY]),
        source.indicators,
    ]
    for query in queries:
        with pytest.raises(SliSourceError, match="it is locked"):
            query()


def test_warnings_window_longer_than_minute_retention_warns() -> None:
    source = RecorderSource(LockedStore(), keep=63 * DAY)  # type: ignore[arg-type]
    assert source.warnings(63 * DAY) == ()
    (warning,) = source.warnings(90 * DAY)
    assert warning == (
        "minutes are kept for 63 days, hours before that: over 90 days, the edges of the window "
        "are rounded to hours"
    )
