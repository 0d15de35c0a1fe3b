"""Planned maintenance: excluded events and their annotation."""

import time
from pathlib import Path

import pytest
from alerting_lab import SCALE
from lab_dashboards import FLOW, monitored_lab

from mm2slo_alerts.recording_rules import maintenance_groups, maintenance_text
from mm2slo_core.objectives.exclusion import Exclusion
from mm2slo_core.topology import Flow
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("fault-lab")]

BOARD, EVENTS = "mm2slo-slo", "Events by outcome"
STEP = 300 * SCALE.factor
CANARIES = STEP / 0.2
"""Canaries of a step, at five a second."""


def test_panel_shows_events_excluded_by_maintenance(
    lab: Lab, tmp_path: Path, fresh_topic: str
) -> None:
    with monitored_lab(lab, tmp_path, fresh_topic, f"{fresh_topic}-group") as (watched, seen):
        assert seen.value(BOARD, EVENTS, name="excluded") is None
        server = watched.monitoring.prometheus
        now = int(time.time() * 1000)
        planned = Exclusion(
            id="x1",
            flows=(FLOW,),
            start=now,
            end=now + 3_600_000,
            reason="a test",
            who="ana",
            added_at=now,
        )
        rules = maintenance_groups([planned], [Flow("us", "eu"), Flow("eu", "us")], scale=SCALE)
        path = server.folder / "rules" / "mm2slo-maintenance.rules.yml"
        path.write_text(maintenance_text(rules), encoding="utf-8")
        server.reload()

        def excluded(sli: str) -> float:
            return seen.values(BOARD, EVENTS, name="excluded", sli=sli).get((), 0.0)

        about = pytest.approx(CANARIES, rel=0.15)
        wait_for(lambda: excluded("availability") == about, "a step of canaries", poll=1)
        # Two partitions, one event a second each.
        assert excluded("data_freshness") == pytest.approx(2 * STEP, rel=0.15)
        total = seen.value(BOARD, EVENTS, name="excluded") or 0
        assert total > excluded("availability") + excluded("data_freshness")
        [annotation] = seen.annotations("mm2slo-flow")["Planned maintenance"]
        assert annotation["metric"] == {"flow": FLOW}
