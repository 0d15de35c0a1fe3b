"""Times with a zone are read; all others are refused in a sentence."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mm2slo_cli.moments import moment, shown
from mm2slo_core.errors import UserError

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
def test_a_time_and_its_zone(text: str, expected: int) -> None:
    assert moment("--from", text, NOW) == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "2026-12-01T02:00",
            (
                "--from '2026-12-01T02:00' says no zone, so it is another moment in each place: "
                "write 2026-12-01T02:00Z for UTC, an offset as in 2026-12-01T02:00+01:00, or a "
                "zone as in '2026-12-01T02:00 Europe/Berlin'"
            ),
        ),
        (
            "2026-12-01",
            "--from '2026-12-01' is a day without a time: write for example 2026-12-01T02:00Z",
        ),
        (
            "tomorrow",
            (
                "--from 'tomorrow' is not a time in ISO 8601: write for example 2026-12-01T02:00Z,"
                " or now"
            ),
        ),
        ("", "--from '' is not a time in ISO 8601: write for example 2026-12-01T02:00Z, or now"),
        (
            "2026-12-01T02:00 Europe/Berlim",
            (
                "--from '2026-12-01T02:00 Europe/Berlim': this machine knows no zone Europe/Berlim:"
                " write an offset instead, as in +01:00, or Z for UTC"
            ),
        ),
        (
            "2026-12-01T02:00Z Europe/Berlin",
            (
                "--from '2026-12-01T02:00Z Europe/Berlin' has both an offset and a zone: "
                "give one of them"
            ),
        ),
        *(
            (
                text,
                (
                    f"--from '{text}' is out of range, which is from 1970 to 9998: write for "
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
        (  # the night in which clocks go forward
            "2026-03-29T02:30 Europe/Berlin",
            (
                "--from '2026-03-29T02:30 Europe/Berlin' does not exist there, since the clocks"
                " change: write it with an offset, as in +01:00"
            ),
        ),
        (  # the night in which they go back
            "2026-10-25T02:30 Europe/Berlin",
            (
                "--from '2026-10-25T02:30 Europe/Berlin' happens twice there, since the clocks "
                "change: write it with an offset, as in +01:00"
            ),
        ),
    ],
)
def test_what_is_no_moment_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(UserError) as refused:
        moment("--from", text, NOW)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("epoch_ms", "text"),
    [
        (utc(2026, 12, 1, 2), "2026-12-01T02:00Z"),
        (utc(2026, 12, 1, 2, 0, 30), "2026-12-01T02:00:30Z"),
        (NOW, "2026-11-18T11:06:40.123Z"),
    ],
)
def test_what_is_shown_can_be_given_again(epoch_ms: int, text: str) -> None:
    assert shown(epoch_ms) == text
    assert moment("--to", text, 0) == epoch_ms
