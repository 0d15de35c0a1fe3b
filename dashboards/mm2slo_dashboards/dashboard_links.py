"""Links of panels: to another dashboard with the selected variables, and to the runbook.

Addresses within Grafana start at its root, which Grafana itself moves below its sub-path. Selected
values use the format `:queryparam`, values of a table's row `:percentencode`: both encode any name.
Grafana formats `__data.fields` as it does variables (its own tests: grafana/scenes,
variables/macros/dataMacros.test.ts), by the renamed title of a column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_core.dashboard_uids import DashboardUid
    from mm2slo_dashboards.dashboard_model import Dashboard

_CONTEXT: Final = ("${datasource:queryparam}", "${__url_time_range}")


@dataclass(frozen=True, slots=True)
class Link:
    """A link; an `external` one opens in a new tab."""

    title: str
    address: str
    external: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Base addresses outside of Grafana; None for no link."""

    runbook: str | None = None
    report: str | None = None


class Links:
    """The links of *dashboards* to each other and to *addresses*."""

    def __init__(self, dashboards: Iterable[Dashboard], addresses: Addresses) -> None:
        self._dashboards: Mapping[DashboardUid, Dashboard] = {each.uid: each for each in dashboards}
        self._addresses = addresses

    def to_dashboard(self, current: Dashboard, uid: DashboardUid) -> Link:
        """From *current* to another dashboard, with the variables that both have.

        A variable with several values is not carried to a dashboard that takes one.
        """
        target = self._dashboards[uid]
        multi = {each.name: each.multi for each in current.variables}
        carried = [
            f"${{{each.name}:queryparam}}"
            for each in target.variables
            if each.name in multi and (each.multi or not multi[each.name])
        ]
        return Link(target.title, _address(target, *carried))

    def row_link(self, uid: DashboardUid, column: str) -> Link:
        """To the dashboard of the flow in the row's *column*."""
        target = self._dashboards[uid]
        flow = f"var-flow=${{__data.fields.{column}:percentencode}}"
        return Link(f"{target.title} of this flow", _address(target, flow))

    def runbook(self, alert: str) -> Link | None:
        """To the runbook of *alert*."""
        base = self._addresses.runbook
        if not base or not alert:
            return None
        return Link(f"Runbook {alert}", f"{base.rstrip('/')}/{alert}.md", external=True)

    def row_runbook(self, column: str) -> Link | None:
        """To the runbook of the alert in the row's *column*."""
        return self._external(
            self._addresses.runbook, "Runbook", f"/${{__data.fields.{column}}}.md"
        )

    def report(self, dashboard: Dashboard) -> Link | None:
        """To the page of the report service for *dashboard*."""
        single = [each for each in dashboard.variables if each.name == "flow" and not each.multi]
        return self._external(
            self._addresses.report,
            "Report",
            f"/slo{'?flow=${flow:percentencode}' if single else ''}",
        )

    def _external(self, base: str | None, title: str, rest: str) -> Link | None:
        return Link(title, f"{base.rstrip('/')}{rest}", external=True) if base else None


def _address(dashboard: Dashboard, *parameters: str) -> str:
    return f"/d/{dashboard.uid}?{'&'.join((*_CONTEXT, *parameters))}"
