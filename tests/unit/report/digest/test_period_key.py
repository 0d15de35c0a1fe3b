"""The keys under which digests are posted once."""

from dataclasses import replace

import pytest
from digest_samples import NOW, report, window

from mm2slo_report.digest.slo_digest import period_key


@pytest.mark.parametrize(
    ("period", "later_ms", "key"),
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
def test_period_key_changes_with_the_period(period: str, later_ms: int, key: str) -> None:
    now = NOW + later_ms
    assert period_key(report([], over=window(period, now), now=now)) == key


def test_period_key_of_objectives_own_windows_changes_daily() -> None:
    assert period_key(replace(report([]), window=None)) == "own windows to 2026-07-20"
