"""`Config`, the root model of mm2slo.yaml."""

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import Field

from mm2slo_core.config.alerting_config import AlertingConfig
from mm2slo_core.config.audit_config import AuditConfig
from mm2slo_core.config.canary_config import CanaryCarrier
from mm2slo_core.config.cluster_config import ClusterConfig
from mm2slo_core.config.exporter_config import ExporterConfig
from mm2slo_core.config.field_types import Alias, Section
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.config.logship_config import LogshipConfig
from mm2slo_core.config.mirror_files import MirrorFilesConfig
from mm2slo_core.config.published_indicators import published
from mm2slo_core.config.report_config import ReportConfig
from mm2slo_core.config.slo_config import SloConfig
from mm2slo_core.config.suggestion import suggest
from mm2slo_core.objectives.objective import Objective, ObjectiveRule, resolve
from mm2slo_core.objectives.traffic_limits import PublishedIndicator
from mm2slo_core.topology import Flow, FlowGraph
from mm2slo_core.user_errors import UserError


class Config(Section):
    """mm2slo.yaml after `defaults` and MirrorMaker 2's files were merged into each flow."""

    mm2: MirrorFilesConfig = MirrorFilesConfig()
    """MirrorMaker 2's own configuration."""
    clusters: Annotated[Mapping[Alias, ClusterConfig], Field(min_length=1)]
    """Kafka clusters by MirrorMaker 2 alias; optional with `mm2`."""
    flows: Annotated[tuple[FlowConfig, ...], Field(min_length=1)]
    """Replication flows between the clusters; optional with `mm2`."""
    exporter: ExporterConfig = ExporterConfig()
    """The exporter."""
    audit: AuditConfig = AuditConfig()
    """The audit of replicated records."""

    slo: SloConfig = SloConfig()
    """The objectives of the flows."""
    alerting: AlertingConfig = AlertingConfig()
    """The receivers of alerts."""
    report: ReportConfig = ReportConfig()
    """The report service."""
    logship: LogshipConfig | None = None
    """Shipping of log files to Splunk; null: none."""

    @property
    def graph(self) -> FlowGraph:
        return FlowGraph(frozenset(flow.flow for flow in self.flows))

    def select(self, labels: Iterable[str]) -> tuple[FlowConfig, ...]:
        """The flows with *labels*, in file order; all flows if *labels* is empty.

        Raises UserError for the label of an unknown flow.
        """
        known = {flow.label: flow for flow in self.flows}
        wanted = [_known_label(label, known) for label in labels]
        return tuple(flow for flow in self.flows if not wanted or flow.label in wanted)

    def carrier(self, flow: FlowConfig) -> CanaryCarrier:
        """The effective canary carrier of *flow*: off in read-only mode."""
        return self.exporter.carrier(flow.canary)

    @property
    def published(self) -> Mapping[Flow, tuple[PublishedIndicator, ...]]:
        """The indicators that the exporter publishes for each flow."""
        return {flow.flow: published(flow, self.carrier(flow)) for flow in self.flows}

    @property
    def objective_rules(self) -> tuple[ObjectiveRule, ...]:
        """All objectives, the configured ones before the defaults; the first match applies."""
        return self.slo.rules(self.published)

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The effective objective of each flow and indicator, in file order."""
        rules = self.objective_rules
        return tuple(
            objective
            for flow, indicators in self.published.items()
            for objective in resolve(rules, flow, (each.key for each in indicators))
        )


def _known_label(text: str, known: Mapping[str, FlowConfig]) -> str:
    try:
        label = Flow.parse(text).label
    except ValueError:
        label = text.strip()
    if label in known:
        return label
    close = suggest(label, known)
    hint = f"; did you mean {close!r}?" if close else ""
    raise UserError(
        f"{text!r} is not a configured flow: expected one of {', '.join(sorted(known))}{hint}"
    )
