"""Values formatted as by Grafana 11."""

import pytest
from dashboard_preview.grafana_units import formatted, on_axis


@pytest.mark.parametrize(
    ("unit", "value", "decimals", "text"),
    [
        ("none", 0.0, None, "0"),
        ("none", 13.44, 2, "13.44"),
        ("none", 1 / 3, None, "0.333"),
        ("none", 2.0, 2, "2.00"),
        ("none", 0.0, 1, "0.0"),
        ("short", 999.0, None, "999"),
        ("short", 1000.0, None, "1 K"),
        ("short", 1234.0, None, "1.23 K"),
        ("short", 98_765.0, 2, "98.77 K"),
        ("short", 9_876_543.0, None, "9.88 Mil"),
        ("short", -1500.0, None, "-1.5 K"),
        ("short", 0.4, None, "0.4"),
        ("percentunit", 0.999, 2, "99.90%"),
        ("percentunit", 1.0, None, "100%"),
        ("percentunit", 0.0625, 1, "6.3%"),
        ("percentunit", -0.5, 1, "-50.0%"),
        ("s", 0.0, None, "0 s"),
        ("s", 0.0, 2, "0 s"),
        ("s", 0.0004, None, "400 µs"),
        ("s", 0.25, None, "250 ms"),
        ("s", 59.0, None, "59 s"),
        ("s", 90.0, None, "1.5 min"),
        ("s", 5400.0, 1, "1.5 hour"),
        ("s", 172_800.0, None, "2 day"),
        ("s", 2_419_200.0, None, "4 week"),
        ("s", 2 * 3.15569e7, None, "2 year"),
        ("recps", 0.5, None, "0.5 rec/s"),
        ("recps", 12_300.0, None, "12.3K rec/s"),
        ("reqps", 20.0, None, "20 req/s"),
        ("bytes", 0.0, None, "0 B"),
        ("bytes", 1536.0, None, "1.5 KiB"),
        ("bytes", 3 * 1024.0**3, 1, "3.0 GiB"),
        ("Bps", 0.02, None, "20 mB/s"),
        ("Bps", 1_500_000.0, None, "1.5 MB/s"),
        ("dateTimeAsIso", 1_700_000_000_000.0, None, "2023-11-14 22:13:20"),
        ("short", float("inf"), None, "∞"),
    ],
)
def test_formatted_matches_grafana(
    unit: str, value: float, decimals: int | None, text: str
) -> None:
    assert formatted(unit, value, decimals) == text


@pytest.mark.parametrize(
    ("unit", "value", "step", "text"),
    [
        ("short", 1050.0, 50.0, "1.05 K"),
        ("short", 1000.0, 50.0, "1 K"),
        ("s", 90.0, 30.0, "1.5 min"),
        ("s", 0.15, 0.05, "150 ms"),
        ("percentunit", 0.995, 0.005, "99.5%"),
        ("none", 10.05, 0.05, "10.05"),
    ],
)
def test_on_axis_distinguishes_steps(unit: str, value: float, step: float, text: str) -> None:
    assert on_axis(unit, value, step) == text
