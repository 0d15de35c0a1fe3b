"""All panels of a healthy flow, and of a flow whose MirrorMaker 2 is stopped.

Every query of panels, annotations and variables runs against a real Prometheus and exporter.
"""

import time
from pathlib import Path

import pytest
from lab_dashboards import FLOW, PANEL_FAULTS, LabDashboards, covers_fault, monitored_lab

from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("fault-lab")]

GROUP = "order-service"
FLEET, FLOW_BOARD, AUDIT, SLO = "mm2slo-overview", "mm2slo-flow", "mm2slo-audit", "mm2slo-slo"
ALERTS = "Firing alerts"
OF_A_FLOW = 3


def healthy(seen: LabDashboards, topic: str) -> None:
    wait_for(
        lambda: seen.empty_panels() == PANEL_FAULTS.keys(),
        "data in healthy panels",
        poll=2,
    )
    assert seen.values(FLEET, "Flows by state", "state") == {
        ("running",): 1,
        ("idle",): 0,
        ("unknown",): 0,
        ("stopped",): 0,
    }
    assert seen.values(FLEET, "Firing alerts by severity", "severity") == {
        ("page",): 0,
        ("ticket",): 0,
    }
    assert seen.value(FLOW_BOARD, "Flow state") == 0
    assert seen.value(AUDIT, "Faulty records") == 3
    assert seen.value(SLO, "Exhausted error budgets") == 0
    assert seen.choices(FLOW_BOARD, "flow") == {FLOW}
    assert topic in seen.choices(FLOW_BOARD, "topic")
    assert GROUP in seen.choices("mm2slo-failover", "group")
    assert {"availability", "data_freshness"} <= seen.choices(SLO, "sli")
    annotations = seen.annotations(FLOW_BOARD)
    assert (annotations["Alerts"], annotations["Planned maintenance"]) == ([], [])
    [(_, ended)] = annotations["Audits"][0]["values"][-1:]
    # Milliseconds since the epoch, as Grafana expects.
    assert time.time() * 1000 - 300_000 < float(ended) < time.time() * 1000


@covers_fault("a stopped MirrorMaker 2")
def test_panels_show_healthy_and_stopped_flow(
    faulty_lab: Lab, tmp_path: Path, fresh_topic: str, fault_panels: frozenset[tuple[str, str]]
) -> None:
    with monitored_lab(faulty_lab, tmp_path, fresh_topic, GROUP) as (watched, seen):
        healthy(seen, fresh_topic)
        stopped_at = time.time()
        faulty_lab.mm2.stop()
        watched.wait_message(1, "the page")
        wait_for(lambda: not fault_panels & seen.empty_panels(), "the panels of a stop", poll=1)
        assert fault_panels == {(FLEET, ALERTS)}
        # Inhibited alerts fire, too.
        assert (seen.value(FLEET, "Firing alerts by severity", severity="page") or 0) >= 1
        names = seen.values(FLEET, ALERTS, "alertname", "flow", "severity")
        assert names["MM2FlowStopped", FLOW, "page"] == OF_A_FLOW
        stalled = seen.value(FLOW_BOARD, "Record faults", name="partitions stalled", flow=FLOW)
        # Both partitions of the topic, and the one of heartbeats once it is stalled.
        assert stalled in {2, 3}
        assert seen.value(FLEET, "Flows by state", state="stopped") == 1
        assert seen.value(FLOW_BOARD, "Flow state") == 3
        behind = seen.value(FLOW_BOARD, "Lag and time to catch up", name="lag")
        assert behind is not None
        assert 4 < behind < time.time() - stopped_at + 5
        burning = seen.values(FLOW_BOARD, "Objectives", "sli", name="Burn rate (1h)")
        assert max(burning.values()) > 1
        wait_for(lambda: bool(seen.annotations(FLOW_BOARD)["Alerts"]), "the alert's mark", poll=1)
        starts = {
            float(value)
            for series in seen.annotations(FLOW_BOARD)["Alerts"]
            for _, value in series["values"]
        }
        assert all(stopped_at * 1000 <= each <= time.time() * 1000 for each in starts)
