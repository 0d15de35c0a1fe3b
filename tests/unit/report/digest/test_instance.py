"""The names under which digests are posted once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from digests import NOW, report, window

from mm2slo_report.digest.instance import instance


@pytest.mark.parametrize(
    ("period", "later_ms", "name"),
    [
        ("7d", 0, "7d to 2026-07-20"),
        ("7d", 14 * 3_600_000, "7d to 2026-07-20"),
        ("7d", 15 * 3_600_000, "7d to 2026-07-21"),
        ("2026-06", 0, "2026-06"),
        ("2026-07", 0, "2026-07 to 2026-07-20"),
        ("6h", 0, "6h from 2026-07-20T06:00Z"),
        ("6h", 4 * 3_600_000, "6h from 2026-07-20T06:00Z"),
        ("6h", 5 * 3_600_000, "6h from 2026-07-20T12:00Z"),
    ],
)
def test_a_period_has_one_name_for_as_long_as_it_is_the_same(
    period: str, later_ms: int, name: str
) -> None:
    now = NOW + later_ms
    assert instance(report([], over=window(period, now), now=now)) == name


def test_own_windows_move_with_the_day() -> None:
    assert instance(replace(report([]), window=None)) == "own windows to 2026-07-20"
