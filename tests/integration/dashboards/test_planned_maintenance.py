"""Planned maintenance: what it takes out of the budgets, and its marks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from paging import SCALE
from shown import FLOW, running, shows

from mm2slo_alerts.maintenance import groups, text
from mm2slo_core.objectives.exclusion import Exclusion
from mm2slo_core.topology import Flow
from mm2slo_lab.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from mm2slo_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

BOARD, TAKEN = "mm2slo-slo", "What does planned maintenance take out?"
STEP = 300 * SCALE.factor
CANARIES = STEP / 0.2
"""Of a step: five a second."""


@shows("planned maintenance")
def test_events_of_planned_maintenance_are_told_apart(
    lab: Lab, tmp_path: Path, fresh_topic: str, filled: frozenset[tuple[str, str]]
) -> None:
    with running(lab, tmp_path, fresh_topic, f"{fresh_topic}-group") as (watched, seen):
        assert {(BOARD, TAKEN)} == filled <= seen.empty()
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
        rules = groups([planned], [Flow("us", "eu"), Flow("eu", "us")], scale=SCALE)
        path = server.folder / "rules" / "mm2slo-maintenance.rules.yml"
        path.write_text(text(rules), encoding="utf-8")
        server.reload()

        def taken(sli: str) -> float:
            return seen.values(BOARD, TAKEN, "flow", sli=sli).get((FLOW,), 0.0)

        about = pytest.approx(CANARIES, rel=0.15)
        wait_for(lambda: taken("availability") == about, "a step of canaries", 120, 1)
        wait_for(lambda: not filled & seen.empty(), "the panel", 30, 1)
        # Of two partitions each second is judged.
        assert taken("data_freshness") == pytest.approx(2 * STEP, rel=0.15)
        everything = seen.values(BOARD, TAKEN, "flow")
        assert everything.keys() == {(FLOW,)}
        assert everything[(FLOW,)] > taken("availability") + taken("data_freshness")
        [mark] = seen.marks("mm2slo-flow")["Planned maintenance"]
        assert mark["metric"] == {"flow": FLOW}
