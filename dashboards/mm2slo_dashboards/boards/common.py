"""Panels and marks that several boards show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue.audited import AUDIT_LAST_RUN_TIMESTAMP_SECONDS
from mm2slo_core.catalogue.flow import FLOW_STATE
from mm2slo_core.catalogue.recorded import BUDGET_REMAINING, BURN, MAINTENANCE_ACTIVE
from mm2slo_core.promql import Vector
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.model import Column, Marks, Steps, Unit
from mm2slo_dashboards.selecting import IN_FLOW, coded, firing, least, of_flow, recorded, worst
from mm2slo_dashboards.states import FLOW_STATES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.promql import Matcher
    from mm2slo_dashboards.limits import Limits

OF_ALL_FLOWS: Final = 300
"""Points of a course on boards that look at all flows at once: a point is a look at all series."""
NO_RULES: Final = "No budget is recorded: are the recording rules loaded, and did events settle?"
NO_EXPORTER: Final = "No exporter publishes the flow: is it scraped, and has it read its topics?"
NO_AUDIT: Final = (
    "No audit of the flow has ended, or Prometheus does not scrape `mm2slo report serve`."
)

STATE_OF_FLOW: Final = coded(FLOW_STATE, FLOW_STATES, "flow", matchers=(IN_FLOW,))
"""The code of the state that each chosen flow is in."""


def budget_steps(limits: Limits) -> Steps:
    """Of the share of a budget that is left."""
    return Steps(Colour.BAD, ((0.0, Colour.WARNING), (limits.little_left, Colour.GOOD)))


def burn_steps(limits: Limits) -> Steps:
    """Of a burn rate: above 1 the budget does not last, at the second bound an hour of it pages."""
    return Steps(Colour.GOOD, ((1.0, Colour.WARNING), (limits.hot, Colour.BAD)))


def latency_steps(limits: Limits) -> Steps:
    """Of a latency: the two highest thresholds of the latency objectives."""
    palette = (Colour.WARNING, Colour.BAD)
    return Steps(Colour.GOOD, tuple(zip(limits.latencies[-2:], palette, strict=False)))


def budget_column(limits: Limits, *labels: str, among: Sequence[Matcher] = ()) -> Column:
    """What is left of the smallest budget *among* those that are chosen."""
    return Column(
        title="Budget left",
        vector=least(recorded(BUDGET_REMAINING, *among), *labels),
        unit=Unit.SHARE,
        steps=budget_steps(limits),
        decimals=1,
    )


def burn_column(limits: Limits, *labels: str) -> Column:
    """How fast the fastest budget burnt in the last hour."""
    return Column(
        title="Burn rate, 1 h",
        vector=worst(recorded(BURN["1h"]), *labels),
        unit=Unit.FACTOR,
        steps=burn_steps(limits),
        decimals=2,
    )


# One for each alert's name: a shade for each partition and group would cover every chart.
ALERT_MARKS: Final = Marks(
    title="Alerts",
    vector=worst(firing(IN_FLOW), "severity", "alertname"),
    text="{{severity}}: {{alertname}} fires",
    colour=Colour.BAD,
)
EXCLUSION_MARKS: Final = Marks(
    title="Planned maintenance",
    vector=worst(of_flow(MAINTENANCE_ACTIVE), "flow"),
    text="Planned maintenance of {{flow}}",
    colour=Colour.PLANNED,
)
_AUDITED: Final = worst(of_flow(AUDIT_LAST_RUN_TIMESTAMP_SECONDS), "flow")
AUDIT_MARKS: Final = Marks(
    title="Audits",
    vector=Vector(f"1000 * {_AUDITED}", _AUDITED.labels),
    text="An audit of {{flow}} ended",
    colour=Colour.NEUTRAL,
    at_value=True,
)
FLOW_MARKS: Final = (ALERT_MARKS, EXCLUSION_MARKS, AUDIT_MARKS)
