"""Figures formatted as text."""

import pytest

from mm2slo_audit.report.run_figures import (
    SourceThroughput,
    format_bracket,
    format_duration,
    format_throughput,
)
from mm2slo_core.audit.unit_outcome import LatencyBracket


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, "-"),
        (LatencyBracket(14.0, 120.0), "14-120 ms"),
        (LatencyBracket(14.0, 14.0), "14 ms"),
        (LatencyBracket(None, 120.0), "<= 120 ms"),
        (LatencyBracket(0.0, 3.0), "<= 3 ms"),
        (LatencyBracket(990.0, 1_040.0), "1.0 s"),
        (LatencyBracket(900.0, 1_040.0), "0.9-1.0 s"),
        (LatencyBracket(10_000.0, 31_000.0), "10-31 s"),
        (LatencyBracket(60_000.0, 180_000.0), "1.0-3.0 min"),
        (LatencyBracket(None, 36_000_000.0), "<= 10 h"),
    ],
)
def test_format_bracket_shows_bounds_and_unit(found: LatencyBracket | None, expected: str) -> None:
    assert format_bracket(found) == expected


def test_format_throughput_and_duration() -> None:
    assert format_throughput(SourceThroughput(1_234.5, 56_700.0)) == "1,234 records/s, 56.7 kB/s"
    assert format_throughput(SourceThroughput(0.25, 12.0)) == "0.2 records/s, 12 B/s"
    assert (format_duration(4_200), format_duration(200_000)) == ("4.2 s", "3 min 20 s")
