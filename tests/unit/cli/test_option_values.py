"""Parsing and formatting of times."""

from datetime import UTC, datetime

import pytest

from mm2slo_cli.option_values import format_time, parse_time
from mm2slo_core.user_errors import UserError

NOW = 1_795_000_000_123


def utc(*parts: int) -> int:
    return round(datetime(*parts, tzinfo=UTC).timestamp() * 1000)  # type: ignore[misc, arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW),
        ("2026-12-01T02:00Z", utc(2026, 12, 1, 2)),
        (" 2026-12-01 02:00:30+00:00 ", utc(2026, 12, 1, 2, 0, 30)),
        ("2026-12-01T02:00-05:00", utc(2026, 12, 1, 7)),
        ("20261201T0200Z", utc(2026, 12, 1, 2)),
        ("2026-12-01T02:00 UTC", utc(2026, 12, 1, 2)),
        ("2026-12-01 02:00 Europe/Berlin", utc(2026, 12, 1, 1)),
        ("2026-07-01T02:00 Europe/Berlin", utc(2026, 7, 1, 0)),
        ("2026-12-01T02:00 America/Argentina/Buenos_Aires", utc(2026, 12, 1, 5)),
    ],
)
def test_parse_time_with_zone_returns_epoch_ms(text: str, expected: int) -> None:
    assert parse_time("--from", text, NOW) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "2026-12-01T02:00",
            (
                "--from '2026-12-01T02:00' has no time zone: "
                "add Z for UTC (2026-12-01T02:00Z), an offset (2026-12-01T02:00+01:00), or a zone "
                "('2026-12-01T02:00 Europe/Berlin')"
            ),
        ),
        (
            "2026-12-01",
            "--from '2026-12-01' is a date without a time: use for example 2026-12-01T02:00Z",
        ),
        (
            "tomorrow",
            (
                "--from 'tomorrow' is not an ISO 8601 time: use for example 2026-12-01T02:00Z,"
                " or now"
            ),
        ),
        ("", "--from '' is not an ISO 8601 time: use for example 2026-12-01T02:00Z, or now"),
        (
            "2026-12-01T02:00 Europe/Berlim",
            (
                "--from '2026-12-01T02:00 Europe/Berlim': unknown time zone Europe/Berlim:"
                " use an offset such as +01:00, or Z for UTC"
            ),
        ),
        (
            "2026-12-01T02:00Z Europe/Berlin",
            (
                "--from '2026-12-01T02:00Z Europe/Berlin' has both an offset and a time zone: "
                "give one of them"
            ),
        ),
        *(
            (
                text,
                (
                    f"--from '{text}' is out of range (years 1970 to 9998): use for "
                    "example 2026-12-01T02:00Z"
                ),
            )
            for text in (
                "1969-12-31T23:59Z",
                "0001-01-01T00:00+05:00",
                "0001-01-01 00:00 Europe/Berlin",
                "9999-01-01T00:00Z",
                "9999-12-31T23:59-10:00",
                "9999-12-31 23:59 America/New_York",
            )
        ),
        (  # clocks go forward in this night
            "2026-03-29T02:30 Europe/Berlin",
            (
                "--from '2026-03-29T02:30 Europe/Berlin' does not exist because clocks"
                " change: use an offset such as +01:00"
            ),
        ),
        (  # clocks go back in this night
            "2026-10-25T02:30 Europe/Berlin",
            (
                "--from '2026-10-25T02:30 Europe/Berlin' is ambiguous because clocks "
                "change: use an offset such as +01:00"
            ),
        ),
    ],
)
def test_parse_time_invalid_text_raises_user_error(text: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_time("--from", text, NOW)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("epoch_ms", "text"),
    [
        (utc(2026, 12, 1, 2), "2026-12-01T02:00Z"),
        (utc(2026, 12, 1, 2, 0, 30), "2026-12-01T02:00:30Z"),
        (NOW, "2026-11-18T11:06:40.123Z"),
    ],
)
def test_format_time_output_parses_to_the_same_time(epoch_ms: int, text: str) -> None:
    assert format_time(epoch_ms) == text
    assert parse_time("--to", text, 0) == epoch_ms
