"""What a rule file holds, before it is text: rules in groups, their durations and addresses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mm2slo_core.dashboard_uids import DashboardUid

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

    `hold` (Prometheus's `for`) and `keep` (`keep_firing_for`) are in seconds; 0 leaves them out.
    `labels` and `annotations` may hold Prometheus's templates; a value never belongs in a label,
    since each new value would be a new alert.
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

    Within a group a rule sees what the rules above it recorded in the same pass; between groups
    it sees what was recorded up to one interval earlier.
    """

    name: str
    interval: float
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """Shortens every duration of the rules alike, for tests that cannot wait; 1 in production.

    Names of series and labels keep the words of production (`increase5m`), so that the same
    expressions, routes and dashboards are tested. A scaled duration is never below a millisecond,
    the finest that Prometheus knows.
    """

    factor: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.factor <= 1.0:
            raise ValueError(f"scale is {self.factor!r}: expected above 0 and at most 1")

    def __call__(self, seconds: float) -> float:
        """*seconds* of production in seconds of this scale; 0 stays 0."""
        if seconds == 0.0:
            return 0.0
        return max(round(seconds * self.factor, 3), 0.001)


PRODUCTION = Scale()


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Base addresses that the annotations of alerts build on; None leaves an annotation out.

    `runbook` is the folder of the runbooks' pages, `dashboard` is Grafana's address, `report` the
    report service's; `prometheus` and `alertmanager` are as browsers of the readers reach them.
    """

    runbook: str | None = None
    dashboard: str | None = None
    report: str | None = None
    prometheus: str | None = None
    alertmanager: str | None = None

    def annotations(self, alert: str, *, of_flow: bool = True) -> dict[str, str]:
        """The annotations `runbook_url`, `dashboard_url` and `report_url` of an alert.

        With *of_flow* the last two lead to the flow of the alert's label `flow`.
        """
        found = {}
        if self.runbook is not None:
            found["runbook_url"] = f"{self.runbook.rstrip('/')}/{alert}.md"
        if self.dashboard is not None:
            page = DashboardUid.FLOW if of_flow else DashboardUid.FLEET
            flow = f"var-flow={_FLOW}&" if of_flow else ""
            found["dashboard_url"] = (
                f"{self.dashboard.rstrip('/')}/d/{page}?{flow}from=now-6h&to=now"
            )
        if self.report is not None:
            query = f"?flow={_FLOW}" if of_flow else ""
            found["report_url"] = f"{self.report.rstrip('/')}/slo{query}"
        return found


_FLOW = "{{ $labels.flow | urlquery }}"
