"""Relative periods."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from minute_history import ms

from mm2slo_core.reporting.report_query import parse_period, resolve_relative_period

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "now", "found"),
    [
        ("last-month", "2026-07-20T09:00Z", "2026-06"),
        ("last-month", "2026-01-01T00:00Z", "2025-12"),
        # Already August in Berlin.
        ("last-month", "2026-07-31T22:30Z", "2026-07"),
        ("last-week", "2026-07-20T09:00Z", "2026-W29"),
        ("last-week", "2027-01-04T09:00Z", "2026-W53"),
        ("last-quarter", "2026-01-15T09:00Z", "2025-Q4"),
        ("last-quarter", "2026-12-31T09:00Z", "2026-Q3"),
        ("last-year", "2026-07-20T09:00Z", "2025"),
        ("yesterday", "2026-03-01T09:00Z", "2026-02-28"),
        ("7d", "2026-07-20T09:00Z", "7d"),
    ],
)
def test_relative_period_is_resolved_in_the_time_zone(text: str, now: str, found: str) -> None:
    assert resolve_relative_period(text, ms(now), BERLIN) == found


@pytest.mark.parametrize("day", range(1, 366, 13))
def test_relative_period_is_a_complete_past_period(day: int) -> None:
    now = ms("2026-01-01T00:00Z") + day * 86_400_000
    today = datetime.fromtimestamp(now / 1000, UTC)
    for text in ("yesterday", "last-week", "last-month", "last-quarter", "last-year"):
        whole = parse_period(resolve_relative_period(text, now, UTC), now, UTC)
        assert whole.end - whole.start == round(whole.seconds * 1000)
        assert whole.end <= now
        assert today.timestamp() * 1000 - whole.end < whole.seconds * 1000 + 1_500_000_000
