"""Flow: what users feel, how far behind it is, whether data can be lost, and what causes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.boards import Board as Identity
from mm2slo_dashboards.boards import flow_causes, flow_lag, flow_state, flow_users
from mm2slo_dashboards.boards.common import FLOW_MARKS
from mm2slo_dashboards.model import Board, Row
from mm2slo_dashboards.selecting import ONE_FLOW, TOPICS

if TYPE_CHECKING:
    from mm2slo_dashboards.limits import Limits


def board(limits: Limits) -> Board:
    """One flow, from symptom to cause."""
    return Board(
        identity=Identity.FLOW,
        title="MirrorMaker 2 / Flow",
        description="One flow, from what users feel to what causes it.",
        variables=(ONE_FLOW, TOPICS),
        rows=(
            Row("Is it fine?", flow_state.panels(limits)),
            Row("What do users feel?", flow_users.panels(limits)),
            Row("How far behind is it, and where?", flow_lag.behind(limits)),
            Row("Could data be lost?", flow_lag.loss()),
            Row("What causes it?", flow_causes.panels()),
        ),
        marks=FLOW_MARKS,
    )
