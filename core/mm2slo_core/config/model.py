"""The whole configuration, typed and frozen."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import Field

from mm2slo_core.config.alerting import AlertingConfig
from mm2slo_core.config.audit import AuditConfig
from mm2slo_core.config.canary import CanaryCarrier
from mm2slo_core.config.cluster import ClusterConfig
from mm2slo_core.config.exporter import ExporterConfig
from mm2slo_core.config.fields import Alias, Section
from mm2slo_core.config.flow import FlowConfig
from mm2slo_core.config.published import published
from mm2slo_core.config.report import ReportConfig
from mm2slo_core.config.slo import SloConfig
from mm2slo_core.errors import UserError
from mm2slo_core.objectives.objective import Objective, ObjectiveRule, resolve
from mm2slo_core.objectives.traffic import Published
from mm2slo_core.topology import Flow, FlowGraph


class Config(Section):
    """mm2slo.yaml after `defaults` were merged into each flow."""

    clusters: Annotated[Mapping[Alias, ClusterConfig], Field(min_length=1)] = Field(
        description="Kafka clusters by MirrorMaker 2's alias."
    )
    flows: Annotated[tuple[FlowConfig, ...], Field(min_length=1)] = Field(
        description="Replication flows between the clusters."
    )
    exporter: ExporterConfig = Field(
        default_factory=ExporterConfig, description="The service that publishes the figures."
    )
    audit: AuditConfig = Field(
        default_factory=AuditConfig, description="The audit of what was copied."
    )

    slo: SloConfig = Field(default_factory=SloConfig, description="What is promised of each flow.")
    alerting: AlertingConfig = Field(default_factory=AlertingConfig, description="Where alerts go.")
    report: ReportConfig = Field(
        default_factory=ReportConfig, description="The service that answers for the objectives."
    )

    @property
    def graph(self) -> FlowGraph:
        """The shape that the flows form together."""
        return FlowGraph(frozenset(flow.flow for flow in self.flows))

    def select(self, labels: Iterable[str]) -> tuple[FlowConfig, ...]:
        """The flows named by *labels*, in file order; all of them when there is no label.

        Raises UserError for a label that is no flow of this configuration.
        """
        known = {flow.label: flow for flow in self.flows}
        wanted = [_known_label(label, known) for label in labels]
        return tuple(flow for flow in self.flows if not wanted or flow.label in wanted)

    def carrier(self, flow: FlowConfig) -> CanaryCarrier:
        """The carrier that *flow* really has: none where nothing may be written."""
        return self.exporter.carrier(flow.canary)

    @property
    def published(self) -> Mapping[Flow, tuple[Published, ...]]:
        """The indicators that the exporter publishes of each flow."""
        return {flow.flow: published(flow, self.carrier(flow)) for flow in self.flows}

    @property
    def objective_rules(self) -> tuple[ObjectiveRule, ...]:
        """Every objective, the configured ones before the defaults; the first match holds."""
        return self.slo.rules(self.published)

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """What is promised of each flow and indicator, in file order."""
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
    close = difflib.get_close_matches(label, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise UserError(
        f"{text!r} is not a configured flow: expected one of {', '.join(sorted(known))}{hint}"
    )
