"""Scheduled digests in the configuration."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from mm2slo_core.config.digest import DigestConfig


def test_a_channel_is_all_it_takes() -> None:
    found = DigestConfig.model_validate({"channel": "ops"})
    assert (found.schedule, found.period, found.token_file) == ("mon 09:00", "7d", None)


def test_a_schedule_is_kept_as_it_is_written_here() -> None:
    found = DigestConfig.model_validate(
        {"channel": "ops", "schedule": " MON 9:00 ", "period": "last-month"}
    )
    assert (found.schedule, found.period) == ("mon 09:00", "last-month")


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("schedule", "every day", "is no schedule; expected 'mon 09:00'"),
        ("schedule", "* * * * *", "is no schedule"),
        ("period", "2026-07", "is no period that moves with the time; expected a length as in 7d"),
        ("period", "last-night", "is no period that moves with the time"),
    ],
)
def test_what_never_comes_or_never_moves_is_refused(key: str, value: str, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        DigestConfig.model_validate({"channel": "ops", key: value})
