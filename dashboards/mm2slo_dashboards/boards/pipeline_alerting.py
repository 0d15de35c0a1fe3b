"""Whether rules are evaluated and messages delivered."""

from __future__ import annotations

from typing import Final

from mm2slo_core.boards import Board as Identity
from mm2slo_core.catalogue.external import (
    GROUP_DURATION,
    GROUP_INTERVAL,
    ITERATIONS_MISSED,
    NOTIFICATIONS,
    NOTIFICATIONS_FAILED,
    RULE_FAILURES,
)
from mm2slo_core.promql import Vector, matching, on, over, select
from mm2slo_dashboards.model import Kind, Panel, Query, Unit
from mm2slo_dashboards.selecting import RANGE, RATE, top, total, worst
from mm2slo_dashboards.states import NONE_IS_GOOD

_OURS: Final = matching("rule_group", ".*mm2slo.*")
_NO_PROMETHEUS: Final = "Prometheus does not scrape itself."
_NO_ALERTMANAGER: Final = "Prometheus does not scrape Alertmanager."


def panels() -> tuple[Panel, ...]:
    """Rules of ours, and messages to people."""
    took = worst(select(GROUP_DURATION, _OURS), "rule_group")
    every = worst(select(GROUP_INTERVAL, _OURS), "rule_group")
    share = Vector(f"{took} / {on(('rule_group',), took, every)} {every}", ("rule_group",))
    return (
        Panel(
            title="Do rules fail?",
            description="Evaluations of our rules that failed, and that were left out because the "
            "one before was still under way, in the time that is shown. Good is 0.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=_NO_PROMETHEUS,
            queries=tuple(
                Query(
                    vector=total(over("increase", metric, RANGE, _OURS)), legend=word, instant=True
                )
                for metric, word in ((RULE_FAILURES, "failed"), (ITERATIONS_MISSED, "left out"))
            ),
            steps=NONE_IS_GOOD,
            decimals=0,
            leads=Identity.FLEET,
            alert="MM2RuleEvaluationFailing",
            width=6,
        ),
        Panel(
            title="Do rules keep up?",
            description="Share of its interval that each group of our rules takes. At 100 % "
            "evaluations are left out, and alerts are late.",
            kind=Kind.SERIES,
            unit=Unit.SHARE,
            no_data=_NO_PROMETHEUS,
            queries=(Query(vector=top(10, share), legend="{{rule_group}}"),),
            least=0.0,
            leads=Identity.FLEET,
            alert="MM2RuleEvaluationFailing",
            width=6,
        ),
        Panel(
            title="Do messages reach Slack?",
            description="Messages that Alertmanager gave up sending in the time that is shown, by "
            "receiver's kind. Each of them is lost. Good is 0.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=_NO_ALERTMANAGER,
            queries=(
                Query(
                    vector=total(
                        over(
                            "increase",
                            NOTIFICATIONS_FAILED,
                            RANGE,
                            matching("integration", "slack|webhook"),
                        ),
                        "integration",
                    ),
                    legend="{{integration}}",
                    instant=True,
                ),
            ),
            steps=NONE_IS_GOOD,
            decimals=0,
            leads=Identity.FLEET,
            alert="MM2SlackDeliveryFailing",
            width=6,
        ),
        Panel(
            title="When were messages sent?",
            description="Messages a second that Alertmanager tried to send, by receiver's kind. "
            "The steady watchdog alone keeps it above 0 where it is routed.",
            kind=Kind.SERIES,
            unit=Unit.REQUESTS,
            no_data=_NO_ALERTMANAGER,
            queries=(
                Query(
                    vector=total(
                        over("rate", NOTIFICATIONS, RATE, matching("integration", "slack|webhook")),
                        "integration",
                    ),
                    legend="{{integration}}",
                ),
            ),
            least=0.0,
            leads=Identity.FLEET,
            alert="MM2Watchdog",
            width=6,
        ),
    )
