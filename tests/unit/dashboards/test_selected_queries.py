"""Results of the less obvious queries, evaluated by promtool."""

from pathlib import Path

import pytest
from dashboard_preview.interpolation import ALL, interpolate
from generated_dashboards import dashboards, panels
from promtool import evaluate, needs_promtool

from mm2slo_core.catalogue.promql import quoted

pytestmark = needs_promtool

A = 'flow="us->eu",source="us",target="eu",job="mm2slo",instance="1"'
B = 'flow="us->eu",source="us",target="eu",job="mm2slo",instance="2"'
ODD = 'it\'s "a" $group.*/\\d'
LITERAL = quoted(ODD)
SERIES = {
    # Replicas disagree: the most severe state is shown.
    f'mm2_flow_state{{{A},state="running"}}': "1",
    f'mm2_flow_state{{{A},state="idle"}}': "0",
    f'mm2_flow_state{{{A},state="unknown"}}': "0",
    f'mm2_flow_state{{{A},state="stopped"}}': "0",
    f'mm2_flow_state{{{B},state="running"}}': "0",
    f'mm2_flow_state{{{B},state="idle"}}': "0",
    f'mm2_flow_state{{{B},state="unknown"}}': "0",
    f'mm2_flow_state{{{B},state="stopped"}}': "1",
    f'mm2_failover_ready{{{A},group="g1"}}': "1",
    f'mm2_failover_ready{{{B},group="g1"}}': "1",
    f'mm2_failover_ready{{{A},group="g2"}}': "0",
    f"mm2_failover_ready{{{A},group={LITERAL}}}": "0",
    f'mm2_replicated_records_total{{{A},topic="t"}}': "60",
    f'mm2_replicated_records_total{{{B},topic="t"}}': "60",
    f'mm2_replicated_records_total{{{A},topic="u"}}': "120",
    f'flow:mm2_slo_budget_remaining:ratio{{{A},sli="availability",tier="all"}}': "-0.5",
    f'flow:mm2_slo_budget_remaining:ratio{{{A},sli="latency",tier="10s"}}': "0.5",
}
GROWING = ("mm2_replicated_records_total",)
CASES: list[tuple[str, str, int, dict[str, float]]] = [
    ("mm2slo-overview", "Flow status", 0, {'{flow="us->eu"}': 3}),
    ("mm2slo-overview", "Flow status", 4, {'{flow="us->eu"}': 2}),
    ("mm2slo-flow", "Flow state", 0, {'{flow="us->eu"}': 3}),
    # 1 a second of one topic, exported by both replicas, and 2 of another.
    ("mm2slo-flow", "Records written and replicated", 1, {'{flow="us->eu"}': 3}),
    ("mm2slo-failover", "Groups by readiness", 0, {"{}": 1}),
    ("mm2slo-failover", "Groups by readiness", 1, {"{}": 2}),
    ("mm2slo-slo", "Exhausted error budgets", 0, {"{}": 1}),
    ("mm2slo-overview", "Lowest remaining error budget", 0, {"{}": -0.5}),
]


def query(uid: str, title: str, number: int, **selected: str) -> str:
    [panel] = [each for each in panels(dashboards()[uid]) if each["title"] == title]
    choices = {name: [selected.get(name, ALL)] for name in ("flow", "topic", "group", "sli")}
    return interpolate(
        panel["targets"][number]["expr"],
        choices,
        all_values={"flow": ".+", "topic": ".*", "group": ".+", "sli": ".+"},
        builtin={"__rate_interval": "4m", "__range": "1h"},
    )


def check(folder: Path, expected: dict[str, dict[str, float]]) -> None:
    """Evaluate with promtool, ten minutes into the series."""
    inputs = {
        name: f"0+{value}x10" if name.startswith(GROWING) else f"{value}x10"
        for name, value in SERIES.items()
    }
    queries = {(expression, "10m"): found for expression, found in expected.items()}
    evaluate(folder, [], inputs, queries, interval="1m")


def test_queries_return_expected_values(tmp_path: Path) -> None:
    check(tmp_path, {query(uid, title, n): found for uid, title, n, found in CASES})


@pytest.mark.parametrize(
    ("group", "found"),
    [
        ("g2", {'{flow="us->eu",group="g2"}': 0}),
        (ODD, {f'{{flow="us->eu",group={LITERAL}}}': 0}),
        ("g.", {}),
    ],
)
def test_selected_group_matches_only_itself(
    tmp_path: Path, group: str, found: dict[str, float]
) -> None:
    text = query("mm2slo-failover", "Consumer groups", 0, group=group)
    check(tmp_path, {text: found})


ALERTS_BY_SEVERITY = ("mm2slo-overview", "Firing alerts by severity", 0)
LOST = "mm2_retention_lost_records_total"


def alert(name: str, cluster: str) -> str:
    labels = f'alertname="{name}",alertstate="firing",severity="page",cluster="{cluster}"'
    return f"ALERTS{{{labels}}}"


@pytest.mark.parametrize(
    ("target", "series", "at", "found"),
    [
        pytest.param(
            ("mm2slo-flow", "Record faults", 0),
            {
                f'{LOST}{{{A},topic="t"}}': "100x119 stale",
                f'{LOST}{{{B},topic="t"}}': "_x130 600x9",
            },
            "140m",
            {'{flow="us->eu"}': 500},
            id="a loss before the first scrape of a restarted exporter",
        ),
        pytest.param(
            ("mm2slo-flow", "Record faults", 0),
            {f'{LOST}{{{A},topic="t"}}': "7x50 stale"},
            "59m",
            {},
            id="no scraped exporter",
        ),
        pytest.param(
            ("mm2slo-flow", "Record faults", 5),
            {f'mm2_canary_lost_total{{{A},carrier="topic"}}': "7x50 stale"},
            "59m",
            {},
            id="no scraped exporter and canaries",
        ),
        pytest.param(
            ("mm2slo-flow", "Records written and replicated", 2),
            {f"mm2_replicated_records_total{{{A}}}": "0+60x59"},
            "59m",
            {},
            id="records of a flow without series of topics",
        ),
        pytest.param(
            ("mm2slo-flow", "Canary latency p50/p99", 1),
            {f'mm2_canary_latency_seconds_bucket{{{A},carrier="topic",le="+Inf"}}': "60x59"},
            "59m",
            {},
            id="no canary in the range",
        ),
        *(
            pytest.param(
                ("mm2slo-pipeline", title, 0),
                {'up{job="mm2slo",instance="1"}': f"{up}x59"},
                "59m",
                {'{reason="none"}': 0} if up else {},
                id=f"{title} of an exporter that is {'up' if up else 'down'}",
            )
            for title in ("Collection failures by reason", "Malformed internal records")
            for up in (0, 1)
        ),
        pytest.param(
            ALERTS_BY_SEVERITY,
            {f"mm2_flow_info{{{A}}}": "1x50 stale", alert("MM2ClusterUnreachable", "eu"): "1x59"},
            "59m",
            {'{severity="page"}': 1},
            id="an alert about a cluster of a flow that was scraped before",
        ),
        pytest.param(
            ALERTS_BY_SEVERITY,
            {alert("MM2ExporterDown", "added by Prometheus"): "1x59"},
            "59m",
            {'{severity="page"}': 1},
            id="an alert about monitoring with a label cluster",
        ),
        pytest.param(
            ALERTS_BY_SEVERITY,
            {'ALERTS{alertname="MM2Watchdog",alertstate="firing",severity="none"}': "1x59"},
            "59m",
            {'{severity="page"}': 0, '{severity="ticket"}': 0},
            id="evaluated rules and no alert",
        ),
        pytest.param(
            ("mm2slo-failover", "Groups by readiness", 3),
            {
                f"mm2_flow_info{{{A}}}": "1x50 stale",
                f"mm2_flow_info{{{B}}}": "1x50 stale",
                f'mm2_failover_ready{{{A},group="g"}}': "1x50 stale",
            },
            "59m",
            {"{}": 1},
            id="no verdict on a flow that was scraped before",
        ),
    ],
)
def test_query_of_unusual_series_returns_expected_value(
    tmp_path: Path,
    target: tuple[str, str, int],
    series: dict[str, str],
    at: str,
    found: dict[str, float],
) -> None:
    evaluate(tmp_path, [], series, {(query(*target), at): found}, interval="1m")
