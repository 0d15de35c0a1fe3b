"""The window that a user's words become."""

from __future__ import annotations

import pytest

from mm2slo_audit.run.time_span import Span, utc
from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.user_errors import UserError

NOW = 1_795_000_000_000
HOUR = 3_600_000
NOON = 1_772_366_400_000  # 2026-03-01T12:00:00Z


@pytest.mark.parametrize(
    ("since", "start", "end", "window"),
    [
        ("1h", None, None, Window(NOW - HOUR, NOW)),
        ("90s", None, None, Window(NOW - 90_000, NOW)),
        (None, "2026-03-01T12:00:00Z", None, Window(NOON, NOW)),
        (None, "2026-03-01T12:00:00", "2026-03-01T14:00+01:00", Window(NOON, NOON + HOUR)),
        (None, "2026-03-01", "2026-03-01T12:00:00.250Z", Window(NOON - 12 * HOUR, NOON + 250)),
        (None, "2026-03-01T12:00:00Z", "2030-01-01", Window(NOON, NOW)),  # never beyond now
        (None, None, None, Window(NOW - HOUR, NOW)),
    ],
)
def test_words_become_a_window(
    since: str | None, start: str | None, end: str | None, window: Window
) -> None:
    assert Span.parse(since, start, end).window(NOW) == window


def test_an_incremental_run_begins_where_the_flows_are_complete() -> None:
    assert Span().window(NOW, NOW - 5_000) == Window(NOW - 5_000, NOW)
    assert Span(since_ms=HOUR).window(NOW, NOW - 5_000) == Window(NOW - HOUR, NOW)


@pytest.mark.parametrize(
    ("since", "start", "end", "message"),
    [
        ("soon", None, None, r"--since 'soon' is not a time to look back: write for example 1h"),
        ("0s", None, None, r"--since '0s' is not a time"),
        (None, "yesterday", None, r"--from 'yesterday' is not a time in ISO 8601"),
        (None, "2026-03-01", "noon", r"--to 'noon' is not a time in ISO 8601"),
        (None, None, "2026-03-01", r"--to needs --from"),
        ("1h", "2026-03-01", None, r"--since goes without --from and --to"),
    ],
)
def test_words_that_are_no_time_are_refused(
    since: str | None, start: str | None, end: str | None, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        Span.parse(since, start, end)


def test_a_window_in_the_future_is_refused() -> None:
    span = Span.parse(None, "2030-01-01T00:00:00Z", None)
    with pytest.raises(UserError, match=r"starts in the future, at 2030-01-01T00:00:00Z"):
        span.window(NOW)


def test_a_window_that_ends_before_it_begins_is_refused() -> None:
    span = Span.parse(None, "2026-03-01", "2026-02-01")
    with pytest.raises(UserError, match=r"before it starts at 2026-03-01T00:00:00Z"):
        span.window(NOW)


def test_milliseconds_are_shown_where_there_are_any() -> None:
    assert utc(NOON) == "2026-03-01T12:00:00Z"
    assert utc(NOON + 7) == "2026-03-01T12:00:00.007Z"
