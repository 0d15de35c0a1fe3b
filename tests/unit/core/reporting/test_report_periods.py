"""Report periods in time zones with clock changes."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minute_history import ms

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.report_entry import WindowKind
from mm2slo_core.reporting.report_query import day_spans, parse_period, preceding_span

BERLIN = ZoneInfo("Europe/Berlin")
HOUR, DAY = 3_600_000, 86_400_000


NOW = ms("2026-07-14T10:30:45+00:00")


def test_rolling_period_ends_at_a_whole_minute() -> None:
    found = parse_period("28d", NOW, BERLIN)
    assert (found.kind, found.name, found.seconds) == (WindowKind.ROLLING, "28d", 28 * 86_400.0)
    assert (found.start, found.end) == (
        ms("2026-06-16T10:30:00+00:00"),
        ms("2026-07-14T10:30:00+00:00"),
    )
    assert preceding_span(found, BERLIN) == Span(ms("2026-05-19T10:30:00+00:00"), found.start)


@pytest.mark.parametrize(
    ("text", "start", "end", "earlier"),
    [
        ("2026-06", "2026-06-01T00:00+02:00", "2026-07-01T00:00+02:00", "2026-05-01T00:00+02:00"),
        # The clocks change on 29 March and 25 October.
        ("2026-03", "2026-03-01T00:00+01:00", "2026-04-01T00:00+02:00", "2026-02-01T00:00+01:00"),
        ("2026-01", "2026-01-01T00:00+01:00", "2026-02-01T00:00+01:00", "2025-12-01T00:00+01:00"),
        ("2026-Q2", "2026-04-01T00:00+02:00", "2026-07-01T00:00+02:00", "2026-01-01T00:00+01:00"),
        ("2025-Q4", "2025-10-01T00:00+02:00", "2026-01-01T00:00+01:00", "2025-07-01T00:00+02:00"),
        ("2025", "2025-01-01T00:00+01:00", "2026-01-01T00:00+01:00", "2024-01-01T00:00+01:00"),
        ("2026-W01", "2025-12-29T00:00+01:00", "2026-01-05T00:00+01:00", "2025-12-22T00:00+01:00"),
        (
            "2024-02-29",
            "2024-02-29T00:00+01:00",
            "2024-03-01T00:00+01:00",
            "2024-02-28T00:00+01:00",
        ),
    ],
)
def test_calendar_period_is_in_the_time_zone(text: str, start: str, end: str, earlier: str) -> None:
    found = parse_period(text, NOW, BERLIN)
    assert found.kind is WindowKind.CALENDAR
    assert (found.start, found.end) == (ms(start), ms(end))
    assert found.seconds == (ms(end) - ms(start)) / 1000
    assert preceding_span(found, BERLIN) == Span(ms(earlier), ms(start))


def test_running_month_ends_now_with_the_length_of_the_month() -> None:
    found = parse_period("2026-07", NOW, UTC)
    assert (found.start, found.end) == (
        ms("2026-07-01T00:00+00:00"),
        ms("2026-07-14T10:30:00+00:00"),
    )
    assert found.seconds == 31 * 86_400.0


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2026-08", "is in the future"),
        ("2026-13", "unknown period"),
        ("2026-02-30", "day"),
        ("2026-W54", "week"),
        ("0000", "year"),
        ("0001", "year"),
        ("0001-01-02", "before 1970"),
        ("1969-12", "before 1970"),
        ("9999", "year"),
        ("last month", "unknown period"),
        ("28", "unknown period"),
        ("", "unknown period"),
        ("400d", "longer than 366d"),
    ],
)
def test_invalid_period_raises_with_accepted_formats(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        parse_period(text, NOW, UTC)
    assert "28d" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"), [("1m", "5m"), ("4m", "5m"), ("7m", "5m or 10m"), ("61m", "1h or 65m")]
)
def test_period_that_shares_steps_of_a_history_is_refused_with_the_nearest(
    text: str, expected: str
) -> None:
    with pytest.raises(ValueError, match=f"{text!r} is no multiple of 5m; expected {expected}$"):
        parse_period(text, NOW, UTC)
    assert parse_period("5m", NOW, UTC).seconds == 300


def test_days_are_in_the_time_zone() -> None:
    found = day_spans(parse_period("2026-03", NOW, BERLIN), BERLIN)
    assert len(found) == 31
    assert {each.end - each.start for each in found[:28]} == {DAY}
    assert found[28].end - found[28].start == 23 * HOUR
    assert [each.end for each in found[:-1]] == [each.start for each in found[1:]]


def test_days_of_a_rolling_period_start_and_end_within_a_day() -> None:
    found = day_spans(parse_period("2d", NOW, UTC), UTC)
    assert [each.end - each.start for each in found] == [
        13 * HOUR + 30 * 60_000,
        DAY,
        10 * HOUR + 30 * 60_000,
    ]


ZONES = [
    ZoneInfo(name)
    for name in (
        "America/Los_Angeles",
        "Asia/Kathmandu",
        "Australia/Lord_Howe",  # half an hour of summer time
        "Africa/Cairo",  # whose clocks skip midnight
        "America/Sao_Paulo",  # so did these
        "Pacific/Apia",  # skipped 30 December 2011
    )
]


@given(st.sampled_from(ZONES), st.integers(2009, 2027), st.integers(1, 12))
def test_months_and_days_have_no_gaps_or_overlaps(zone: ZoneInfo, year: int, month: int) -> None:
    later = ms("2030-01-01T00:00+00:00")
    found = parse_period(f"{year}-{month:02}", later, zone)
    following = f"{year + month // 12}-{month % 12 + 1:02}"
    assert parse_period(following, later, zone).start == found.end
    assert preceding_span(parse_period(following, later, zone), zone) == Span(
        found.start, found.end
    )
    parts = day_spans(found, zone)
    assert [parts[0].start, *(each.end for each in parts)] == [
        *(each.start for each in parts),
        found.end,
    ]
    for each in parts:
        dates = [
            datetime.fromtimestamp(at / 1000, zone).date()
            for at in (each.start - 1, each.start, each.end - 1)
        ]
        assert dates[0] < dates[1] == dates[2], "a day starts at its first instant"
