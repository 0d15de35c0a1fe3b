"""Panels with rule evaluation and notification delivery."""

from __future__ import annotations

from typing import Final

from mm2slo_core.catalogue.external_metrics import (
    GROUP_DURATION,
    GROUP_INTERVAL,
    ITERATIONS_MISSED,
    NOTIFICATIONS,
    NOTIFICATIONS_FAILED,
    RULE_FAILURES,
)
from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_core.promql import Vector, matching, on, over, select
from mm2slo_dashboards.dashboard_model import Kind, Panel, Query, Unit
from mm2slo_dashboards.panel_queries import RANGE_VARIABLE, RATE_VARIABLE, max_by, sum_by, topk
from mm2slo_dashboards.state_mappings import BAD_FROM_ONE

_MM2SLO_RULES: Final = matching("rule_group", ".*mm2slo.*")
_NO_PROMETHEUS: Final = "Prometheus does not scrape itself."
_NO_ALERTMANAGER: Final = "Prometheus does not scrape Alertmanager."


def panels() -> tuple[Panel, ...]:
    """Evaluation of mm2slo's rules, and notifications."""
    duration = max_by(select(GROUP_DURATION, _MM2SLO_RULES), "rule_group")
    interval = max_by(select(GROUP_INTERVAL, _MM2SLO_RULES), "rule_group")
    share = Vector(
        f"{duration} / {on(('rule_group',), duration, interval)} {interval}", ("rule_group",)
    )
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
            width=6,
        ),
        Panel(
            title="Rule group duration by interval",
            description="Do rules keep up? Share of its interval that each of mm2slo's rule "
            "groups takes. At 100 % evaluations are missed and alerts are late.",
            kind=Kind.SERIES,
            unit=Unit.SHARE,
            no_data=_NO_PROMETHEUS,
            queries=(Query(vector=topk(10, share), legend="{{rule_group}}"),),
            minimum=0.0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2RuleEvaluationFailing",
            width=6,
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
            width=6,
        ),
        Panel(
            title="Notifications sent",
            description="When were notifications sent? Notifications per second that Alertmanager "
            "tried to send, by integration. Where the watchdog is routed, it alone keeps this "
            "above 0.",
            kind=Kind.SERIES,
            unit=Unit.REQUESTS,
            no_data=_NO_ALERTMANAGER,
            queries=(
                Query(
                    vector=sum_by(
                        over(
                            "rate",
                            NOTIFICATIONS,
                            RATE_VARIABLE,
                            matching("integration", "slack|webhook"),
                        ),
                        "integration",
                    ),
                    legend="{{integration}}",
                ),
            ),
            minimum=0.0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2Watchdog",
            width=6,
        ),
    )
