"""When a report is due, through changes of the clocks."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reported import ms

from mm2slo_core.reporting.schedule import Schedule, last_due, next_due

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = [ZoneInfo(name) for name in ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu")]
TEXTS = ["mon 09:00", "sun 02:30", "daily 02:30", "daily 00:00", "1 09:00", "31 23:59", "29 02:30"]


def shown(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="minutes")[:16]


@pytest.mark.parametrize(
    ("schedule", "now", "due"),
    [
        ("mon 09:00", "2026-07-20T08:59+02:00", "2026-07-20T07:00"),
        ("mon 09:00", "2026-07-20T09:00+02:00", "2026-07-27T07:00"),
        # The same time on the wall, an hour later by UTC, after the clocks went back.
        ("mon 09:00", "2026-10-19T09:00+02:00", "2026-10-26T08:00"),
        ("1 09:00", "2026-12-31T23:00+01:00", "2027-01-01T08:00"),
        ("31 09:00", "2026-02-01T00:00+01:00", "2026-02-28T08:00"),
        ("daily 09:00", "2026-07-20T10:00+02:00", "2026-07-21T07:00"),
        # 02:30 is skipped on 29 March: 03:30.
        ("daily 02:30", "2026-03-29T00:00+01:00", "2026-03-29T01:30"),
        # 02:30 comes twice on 25 October: the first, and not the second.
        ("daily 02:30", "2026-10-25T00:00+02:00", "2026-10-25T00:30"),
        ("daily 02:30", "2026-10-25T02:30+02:00", "2026-10-26T01:30"),
    ],
)
def test_the_next_one_is_by_the_clock_on_the_wall(schedule: str, now: str, due: str) -> None:
    assert shown(next_due(Schedule.parse(schedule), ms(now), BERLIN)) == due


def test_the_last_one_includes_the_moment_itself() -> None:
    mondays = Schedule.parse("mon 09:00")
    assert shown(last_due(mondays, ms("2026-07-20T09:00+02:00"), BERLIN)) == "2026-07-20T07:00"
    assert shown(last_due(mondays, ms("2026-07-20T08:59+02:00"), BERLIN)) == "2026-07-13T07:00"


@given(
    st.sampled_from(TEXTS),
    st.sampled_from(ZONES),
    st.integers(min_value=ms("2026-01-01T00:00Z"), max_value=ms("2027-12-31T00:00Z")),
)
def test_no_moment_is_skipped_or_comes_twice(text: str, zone: ZoneInfo, now: int) -> None:
    schedule = Schedule.parse(text)
    due = next_due(schedule, now, zone)
    assert due > now
    assert last_due(schedule, due, zone) == due
    assert last_due(schedule, due - 1, zone) <= now
    assert next_due(schedule, last_due(schedule, now, zone), zone) == due


@pytest.mark.parametrize("text", TEXTS)
def test_a_schedule_is_written_as_it_is_read(text: str) -> None:
    assert str(Schedule.parse(f"  {text.upper()} ")) == text


@pytest.mark.parametrize(
    "text", ["", "mon", "mon 24:00", "0 09:00", "32 09:00", "monday 09:00", "mon 9:5", "* * * * *"]
)
def test_anything_else_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(ValueError, match="is no schedule: expected 'mon 09:00'"):
        Schedule.parse(text)
