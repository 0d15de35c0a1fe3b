"""Rules, groups, their durations and links, and their text as YAML.

Rule files come in Prometheus's format and as the operator's PrometheusRule resource. The same
groups always give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from mm2slo_core.catalogue.promql import duration
from mm2slo_core.file_syntax import dump_yaml
from mm2slo_core.link_targets import DashboardUid, search_url

if TYPE_CHECKING:
    from mm2slo_core.config.alerting_config import AlertingConfig


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


class AlertSubject(Enum):
    """What an alert is about; decides which pages its links open."""

    OBJECTIVE = "objective"
    FLOW = "flow"
    FAILOVER = "failover"
    FLEET = "fleet"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertLinks:
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

    def annotations(self, alert: str, subject: AlertSubject) -> dict[str, str]:
        """Return `runbook_url`, `dashboard_url`, `report_url` and `splunk_url` of *alert*.

        The last three select the flow of the alert's labels unless it is about the fleet, the
        report also the objective.
        """
        of_flow = subject is not AlertSubject.FLEET
        found = {}
        if self.runbook is not None:
            found["runbook_url"] = f"{self.runbook.rstrip('/')}/{alert}.md"
        if self.dashboard is not None:
            flow = f"var-flow={_FLOW}&" if of_flow else ""
            found["dashboard_url"] = (
                f"{self.dashboard.rstrip('/')}/d/{_BOARDS[subject]}?{flow}from=now-6h&to=now"
            )
        if self.report is not None:
            page = f"/{_SLO_ID}" if subject is AlertSubject.OBJECTIVE else f"?flow={_FLOW}"
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
"""As `full_slo_id` of `mm2slo_core.objectives.objective`."""

_BOARDS = {
    AlertSubject.OBJECTIVE: DashboardUid.FLOW,
    AlertSubject.FLOW: DashboardUid.FLOW,
    AlertSubject.FAILOVER: DashboardUid.FAILOVER,
    AlertSubject.FLEET: DashboardUid.FLEET,
}
HEADER: Final = "# Generated by `mm2slo alerts generate`; do not edit.\n"
RESOURCE_NAME: Final = "mm2slo"


def prometheus_text(groups: Iterable[Group]) -> str:
    """Return a rule file for Prometheus 2.42 and later."""
    return yaml_text({"groups": [_group(group) for group in groups]})


def prometheus_rule_resource(groups: Iterable[Group], config: AlertingConfig) -> str:
    """Return a resource of the Prometheus operator (`monitoring.coreos.com/v1`).

    The operator selects rules by labels; its examples select `role: alert-rules`.
    """
    labels = {"app.kubernetes.io/name": RESOURCE_NAME, "role": "alert-rules"}
    return yaml_text(
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {
                "name": RESOURCE_NAME,
                **({"namespace": config.namespace} if config.namespace else {}),
                "labels": {**labels, **config.prometheusrule.labels},
            },
            "spec": {"groups": [_group(group) for group in groups]},
        }
    )


def yaml_text(document: object) -> str:
    """Return YAML below the header; keys keep their order, strings their lines."""
    return dump_yaml(document, HEADER)


def _group(group: Group) -> dict[str, Any]:
    return {
        "name": group.name,
        "interval": duration(group.interval),
        "rules": [_rule(rule) for rule in group.rules],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    match rule:
        case RecordingRule():
            found: dict[str, Any] = {"record": rule.record, "expr": rule.expr}
        case AlertRule():
            found = {"alert": rule.alert, "expr": rule.expr}
            if rule.hold:
                found["for"] = duration(rule.hold)
            if rule.keep:
                found["keep_firing_for"] = duration(rule.keep)
    if rule.labels:
        found["labels"] = dict(rule.labels)
    if isinstance(rule, AlertRule) and rule.annotations:
        found["annotations"] = dict(rule.annotations)
    return found
