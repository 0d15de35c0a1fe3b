"""Limits, thresholds, texts, columns and annotations that several dashboards share.

Limits come from the objectives of the configuration. A dashboard shows any flow, so where flows
differ it uses the strictest limit.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mm2slo_core.catalogue.flow_metrics import FLOW_STATE
from mm2slo_core.catalogue.prometheus_series import (
    BUDGET_REMAINING,
    BURN,
    MAINTENANCE_ACTIVE,
    RecordedSeries,
)
from mm2slo_core.catalogue.promql import Matcher, Vector, aggregate
from mm2slo_core.catalogue.service_metrics import AUDIT_LAST_RUN_TIMESTAMP_SECONDS
from mm2slo_core.config.alerting_config import AlertingConfig, SeveritiesConfig
from mm2slo_core.config.config_model import Config, default_objective_rules
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.objectives.error_budget import LOW_BUDGET, MIN_COVERAGE
from mm2slo_core.objectives.objective import DEFAULT_WINDOW, WINDOW_PAIRS, ObjectiveRule
from mm2slo_core.topology import Flow
from mm2slo_dashboards.dashboard_model import (
    FLOW_STATES,
    LINES,
    Annotation,
    Below,
    Colour,
    PanelThresholds,
    PanelUnit,
    TableColumn,
)
from mm2slo_dashboards.panel_queries import (
    MATCH_FLOW,
    alert_starts,
    flow_series,
    in_milliseconds,
    max_by,
    readable_sli,
    recorded_series,
    state_code,
)

FLEET_DATA_POINTS: Final = 300
"""Points per time series on dashboards of all flows: each point reads every series."""

NO_BUDGET_DATA: Final = (
    "No budget is recorded: the recording rules are not loaded, or no event has settled."
)

NO_EXPORTER_DATA: Final = (
    "No exporter publishes the flow: it is not scraped, or has not read its topics yet."
)

NO_AUDIT_DATA: Final = (
    "No audit of the flow has ended, or Prometheus does not scrape `mm2slo report serve`."
)
OVERSPENT: Final = Below(0.0, "overspent", Colour.BAD)

LEAST_BUDGET: Final = -0.01
"""Where charts draw overspent budgets, so that one of -340 % does not flatten the others."""

FLOW_STATE_CODE: Final = state_code(FLOW_STATE, FLOW_STATES, "flow", matchers=(MATCH_FLOW,))
"""The state code of each selected flow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveLimits:
    """Times are in seconds, shares of 1.

    `latencies` are the thresholds of the latency SLI.
    `windows` are those of the objectives, the longest last; `flows` are the configured ones.
    """

    lag: float
    latencies: tuple[float, ...]
    redelivery: int
    checkpoint_lag: int
    windows: tuple[float, ...]
    flows: tuple[str, ...] = ()
    little_left: float = LOW_BUDGET
    coverage: float = MIN_COVERAGE
    severities: SeveritiesConfig = AlertingConfig().severities

    @property
    def flow_colours(self) -> Mapping[str, str]:
        """The colour of the line of each configured flow, the same on all dashboards."""
        return dict(zip(self.flows, itertools.cycle(LINES), strict=False))

    @property
    def page_burn_rate(self) -> float:
        """The burn rate over an hour that pages; the lowest where windows differ."""
        return min(WINDOW_PAIRS[0].factor(window) for window in self.windows)


def collect_limits(config: Config | None = None) -> ObjectiveLimits:
    """The limits of the configured flows; without a configuration, the defaults."""
    if config is None:
        flows: Sequence[FlowConfig] = (FlowConfig(flow=Flow("source", "target")),)
        rules: Sequence[ObjectiveRule] = default_objective_rules()
    else:
        flows, rules = config.flows, config.objective_rules
    return ObjectiveLimits(
        lag=min(each.threshold for flow in flows for each in flow.freshness),
        latencies=min(flow.canary.latency_tiers for flow in flows),
        redelivery=min(flow.readiness.max_redelivery_records for flow in flows),
        checkpoint_lag=min(flow.readiness.max_checkpoint_lag_records for flow in flows),
        flows=() if config is None else tuple(str(each.flow) for each in flows),
        windows=tuple(sorted({rule.window for rule in rules})) or (DEFAULT_WINDOW,),
        severities=(AlertingConfig() if config is None else config.alerting).severities,
    )


def budget_thresholds(limits: ObjectiveLimits) -> PanelThresholds:
    """Thresholds of the remaining budget."""
    return PanelThresholds(Colour.BAD, ((0.0, Colour.WARNING), (limits.little_left, Colour.GOOD)))


def burn_rate_thresholds(limits: ObjectiveLimits) -> PanelThresholds:
    """Thresholds of a burn rate: 1, and the rate over an hour that pages."""
    return PanelThresholds(
        Colour.GOOD, ((1.0, Colour.WARNING), (limits.page_burn_rate, Colour.BAD))
    )


def latency_thresholds(limits: ObjectiveLimits) -> PanelThresholds:
    """The two highest thresholds of the latency objectives."""
    palette = (Colour.WARNING, Colour.BAD)
    return PanelThresholds(Colour.GOOD, tuple(zip(limits.latencies[-2:], palette, strict=False)))


def by_objective(
    operator: str, series: RecordedSeries, *labels: str, matchers: Sequence[Matcher] = ()
) -> Vector:
    """*series* by *labels*, with readable names of SLIs."""
    found = aggregate(operator, recorded_series(series, *matchers), labels)
    return readable_sli(found) if "sli" in labels else found


def budget_column(
    limits: ObjectiveLimits, *labels: str, matchers: Sequence[Matcher] = ()
) -> TableColumn:
    """The smallest remaining budget of the series that match *matchers*."""
    return TableColumn(
        title="Remaining budget",
        vector=by_objective("min", BUDGET_REMAINING, *labels, matchers=matchers),
        unit=PanelUnit.SHARE,
        thresholds=budget_thresholds(limits),
        below=OVERSPENT,
        decimals=1,
    )


def burn_column(
    limits: ObjectiveLimits, *labels: str, matchers: Sequence[Matcher] = ()
) -> TableColumn:
    """The highest burn rate over one hour."""
    return TableColumn(
        title="Burn rate (1h)",
        vector=by_objective("max", BURN["1h"], *labels, matchers=matchers),
        unit=PanelUnit.FACTOR,
        thresholds=burn_rate_thresholds(limits),
        decimals=1,
    )


# A line at the start of an alert, one per alert name: bands would cover every chart.
ALERT_ANNOTATION: Final = Annotation(
    title="Alerts",
    vector=alert_starts("severity", "alertname"),
    text="{{severity}}: {{alertname}} became active",
    colour=Colour.BAD,
    value_is_time=True,
)

EXCLUSION_ANNOTATION: Final = Annotation(
    title="Planned maintenance",
    vector=max_by(flow_series(MAINTENANCE_ACTIVE), "flow"),
    text="Planned maintenance of {{flow}}",
    colour=Colour.PLANNED,
)
AUDIT_ANNOTATION: Final = Annotation(
    title="Audits",
    vector=in_milliseconds(max_by(AUDIT_LAST_RUN_TIMESTAMP_SECONDS, "flow")),
    text="An audit of {{flow}} ended",
    colour=Colour.NEUTRAL,
    value_is_time=True,
)
FLOW_ANNOTATIONS: Final = (ALERT_ANNOTATION, EXCLUSION_ANNOTATION, AUDIT_ANNOTATION)
