"""A Prometheus that is not there: every question says so, none answers with a figure."""

from __future__ import annotations

import socket
from typing import Final

import pytest

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.history import MINUTE_MS, Indicator
from mm2slo_core.sli import Sli, SliKey
from mm2slo_core.topology import Flow
from mm2slo_report.sources.port import SliSource, SliSourceError
from mm2slo_report.sources.prometheus import PrometheusClient, PrometheusSource, Server

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
        lambda: source.minutes(INDICATOR, SPAN),
        lambda: source.known_since([INDICATOR]),
        source.indicators,
    ):
        with pytest.raises(SliSourceError, match="is not reached: Connection refused"):
            ask()


def test_what_only_warns_tells_it(away: PrometheusSource) -> None:
    (warning,) = away.warnings(28 * 86_400.0)
    assert warning.startswith("how long Prometheus keeps samples is not known: Prometheus at ")
    (problem,) = away.rules_problems(["mm2-slo"])
    assert "is not reached: Connection refused" in problem


def test_nothing_asked_needs_nobody(away: PrometheusSource) -> None:
    assert away.counts([], [SPAN]) == {}
    assert away.counts([INDICATOR], []) == {INDICATOR: {}}
