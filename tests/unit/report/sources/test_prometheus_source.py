"""A Prometheus that is not there: every question says so, none answers with a figure."""

import socket
from typing import Final

import pytest

from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.step_counts import MINUTE_MS, Indicator
from mm2slo_core.topology import Flow
from mm2slo_report.http_session import Server
from mm2slo_report.prometheus_api import PrometheusClient
from mm2slo_report.prometheus_source import PrometheusSource
from mm2slo_report.sli_source import SliSource, SliSourceError

INDICATOR: Final = Indicator(Flow("us", "eu"), SliKey(Sli.AVAILABILITY))
SPAN: Final = Span(0, MINUTE_MS)


@pytest.fixture
def away() -> PrometheusSource:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return PrometheusSource(PrometheusClient(Server(url=f"http://127.0.0.1:{port}")))


def test_every_question_fails(away: PrometheusSource) -> None:
    source: SliSource = away
    for ask in (
        lambda: source.counts([INDICATOR], [SPAN]),
        lambda: source.steps(INDICATOR, SPAN),
        lambda: source.known_since([INDICATOR]),
        source.indicators,
    ):
        with pytest.raises(SliSourceError, match="is unreachable: Connection refused"):
            ask()


def test_warnings_and_rules_report_the_connection_error(away: PrometheusSource) -> None:
    (warning,) = away.warnings(28 * 86_400.0)
    assert warning.startswith("the retention of Prometheus is unknown: Prometheus at ")
    (problem,) = away.rules_problems(["mm2-slo"])
    assert "is unreachable: Connection refused" in problem


def test_empty_query_needs_no_connection(away: PrometheusSource) -> None:
    assert away.counts([], [SPAN]) == {}
    assert away.counts([INDICATOR], []) == {INDICATOR: {}}
