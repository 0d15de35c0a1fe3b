"""Every query of every panel returns the expected result, evaluated by promtool.

The folder `answers` has the hand-written series and results. The series include replicas, another
flow and another job, so that a wrong aggregation, label or matcher changes a result.
"""

import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml
from generated_dashboards import Json, all_panels, dashboards, fill_variables, named_targets, panels
from promtool import evaluate, needs_promtool

from mm2slo_alerts.alert_thresholds import DEFAULT_THRESHOLDS
from mm2slo_alerts.platform_causes import build_cluster_causes
from mm2slo_core.catalogue.prometheus_series import CLUSTER_ALERTS

pytestmark = needs_promtool

Rows = dict[str, float]
FOLDER: Final = Path(__file__).parent / "answers"
BUILTIN: Final = {"__rate_interval": "4m", "__range": "1h", "__interval": "2m"}
FLOW: Final = "us->eu"
FORTH, BACK = (f"flow={a}->{b} source={a} target={b}" for a, b in (("us", "eu"), ("eu", "us")))
OWNERS: Final = {
    "A": f"{FORTH} job=mm2slo instance=1",
    "B": f"{FORTH} job=mm2slo instance=2",
    "C": f"{BACK} job=mm2slo instance=3",
    "D": f"{BACK} job=mm2slo instance=4",
    "1": "job=mm2slo instance=1",
    "2": "job=mm2slo instance=2",
    "9": "job=other instance=9",
    "X": f"{FORTH} job=mm2slo-report instance=8",
    "Y": f"{FORTH} job=mm2slo-report instance=9",
    "Z": f"{BACK} job=mm2slo-report instance=8",
    "R": FORTH,
    "S": BACK,
}
SMALLEST_FIRST: Final = {
    "Retention headroom",
    "Error budget burn-down",
    "Coverage",
}
"""Panels where the smallest values are the worst."""
EXPECTED: Final[dict[str, dict[str, list[Rows] | dict[str, Rows]]]] = yaml.safe_load(
    (FOLDER / "expected.yaml").read_text(encoding="utf-8")
)


def input_series() -> dict[str, str]:
    found: dict[str, str] = {}
    document = yaml.safe_load((FOLDER / "series.yaml").read_text(encoding="utf-8"))
    for kind, values in (("constant", "{}x15"), ("growing", "0+{}x15")):
        for name, rows in document[kind].items():
            for key, value in rows.items():
                owner, _, labels = str(key).partition(" ")
                found[f"{name}{named(f'{OWNERS[owner]} {labels}')}"] = values.format(value)
    return found


def named(labels: str) -> str:
    pairs = (each.partition("=") for each in shlex.split(labels))
    return "{" + ",".join(f'{name}="{value}"' for name, _, value in pairs) + "}"


def fill(dashboard: Json, expression: str, **selected: str) -> str:
    """*expression* with All selected where possible, else the flow."""
    return fill_variables(dashboard, expression, FLOW, BUILTIN, selected)


def pairs(uid: str) -> Iterator[tuple[Json, Rows]]:
    """Each query of a dashboard with its expected result."""
    for panel in panels(dashboards()[uid]):
        targets, expected = named_targets(panel), EXPECTED[uid][panel["title"]]
        if isinstance(expected, list):
            yield from zip(targets.values(), expected, strict=True)
        else:
            assert list(targets) == list(expected), panel["title"]
            yield from ((targets[name], rows) for name, rows in expected.items())


def check(folder: Path, expected: Iterable[tuple[str, Rows]]) -> None:
    """Evaluate each distinct query once; equal queries must expect equal results."""
    at_ten: dict[tuple[str, str], Rows] = {}
    for text, rows in expected:
        wanted = {named(labels): value for labels, value in rows.items()}
        assert at_ten.setdefault((text, "10m"), wanted) == wanted, text
    evaluate(folder, [], input_series(), at_ten, interval="1m")


def test_every_panel_has_expected_results() -> None:
    assert {uid: list(each) for uid, each in EXPECTED.items()} == {
        uid: [panel["title"] for panel in panels(found)] for uid, found in dashboards().items()
    }


@pytest.mark.parametrize("uid", EXPECTED)
def test_queries_return_expected_results(tmp_path: Path, uid: str) -> None:
    board = dashboards()[uid]
    check(tmp_path, ((fill(board, target["expr"]), rows) for target, rows in pairs(uid)))


@pytest.mark.parametrize("uid", EXPECTED)
def test_legend_labels_are_in_results(uid: str) -> None:
    for target, rows in pairs(uid):
        labels = set(re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat") or ""))
        for row in rows:
            # Only some SLIs have a tier.
            assert labels - {"tier"} <= {each.partition("=")[0] for each in row.split()}, target


def test_limited_panels_show_worst_values() -> None:
    limited = {
        (panel["title"], found["order"], int(found["count"]))
        for _, panel in all_panels()
        for target in panel["targets"]
        if (found := re.search(r"(?P<order>top|bottom)k\((?P<count>\d+), ", target["expr"]))
    }
    assert {title for title, order, _ in limited if order == "bottom"} == SMALLEST_FIRST
    assert {count for _, _, count in limited} == {10}


def test_selected_sli_is_the_only_one_on_slo_dashboard(tmp_path: Path) -> None:
    board = dashboards()["mm2slo-slo"]
    queries = [
        (
            fill(board, target["expr"], sli="latency"),
            {key: value for key, value in rows.items() if "sli=latency" in key},
        )
        for target, rows in pairs("mm2slo-slo")
        if any("sli=" in key for key in rows)
    ]
    check(tmp_path, queries)


def test_bad_events_of_ten_minutes_are_in_the_points_of_four_weeks(tmp_path: Path) -> None:
    board = dashboards()["mm2slo-slo"]
    [panel] = [each for each in panels(board) if each["title"] == "Bad events"]
    text = panel["targets"][0]["expr"].replace("$__interval", "2h")
    name = named(f"{FORTH} sli=availability tier=all")
    # Two steps are bad, and recorded an hour before the next point.
    steps = {f"flow:mm2_sli_bad:step5m{name}": "0x10 150 150 0x30"}
    found = {named("flow=us->eu sli=availability"): 300.0}
    evaluate(tmp_path, [], steps, {(fill(board, text), "119m"): found}, interval="5m")


def test_fleet_counts_alerts_of_selected_flow_its_clusters_and_monitoring(tmp_path: Path) -> None:
    board = dashboards()["mm2slo-overview"]
    [panel] = [each for each in panels(board) if each["title"] == "Firing alerts by severity"]
    text = panel["targets"][0]["expr"]
    rows = {"severity=page": 3.0, "severity=ticket": 2.0}
    check(tmp_path, [(fill(board, text, flow=FLOW), rows)])


def test_alerts_about_clusters_are_those_of_the_rules() -> None:
    rules = build_cluster_causes(DEFAULT_THRESHOLDS)
    assert tuple(rule.name for rule in rules) == CLUSTER_ALERTS


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        (
            "Alerts",
            {
                "alertname=MM2ExporterDown severity=page": 300_000.0,
                "alertname=MM2ClusterUnreachable severity=page": 240_000.0,
                "alertname=MM2FlowStopped severity=page": 60_000.0,
                "alertname=MM2TopicMissing severity=ticket": 120_000.0,
                "alertname=MM2ErrorBudgetExhausted severity=ticket": 180_000.0,
            },
        ),
        ("Planned maintenance", {"flow=us->eu": 1.0}),
        ("Audits", {"flow=us->eu": 300_000.0}),
    ],
)
def test_annotations_are_of_selected_flow_and_its_clusters(
    tmp_path: Path, name: str, rows: Rows
) -> None:
    board = dashboards()["mm2slo-flow"]
    [annotation] = [each for each in board["annotations"]["list"] if each["name"] == name]
    check(tmp_path, [(fill(board, annotation["expr"]), rows)])
