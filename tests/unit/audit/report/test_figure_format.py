"""Figures formatted as text."""

import pytest

from mm2slo_audit.report.audit_figures import Throughput
from mm2slo_audit.report.figure_format import (
    format_bracket,
    format_duration,
    format_throughput,
)
from mm2slo_core.audit.latency_histogram import Bracket


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, "-"),
        (Bracket(14.0, 120.0), "14-120 ms"),
        (Bracket(14.0, 14.0), "14 ms"),
        (Bracket(None, 120.0), "<= 120 ms"),
        (Bracket(0.0, 3.0), "<= 3 ms"),
        (Bracket(990.0, 1_040.0), "1.0 s"),
        (Bracket(900.0, 1_040.0), "0.9-1.0 s"),
        (Bracket(10_000.0, 31_000.0), "10-31 s"),
        (Bracket(60_000.0, 180_000.0), "1.0-3.0 min"),
        (Bracket(None, 36_000_000.0), "<= 10 h"),
    ],
)
def test_format_bracket_shows_bounds_and_unit(found: Bracket | None, expected: str) -> None:
    assert format_bracket(found) == expected


def test_format_throughput_and_duration() -> None:
    assert format_throughput(Throughput(1_234.5, 56_700.0)) == "1,234 records/s, 56.7 kB/s"
    assert format_throughput(Throughput(0.25, 12.0)) == "0.2 records/s, 12 B/s"
    assert (format_duration(4_200), format_duration(200_000)) == ("4.2 s", "3 min 20 s")
