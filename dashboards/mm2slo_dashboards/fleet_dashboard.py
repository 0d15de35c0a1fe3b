"""Fleet dashboard: whether anything is wrong, where, since when, and what to do."""

from mm2slo_core.catalogue.flow_metrics import (
    FAILOVER_READY,
    FLOW_LAG_RECORDS,
    FLOW_LAG_SECONDS,
)
from mm2slo_core.catalogue.prometheus_series import BUDGET_REMAINING, BURN, WATCHDOG
from mm2slo_core.catalogue.promql import Vector, either
from mm2slo_core.link_targets import DashboardUid
from mm2slo_dashboards.dashboard_model import (
    ALERT_SCOPES,
    BAD_FROM_ONE,
    FLOW_STATES,
    WARN_FROM_ONE,
    Colour,
    Dashboard,
    Kind,
    Panel,
    PanelUnit,
    Row,
    TableColumn,
    bad_from,
    state_colours,
)
from mm2slo_dashboards.panel_definitions import (
    ALERT_ANNOTATION,
    EXCLUSION_ANNOTATION,
    FLEET_DATA_POINTS,
    FLOW_STATE_CODE,
    NO_BUDGET_DATA,
    NO_EXPORTER_DATA,
    OVERSPENT,
    ObjectiveLimits,
    budget_column,
    budget_thresholds,
    burn_column,
    burn_rate_thresholds,
)
from mm2slo_dashboards.panel_queries import (
    FLOWS_VARIABLE,
    alerts_by_scope,
    count_states,
    flow_alerts,
    max_by,
    min_by,
    readable_sli,
    recorded_series,
    severity_alerts,
    sum_by,
    topk,
)


def build(limits: ObjectiveLimits) -> Dashboard:
    """All flows, worst first."""
    return Dashboard(
        uid=DashboardUid.FLEET,
        title="MirrorMaker 2 / Fleet",
        description="All flows: is anything wrong, where, since when, and what to do?",
        variables=(FLOWS_VARIABLE,),
        rows=(
            Row("Is anything wrong?", _summary(limits)),
            Row("What should I do, and which flows are affected?", (_alerts(), _flows(limits))),
            Row("Since when?", _history(limits)),
        ),
        annotations=(ALERT_ANNOTATION, EXCLUSION_ANNOTATION),
        max_data_points=FLEET_DATA_POINTS,
    )


def _summary(limits: ObjectiveLimits) -> tuple[Panel, ...]:
    states = count_states(FLOW_STATE_CODE, FLOW_STATES)
    return (
        Panel(
            title="Flows by state",
            description="How many flows are running? Stopped: records or canaries are pending, "
            "both clusters respond, and none arrive. Unknown: the state cannot be determined. "
            "Both should be 0.",
            kind=Kind.STAT,
            unit=PanelUnit.COUNT,
            no_data=NO_EXPORTER_DATA,
            queries={"{{state}}": states},
            colours=state_colours(FLOW_STATES),
            next_dashboard=DashboardUid.FLOW,
            alert="MM2FlowStopped",
            height=5,
        ),
        Panel(
            title="Firing alerts by severity",
            description="Is any alert firing? Alerts of mm2slo about the selected flows, their "
            "clusters and monitoring itself. Pages notify on-call immediately, tickets are "
            "handled within working hours. Good is 0 of each.",
            kind=Kind.STAT,
            unit=PanelUnit.COUNT,
            no_data=f"Rules are not evaluated: {WATCHDOG}, which always fires, is missing.",
            queries={
                "{{severity}}": severity_alerts(limits.severities.page, limits.severities.ticket)
            },
            colours={
                limits.severities.page: Colour.BAD,
                limits.severities.ticket: Colour.WARNING,
            },
            next_dashboard=DashboardUid.FLOW,
            alert=WATCHDOG,
            width=4,
            height=5,
        ),
        Panel(
            title="Highest lag",
            description="How far behind is the worst flow? Age of its oldest unreplicated "
            f"record. The strictest freshness threshold is {limits.lag:g} s.",
            kind=Kind.STAT,
            unit=PanelUnit.SECONDS,
            no_data=NO_EXPORTER_DATA,
            queries={"": max_by(FLOW_LAG_SECONDS)},
            thresholds=bad_from(limits.lag),
            next_dashboard=DashboardUid.FLOW,
            alert="MM2PartitionStalled",
            width=4,
            height=5,
        ),
        Panel(
            title="Lowest remaining error budget",
            description="Which error budget is closest to exhausted? The smallest remaining "
            "share over all flows and SLIs.",
            kind=Kind.STAT,
            unit=PanelUnit.SHARE,
            no_data=NO_BUDGET_DATA,
            queries={"": min_by(recorded_series(BUDGET_REMAINING))},
            thresholds=budget_thresholds(limits),
            below=OVERSPENT,
            decimals=1,
            next_dashboard=DashboardUid.SLO,
            alert="MM2ErrorBudgetExhausted",
            width=4,
            height=5,
        ),
    )


def _alerts() -> Panel:
    scopes = (
        Vector(f"{state.code} * {alerts}", alerts.labels)
        for state, alerts in zip(ALERT_SCOPES, alerts_by_scope(), strict=True)
    )
    return Panel(
        title="Firing alerts",
        description="Which alerts are firing, and what should I do? Alerts of mm2slo about the "
        "selected flows, their clusters and monitoring itself, causes before consequences. An "
        "alert's name links to its runbook, where the address of the runbooks is configured. Good "
        "is an empty table.",
        kind=Kind.TABLE,
        unit=PanelUnit.COUNT,
        no_data="No alert is firing; or, if Firing alerts by severity is empty too, rules are not "
        "evaluated.",
        keys={
            "severity": "Severity",
            "alertname": "Alert",
            "flow": "Flow",
            "cluster": "Cluster",
            "sli": "SLI",
            "topic": "Topic",
            "group": "Group",
        },
        columns=(TableColumn("Scope", readable_sli(either(*scopes)), states=ALERT_SCOPES),),
        sort=("Scope", "Severity"),
        next_dashboard=DashboardUid.FLOW,
        fills_on="a stopped MirrorMaker 2",
        width=11,
        height=11,
    )


def _flows(limits: ObjectiveLimits) -> Panel:
    ready = min_by(FAILOVER_READY, "flow", "group")
    blocked = sum_by(Vector(f"1 - {ready}", ready.labels), "flow")
    return Panel(
        title="Flow status",
        description="Which flows need attention first? One row per flow, sorted by state and "
        "remaining budget; a flow's name links to its dashboard. A dash means no data.",
        kind=Kind.TABLE,
        unit=PanelUnit.COUNT,
        no_data=NO_EXPORTER_DATA,
        keys={"flow": "Flow"},
        columns=(
            TableColumn("State", FLOW_STATE_CODE, states=FLOW_STATES),
            TableColumn("Alerts", flow_alerts(), thresholds=BAD_FROM_ONE),
            TableColumn(
                "Lag",
                max_by(FLOW_LAG_SECONDS, "flow"),
                PanelUnit.SECONDS,
                thresholds=bad_from(limits.lag),
            ),
            TableColumn("Lag in records", max_by(FLOW_LAG_RECORDS, "flow")),
            TableColumn("Blocked groups", blocked, thresholds=WARN_FROM_ONE),
            burn_column(limits, "flow"),
            budget_column(limits, "flow"),
        ),
        sort=("-State", "Remaining budget"),
        next_dashboard=DashboardUid.FLOW,
        width=13,
        height=11,
    )


def _history(limits: ObjectiveLimits) -> tuple[Panel, ...]:
    return (
        Panel(
            title="Flow state history",
            description="When was each flow running? Gaps: nothing was scraped.",
            kind=Kind.TIMELINE,
            unit=PanelUnit.COUNT,
            no_data=NO_EXPORTER_DATA,
            queries={"{{flow}}": FLOW_STATE_CODE},
            states=FLOW_STATES,
            next_dashboard=DashboardUid.FLOW,
            width=24,
            height=10,
        ),
        Panel(
            title="Highest lag by flow",
            description="Which flows are furthest behind? Age of the oldest unreplicated "
            f"record, the ten highest. The strictest freshness threshold is {limits.lag:g} s.",
            kind=Kind.SERIES,
            unit=PanelUnit.SECONDS,
            no_data=NO_EXPORTER_DATA,
            queries={"{{flow}}": topk(10, max_by(FLOW_LAG_SECONDS, "flow"))},
            thresholds=bad_from(limits.lag),
            colours=limits.flow_colours,
            next_dashboard=DashboardUid.FLOW,
            alert="MM2PartitionStalled",
        ),
        Panel(
            title="Highest burn rates",
            description="Which flows spend their budget fastest? Burn rate over one hour, the "
            "ten highest. Above 1 the budget is exhausted before the window ends; at "
            f"{limits.page_burn_rate:.3g} it pages.",
            kind=Kind.SERIES,
            unit=PanelUnit.FACTOR,
            no_data=NO_BUDGET_DATA,
            queries={"{{flow}}": topk(10, max_by(recorded_series(BURN["1h"]), "flow"))},
            thresholds=burn_rate_thresholds(limits),
            colours=limits.flow_colours,
            next_dashboard=DashboardUid.SLO,
            alert="MM2ErrorBudgetBurn",
        ),
    )
