"""Panels with rule evaluation and notification delivery."""

from __future__ import annotations

from typing import Final

from mm2slo_core.catalogue.external_metrics import (
    ITERATIONS_MISSED,
    NOTIFICATIONS_FAILED,
    RULE_FAILURES,
)
from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_core.promql import matching, over
from mm2slo_dashboards.dashboard_model import Kind, Panel, Query, Unit
from mm2slo_dashboards.panel_queries import RANGE_VARIABLE, sum_by
from mm2slo_dashboards.state_mappings import BAD_FROM_ONE

_MM2SLO_RULES: Final = matching("rule_group", ".*mm2slo.*")
_NO_PROMETHEUS: Final = "Prometheus does not scrape itself."
_NO_ALERTMANAGER: Final = "Prometheus does not scrape Alertmanager."


def panels() -> tuple[Panel, ...]:
    """Evaluation of mm2slo's rules, and notifications."""
    return (
        Panel(
            title="Rule evaluation failures",
            description="Do rules fail? Failed evaluations of mm2slo's rules, and evaluations "
            "missed because the previous one was still running, in the selected time range. "
            "Good is 0.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=_NO_PROMETHEUS,
            queries=tuple(
                Query(
                    vector=sum_by(over("increase", metric, RANGE_VARIABLE, _MM2SLO_RULES)),
                    legend=legend,
                    instant=True,
                )
                for metric, legend in ((RULE_FAILURES, "failed"), (ITERATIONS_MISSED, "missed"))
            ),
            thresholds=BAD_FROM_ONE,
            decimals=0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2RuleEvaluationFailing",
        ),
        Panel(
            title="Failed notifications",
            description="Do notifications reach Slack? Notifications that Alertmanager gave up "
            "sending, by integration, in the selected time range. Each is lost. Good is 0.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=_NO_ALERTMANAGER,
            queries=(
                Query(
                    vector=sum_by(
                        over(
                            "increase",
                            NOTIFICATIONS_FAILED,
                            RANGE_VARIABLE,
                            matching("integration", "slack|webhook"),
                        ),
                        "integration",
                    ),
                    legend="{{integration}}",
                    instant=True,
                ),
            ),
            thresholds=BAD_FROM_ONE,
            decimals=0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2SlackDeliveryFailing",
        ),
    )
