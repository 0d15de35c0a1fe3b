"""Required parts of panels, and thresholds from the objectives."""

from itertools import pairwise

import pytest
from generated_dashboards import ROOT

from mm2slo_core.catalogue.flow_metrics import FLOW_LAG_SECONDS
from mm2slo_core.catalogue.promql import select
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.link_targets import DashboardUid
from mm2slo_dashboards.dashboard_files import build_all, build_dashboards
from mm2slo_dashboards.dashboard_model import (
    Colour,
    Dashboard,
    Kind,
    Panel,
    PanelThresholds,
    PanelUnit,
    Row,
)
from mm2slo_dashboards.panel_definitions import collect_limits

ALL = [(each, panel) for each in build_dashboards() for panel in each.panels]
CONFIG = """\
clusters:
  us: {bootstrap_servers: "us:9092"}
  eu: {bootstrap_servers: "eu:9092"}
flows:
  - {flow: us->eu, freshness: [{threshold: 20s}], canary: {latency_tiers: [5s, 30s], deadline: 40s}}
  - {flow: eu->us, readiness: {max_redelivery_records: 77}}
slo: {window: 14d}
"""


def panel(**changes: object) -> Panel:
    given = {
        "title": "Lag",
        "description": "How far behind is the flow? In seconds.",
        "kind": Kind.STAT,
        "unit": PanelUnit.SECONDS,
        "no_data": "No exporter publishes it.",
        "queries": {"": select(FLOW_LAG_SECONDS)},
        "next_dashboard": DashboardUid.FLOW,
    }
    return Panel(**{**given, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"title": "How far behind?"}, "a question as its title"),
        ({"description": "Seconds."}, "without the question it answers"),
        ({"description": ""}, "lacks its description"),
        ({"no_data": ""}, "what no data means"),
        ({"queries": {}}, "neither queries nor columns"),
        ({"next_dashboard": None}, "links to no dashboard or runbook"),
        ({"width": 25}, "25 columns wide"),
    ],
)
def test_panel_without_required_part_raises_value_error(
    changes: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        panel(**changes)


def test_build_dashboards_returns_six_dashboards_with_stable_uids() -> None:
    assert [(each.uid.value, each.title) for each in build_dashboards()] == [
        ("mm2slo-overview", "MirrorMaker 2 / Fleet"),
        ("mm2slo-flow", "MirrorMaker 2 / Flow"),
        ("mm2slo-failover", "MirrorMaker 2 / Failover readiness"),
        ("mm2slo-audit", "MirrorMaker 2 / Audit"),
        ("mm2slo-slo", "MirrorMaker 2 / SLO"),
        ("mm2slo-pipeline", "MirrorMaker 2 / Exporter and pipeline health"),
    ]
    assert all(len(uid.value) <= 40 for uid in DashboardUid)


def test_panel_titles_are_unique_within_dashboard() -> None:
    for dashboard in build_dashboards():
        titles = [each.title for each in dashboard.panels]
        assert len(titles) == len(set(titles)), dashboard.title


@pytest.mark.parametrize("alert", sorted({each.alert for _, each in ALL if each.alert}))
def test_panel_runbook_exists(alert: str) -> None:
    assert (ROOT / "docs" / "runbooks" / f"{alert}.md").is_file()


def test_panel_does_not_link_to_its_own_dashboard() -> None:
    assert [(d.title, p.title) for d, p in ALL if p.next_dashboard is d.uid] == []


def test_limits_follow_configured_objectives() -> None:
    found = collect_limits(load_config(CONFIG))
    assert found.lag == 20.0
    assert found.latencies == (5.0, 30.0)
    assert found.redelivery == 77
    # 2 % of 14 days in an hour.
    assert found.page_burn_rate == pytest.approx(0.02 * 14 * 24)
    assert collect_limits().page_burn_rate == pytest.approx(0.02 * 28 * 24)


def thresholds_of(
    uid: DashboardUid, title: str, config: str | None = CONFIG
) -> PanelThresholds | None:
    found = build_dashboards(None if config is None else load_config(config))
    [panel] = [
        each
        for dashboard in found
        if dashboard.uid is uid
        for each in dashboard.panels
        if each.title == title
    ]
    return panel.thresholds


def test_panel_thresholds_follow_objectives() -> None:
    uid = DashboardUid.FLOW
    lag = "Lag and time to catch up"
    assert thresholds_of(uid, lag) == PanelThresholds(Colour.GOOD, ((20.0, Colour.BAD),))
    assert thresholds_of(uid, lag, None) == PanelThresholds(Colour.GOOD, ((60.0, Colour.BAD),))


def test_thresholds_with_descending_bounds_raise_value_error() -> None:
    with pytest.raises(ValueError, match="ascending"):
        PanelThresholds(Colour.GOOD, ((2.0, Colour.WARNING), (1.0, Colour.BAD)))


def test_dashboard_with_thirteen_panels_raises_value_error() -> None:
    with pytest.raises(ValueError, match="'x' has 13 panels: expected 12"):
        Dashboard(
            uid=DashboardUid.FLEET,
            title="x",
            description="x",
            variables=(),
            rows=(Row("x?", (panel(),) * 13),),
        )


def test_queries_use_configured_exporter_job() -> None:
    found = build_all(collect_limits(), 'mirroring/"exporter"')
    texts = [each.text for b in found for p in b.panels for each in p.vectors]
    assert any('up{job="mirroring/\\"exporter\\""}' in text for text in texts)
    assert not any('job="mm2slo"' in text for text in texts)


@pytest.mark.parametrize("dashboard", build_dashboards(), ids=lambda each: str(each.uid))
def test_rows_end_with_cause(dashboard: Dashboard) -> None:
    titles = [row.title for row in dashboard.rows]
    causes = [n for n, title in enumerate(titles) if "cause" in title]
    assert all(n == len(titles) - 1 for n in causes)
    assert all(earlier != later for earlier, later in pairwise(titles))
