"""In health each panel has data or names its fault; with MirrorMaker 2 stopped, those of it fill.

Every query is asked of a real Prometheus that scrapes the real exporter: those of panels, of
annotations and of what can be chosen.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from shown import FLOW, NAMED, running, shows

from mm2slo_lab.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from shown import Shown

    from mm2slo_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

GROUP = "order-service"
FLEET, FLOW_BOARD, AUDIT, SLO = "mm2slo-overview", "mm2slo-flow", "mm2slo-audit", "mm2slo-slo"
ALERTS = "Which alerts fire, and who says what to do?"


def healthy(seen: Shown, topic: str) -> None:
    wait_for(lambda: seen.empty() == NAMED.keys(), "all panels but those of faults", 180, 2)
    assert seen.values(FLEET, "How many flows run?", "state") == {
        ("running",): 1,
        ("idle",): 0,
        ("unknown",): 0,
        ("stopped",): 0,
    }
    assert seen.value(FLOW_BOARD, "In which state is it?") == 0
    assert seen.value(AUDIT, "How many records are at fault?") == 3
    assert seen.value(AUDIT, "Which share of the records is that?") == 0.003
    assert seen.value(SLO, "How many budgets are used up?") == 0
    assert seen.choices(FLOW_BOARD, "flow") == {FLOW}
    assert topic in seen.choices(FLOW_BOARD, "topic")
    assert GROUP in seen.choices("mm2slo-failover", "group")
    assert {"availability", "data_freshness"} <= seen.choices(SLO, "sli")
    marks = seen.marks(FLOW_BOARD)
    assert (marks["Alerts"], marks["Planned maintenance"]) == ([], [])
    [(_, ended)] = marks["Audits"][0]["values"][-1:]
    # Milliseconds since the epoch, as Grafana takes the times of marks.
    assert time.time() * 1000 - 300_000 < float(ended) < time.time() * 1000


@shows("a stopped MirrorMaker 2")
def test_panels_show_health_and_a_stop(
    broken: Lab, tmp_path: Path, fresh_topic: str, filled: frozenset[tuple[str, str]]
) -> None:
    with running(broken, tmp_path, fresh_topic, GROUP) as (watched, seen):
        healthy(seen, fresh_topic)
        stopped_at = time.time()
        broken.mm2.stop()
        watched.told(1, "the page")
        wait_for(lambda: not filled & seen.empty(), "the panels of a stop", 60, 1)
        assert filled == {
            (FLEET, "Does any alert fire?"),
            (FLEET, ALERTS),
            (FLOW_BOARD, "Which topics stand still?"),
        }
        # What else pages is inhibited, and fires all the same.
        assert (seen.value(FLEET, "Does any alert fire?", severity="page") or 0) >= 1
        names = seen.values(FLEET, ALERTS, "alertname", "flow", "severity")
        assert names["MM2FlowStopped", FLOW, "page"] == 1
        still = seen.values(FLOW_BOARD, "Which topics stand still?", "topic")
        assert still[(fresh_topic,)] == 2
        assert seen.value(FLEET, "How many flows run?", state="stopped") == 1
        assert seen.value(FLOW_BOARD, "In which state is it?") == 3
        behind = seen.value(FLOW_BOARD, "How far behind is it?")
        assert behind is not None
        assert 4 < behind < time.time() - stopped_at + 5
        assert (seen.value(FLOW_BOARD, "How fast does it burn?") or 0) > 1
        wait_for(lambda: bool(seen.marks(FLOW_BOARD)["Alerts"]), "the alert's mark", 30, 1)
