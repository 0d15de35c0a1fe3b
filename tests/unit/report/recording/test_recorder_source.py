"""Errors and warnings of the recorder source."""

import pytest
from recorder_fakes import AVAILABILITY

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.user_errors import UserError
from mm2slo_report.recording.recorder_history import RecorderSource
from mm2slo_report.sli_source import SliSourceError

DAY = 86_400.0


class LockedStore:
    """A store that cannot be read."""

    def _fail(self, *_: object) -> tuple[()]:
        raise UserError("the store /results.db cannot be read: it is locked")

    span_counts = steps = first_seen = last_seen = _fail


def test_unreadable_store_raises_source_errors() -> None:
    source = RecorderSource(LockedStore())  # type: ignore[arg-type]
    queries = [
        lambda: source.counts([AVAILABILITY], [Span(0, 1)]),
        lambda: source.steps(AVAILABILITY, Span(0, 1)),
        lambda: source.known_since([AVAILABILITY]),
        source.indicators,
    ]
    for query in queries:
        with pytest.raises(SliSourceError, match="it is locked"):
            query()


def test_warnings_window_longer_than_retention_warns() -> None:
    source = RecorderSource(LockedStore())  # type: ignore[arg-type]
    assert source.warnings(400 * DAY) == ()
    (warning,) = source.warnings(500 * DAY)
    assert warning == (
        "the recorder keeps 400 days, less than the window of 500 days: what is older is missing"
    )
