"""Texts, thresholds, columns and annotations that several dashboards share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue.audit_result_metrics import AUDIT_LAST_RUN_TIMESTAMP_SECONDS
from mm2slo_core.catalogue.flow_metrics import FLOW_STATE
from mm2slo_core.catalogue.recorded_series import BUDGET_REMAINING, BURN, MAINTENANCE_ACTIVE
from mm2slo_core.promql import Vector, aggregate
from mm2slo_dashboards.alert_queries import alert_starts
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.dashboard_model import Annotation, Below, Column, Thresholds, Unit
from mm2slo_dashboards.panel_queries import (
    MATCH_FLOW,
    flow_series,
    max_by,
    readable_sli,
    recorded_series,
    state_code,
)
from mm2slo_dashboards.state_mappings import FLOW_STATES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.catalogue import RecordedSeries
    from mm2slo_core.promql import Matcher
    from mm2slo_dashboards.objective_limits import Limits

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


def budget_thresholds(limits: Limits) -> Thresholds:
    """Thresholds of the remaining budget."""
    return Thresholds(Colour.BAD, ((0.0, Colour.WARNING), (limits.little_left, Colour.GOOD)))


def burn_rate_thresholds(limits: Limits) -> Thresholds:
    """Thresholds of a burn rate: 1, and the rate over an hour that pages."""
    return Thresholds(Colour.GOOD, ((1.0, Colour.WARNING), (limits.page_burn_rate, Colour.BAD)))


def latency_thresholds(limits: Limits) -> Thresholds:
    """The two highest thresholds of the latency objectives."""
    palette = (Colour.WARNING, Colour.BAD)
    return Thresholds(Colour.GOOD, tuple(zip(limits.latencies[-2:], palette, strict=False)))


def by_objective(
    operator: str, series: RecordedSeries, *labels: str, matchers: Sequence[Matcher] = ()
) -> Vector:
    """*series* by *labels*, with readable names of SLIs."""
    found = aggregate(operator, recorded_series(series, *matchers), labels)
    return readable_sli(found) if "sli" in labels else found


def budget_column(limits: Limits, *labels: str, matchers: Sequence[Matcher] = ()) -> Column:
    """The smallest remaining budget of the series that match *matchers*."""
    return Column(
        title="Remaining budget",
        vector=by_objective("min", BUDGET_REMAINING, *labels, matchers=matchers),
        unit=Unit.SHARE,
        thresholds=budget_thresholds(limits),
        below=OVERSPENT,
        decimals=1,
    )


def burn_column(limits: Limits, *labels: str, matchers: Sequence[Matcher] = ()) -> Column:
    """The highest burn rate over one hour."""
    return Column(
        title="Burn rate (1h)",
        vector=by_objective("max", BURN["1h"], *labels, matchers=matchers),
        unit=Unit.FACTOR,
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
_LAST_AUDIT: Final = max_by(flow_series(AUDIT_LAST_RUN_TIMESTAMP_SECONDS), "flow")
AUDIT_ANNOTATION: Final = Annotation(
    title="Audits",
    vector=Vector(f"1000 * {_LAST_AUDIT}", _LAST_AUDIT.labels),
    text="An audit of {{flow}} ended",
    colour=Colour.NEUTRAL,
    value_is_time=True,
)
FLOW_ANNOTATIONS: Final = (ALERT_ANNOTATION, EXCLUSION_ANNOTATION, AUDIT_ANNOTATION)
