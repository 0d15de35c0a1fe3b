"""The model: what every panel owes its reader, and where its numbers come from."""

from __future__ import annotations

from itertools import pairwise

import pytest
from dashed import ROOT

from mm2slo_core.catalogue import FLOW_LAG_SECONDS
from mm2slo_core.config import load_config
from mm2slo_core.dashboard_uids import DashboardUid as Identity
from mm2slo_core.objectives.pairs import BURN_PAIRS
from mm2slo_core.promql import select
from mm2slo_dashboards.boards import boards
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.files import described
from mm2slo_dashboards.limits import limits
from mm2slo_dashboards.model import DashboardUid, Kind, Panel, Query, Steps, Unit

ALL = [(board, panel) for board in described() for panel in board.panels]
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
        "title": "How far behind?",
        "description": "Seconds.",
        "kind": Kind.STAT,
        "unit": Unit.SECONDS,
        "no_data": "Nobody publishes it.",
        "queries": (Query(vector=select(FLOW_LAG_SECONDS)),),
        "leads": Identity.FLOW,
    }
    return Panel(**{**given, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"title": "Lag"}, "asks no question"),
        ({"description": ""}, "lacks its description"),
        ({"no_data": ""}, "what no data means"),
        ({"queries": ()}, "neither queries nor columns"),
        ({"leads": None}, "leads nowhere"),
        ({"width": 25}, "25 columns wide"),
    ],
)
def test_a_panel_that_owes_something_is_refused(changes: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        panel(**changes)


def test_there_are_the_six_boards_with_stable_identities() -> None:
    assert [(board.identity.value, board.title) for board in described()] == [
        ("mm2slo-overview", "MirrorMaker 2 / Fleet"),
        ("mm2slo-flow", "MirrorMaker 2 / Flow"),
        ("mm2slo-failover", "MirrorMaker 2 / Failover readiness"),
        ("mm2slo-audit", "MirrorMaker 2 / Audit"),
        ("mm2slo-slo", "MirrorMaker 2 / SLO"),
        ("mm2slo-pipeline", "MirrorMaker 2 / Exporter and pipeline health"),
    ]
    assert all(len(identity.value) <= 40 for identity in Identity)


def test_titles_are_told_apart_within_a_board() -> None:
    for board in described():
        titles = [each.title for each in board.panels]
        assert len(titles) == len(set(titles)), board.title


@pytest.mark.parametrize("alert", sorted({each.alert for _, each in ALL if each.alert}))
def test_a_panels_runbook_exists(alert: str) -> None:
    assert (ROOT / "docs" / "runbooks" / f"{alert}.md").is_file()


def test_a_board_never_leads_to_itself() -> None:
    assert [(b.title, p.title) for b, p in ALL if p.leads is b.identity] == []


def test_numbers_follow_the_configured_objectives() -> None:
    found = limits(load_config(CONFIG))
    assert found.fresh == 20.0
    assert found.latencies == (5.0, 30.0)
    assert found.deadline == 40.0
    assert found.redelivery == 77
    assert found.checkpoint == 120.0
    # 2 % of 14 days in an hour.
    assert found.hot == pytest.approx(0.02 * 14 * 24)
    assert limits().hot == pytest.approx(0.02 * 28 * 24)


def steps(board: Identity, title: str, config: str | None = CONFIG) -> Steps | None:
    found = described(None if config is None else load_config(config))
    [question] = [
        each
        for each_board in found
        if each_board.identity is board
        for each in each_board.panels
        if each.title == title
    ]
    return question.steps


def test_bounds_of_panels_are_those_of_the_objectives() -> None:
    lag = "How far behind is it?"
    assert steps(Identity.FLOW, lag) == Steps(Colour.GOOD, ((20.0, Colour.BAD),))
    assert steps(Identity.FLOW, lag, None) == Steps(Colour.GOOD, ((60.0, Colour.BAD),))
    headroom = Steps(Colour.BAD, ((900.0, Colour.WARNING), (14_400.0, Colour.GOOD)))
    assert steps(Identity.FLOW, "When would retention reach what waits?") == headroom
    for pair in BURN_PAIRS:
        found = steps(Identity.SLO, f"Does the {pair.name} pair burn?")
        assert found == Steps(Colour.GOOD, ((pair.factor(14 * 86_400.0), Colour.BAD),))


def test_bounds_ascend() -> None:
    with pytest.raises(ValueError, match="ascending"):
        Steps(Colour.GOOD, ((2.0, Colour.WARNING), (1.0, Colour.BAD)))


def test_the_exporters_job_is_that_of_the_configuration() -> None:
    found = boards(limits(), 'mirroring/"exporter"')
    texts = [q.vector.text for b in found for p in b.panels for q in p.asked]
    assert any('up{job="mirroring/\\"exporter\\""}' in text for text in texts)
    assert not any('job="mm2slo"' in text for text in texts)


@pytest.mark.parametrize("board", described(), ids=lambda board: str(board.identity))
def test_symptoms_come_before_causes(board: DashboardUid) -> None:
    titles = [row.title for row in board.rows]
    causes = [n for n, title in enumerate(titles) if "cause" in title]
    assert all(n == len(titles) - 1 for n in causes)
    assert all(earlier != later for earlier, later in pairwise(titles))
