"""Rules, groups, their durations and links, before they are YAML."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_core.splunk_search import search_url

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingRule:
    """Records the result of `expr` as the series `record`; `labels` are added to it."""

    record: str
    expr: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRule:
    """Alerts for each series of `expr`'s result.

    `hold` (Prometheus's `for`) and `keep` (`keep_firing_for`) are in seconds; 0 omits them.
    `annotations` may hold templates. Labels never hold a value: each new value would be a new
    alert.
    """

    alert: str
    expr: str
    hold: float = 0.0
    keep: float = 0.0
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


Rule = RecordingRule | AlertRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rules that are evaluated together, in order, every `interval` seconds.

    A rule sees what earlier rules of its group recorded in the same evaluation; series of other
    groups are up to one interval old.
    """

    name: str
    interval: float
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """Shortens every duration of the rules by one factor, for tests; 1 in production.

    Names of series and label values stay those of production (`increase5m`), so that tests cover
    the same expressions, routes and dashboards. A scaled duration is at least a millisecond,
    Prometheus's resolution.
    """

    factor: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.factor <= 1.0:
            raise ValueError(f"scale is {self.factor!r}: expected above 0 and at most 1")

    def __call__(self, seconds: float) -> float:
        if seconds == 0.0:
            return 0.0
        return max(round(seconds * self.factor, 3), 0.001)


PRODUCTION = Scale()


class Subject(Enum):
    """What an alert is about; decides which pages its links open."""

    OBJECTIVE = "objective"
    FLOW = "flow"
    FAILOVER = "failover"
    FLEET = "fleet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Base URLs of the links in annotations; None omits a link.

    `runbook` is the folder of the runbooks, `dashboard` is Grafana, `report` the report service,
    `splunk` Splunk Web; `prometheus` and `alertmanager` are URLs that users' browsers can reach.
    """

    runbook: str | None = None
    dashboard: str | None = None
    report: str | None = None
    prometheus: str | None = None
    alertmanager: str | None = None
    splunk: str | None = None

    def annotations(self, alert: str, subject: Subject) -> dict[str, str]:
        """Return `runbook_url`, `dashboard_url`, `report_url` and `splunk_url` of *alert*.

        The last three select the flow of the alert's labels unless it is about the fleet, the
        report also the objective.
        """
        of_flow = subject is not Subject.FLEET
        found = {}
        if self.runbook is not None:
            found["runbook_url"] = f"{self.runbook.rstrip('/')}/{alert}.md"
        if self.dashboard is not None:
            flow = f"var-flow={_FLOW}&" if of_flow else ""
            found["dashboard_url"] = (
                f"{self.dashboard.rstrip('/')}/d/{_BOARDS[subject]}?{flow}from=now-6h&to=now"
            )
        if self.report is not None:
            page = f"/{_SLO_ID}" if subject is Subject.OBJECTIVE else f"?flow={_FLOW}"
            found["report_url"] = f"{self.report.rstrip('/')}/slo{page if of_flow else ''}"
        if self.splunk is not None:
            # Prometheus's templates do not know the start of an alert.
            found["splunk_url"] = search_url(
                self.splunk, _FLOW if of_flow else None, earliest="-6h", latest="now"
            )
        return found


def _slug(label: str) -> str:
    return f'{{{{ $labels.{label} | toLower | reReplaceAll "[^a-z0-9]+" "-" }}}}'


_FLOW = "{{ $labels.flow | urlquery }}"
_SLO_ID = (
    f"{_slug('source')}-to-{_slug('target')}-{_slug('sli')}"
    f'{{{{ if ne $labels.tier "all" }}}}-{_slug("tier")}{{{{ end }}}}'
)
"""As `full_slo_id` of `mm2slo_core.objectives.slo_ids`."""
_BOARDS = {
    Subject.OBJECTIVE: DashboardUid.FLOW,
    Subject.FLOW: DashboardUid.FLOW,
    Subject.FAILOVER: DashboardUid.FAILOVER,
    Subject.FLEET: DashboardUid.FLEET,
}
