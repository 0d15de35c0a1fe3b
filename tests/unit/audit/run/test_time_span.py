"""Windows from the options --since, --from and --to."""

import pytest

from mm2slo_audit.audit_options import TimeSpan
from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.reporting.report_entry import utc_text
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
        ("99999d", None, None, Window(0, NOW)),  # never before the epoch
        (None, "1960-01-01", None, Window(0, NOW)),
        (None, "0001-01-01", None, Window(0, NOW)),
        (None, "2026-03-01T12:00:00Z", "9999-12-31T23:59:59.9999Z", Window(NOON, NOW)),
    ],
)
def test_time_span_parse_gives_window(
    since: str | None, start: str | None, end: str | None, window: Window
) -> None:
    assert TimeSpan.parse(since, start, end).window(NOW) == window


def test_time_span_incremental_starts_at_complete_up_to() -> None:
    assert TimeSpan().window(NOW, NOW - 5_000) == Window(NOW - 5_000, NOW)
    assert TimeSpan(since_ms=HOUR).window(NOW, NOW - 5_000) == Window(NOW - HOUR, NOW)


@pytest.mark.parametrize(
    ("since", "start", "end", "message"),
    [
        ("soon", None, None, r"--since 'soon' is not a duration: use for example 1h"),
        ("0s", None, None, r"--since '0s' is not a duration"),
        (None, "yesterday", None, r"--from 'yesterday' is not an ISO 8601 time"),
        (None, "2026-03-01", "noon", r"--to 'noon' is not an ISO 8601 time"),
        (None, "9999-12-31T23:59:59-14:00", None, r"--from '9999.*' is not an ISO 8601 time"),
        (None, "2026-03-01", "0001-01-01T00:00:00+14:00", r"--to '0001.*' is not an ISO 8601 time"),
        (None, None, "2026-03-01", r"--to requires --from"),
        ("1h", "2026-03-01", None, r"--since cannot be combined with --from or --to"),
    ],
)
def test_time_span_parse_invalid_values_raises_error(
    since: str | None, start: str | None, end: str | None, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        TimeSpan.parse(since, start, end)


def test_time_span_in_future_raises_error() -> None:
    span = TimeSpan.parse(None, "2030-01-01T00:00:00Z", None)
    with pytest.raises(UserError, match=r"starts in the future, at 2030-01-01T00:00:00Z"):
        span.window(NOW)
    last = TimeSpan.parse(None, "9999-12-31T23:59:59.9999Z", None)
    with pytest.raises(UserError, match=r"starts in the future, at 9999-12-31T23:59:59"):
        last.window(NOW)


def test_time_span_end_before_start_raises_error() -> None:
    span = TimeSpan.parse(None, "2026-03-01", "2026-02-01")
    with pytest.raises(UserError, match=r"before it starts at 2026-03-01T00:00:00Z"):
        span.window(NOW)


def test_format_utc_shows_nonzero_milliseconds() -> None:
    assert utc_text(NOON) == "2026-03-01T12:00:00Z"
    assert utc_text(NOON + 7) == "2026-03-01T12:00:00.007Z"
