"""Steps, time ranges and Grafana's own variables."""

import pytest
from dashboard_preview.time_range import Span

HOUR = 3600.0


@pytest.mark.parametrize(
    ("shown", "width", "scrape", "step"),
    [
        (6 * HOUR, 700, 15, 30.0),
        (6 * HOUR, 1400, 15, 15.0),
        (HOUR, 700, 15, 15.0),
        (28 * 24 * HOUR, 700, 15, 3600.0),
        (600.0, 600, 1, 1.0),
        # Prometheus refuses more than 11,000 points.
        (28 * 24 * HOUR, 1e6, 1, 28 * 24 * HOUR / 10_000),
    ],
)
def test_step_is_rounded(shown: float, width: float, scrape: float, step: float) -> None:
    assert Span(0.0, shown).step(width, scrape) == pytest.approx(step)


def test_aligned_range_is_multiple_of_step() -> None:
    assert Span(1007.0, 1999.0).aligned(30.0) == Span(990.0, 1980.0)


def test_builtin_variables_match_grafana() -> None:
    span = Span(1_000.0, 22_600.0)
    assert span.builtin(30.0, 15.0) == {
        "__interval": "30s",
        "__interval_ms": "30000",
        "__range": "6h",
        "__range_s": "21600",
        "__range_ms": "21600000",
        # Four scrapes, or a step and a scrape where that is more.
        "__rate_interval": "1m",
        "__url_time_range": "from=1000000&to=22600000",
    }
    assert span.builtin(60.0, 15.0)["__rate_interval"] == "1m15s"
