"""`Config`, the root model of mm2slo.yaml; what it publishes, and what it does not measure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field

from mm2slo_core.config.alerting_config import AlertingConfig, SloConfig
from mm2slo_core.config.client_security import java_settings
from mm2slo_core.config.config_section import Section, plain_value
from mm2slo_core.config.exporter_settings import CanaryCarrier, PolicyKind, RootSettings
from mm2slo_core.config.field_types import Alias, KafkaVersionText, Text
from mm2slo_core.config.flow_config import CLUSTER_EXAMPLES, AuditConfig, ClusterConfig, FlowConfig
from mm2slo_core.config.logship_config import LOGSHIP_EXAMPLES, LogshipConfig
from mm2slo_core.config.service_config import ExporterConfig, ReportConfig
from mm2slo_core.indicators.canary_rules import AVAILABILITY, CanaryRules
from mm2slo_core.indicators.sli_counters import ALL, Sli, SliKey
from mm2slo_core.objectives.objective import (
    DAY,
    HOUR,
    Objective,
    ObjectiveRule,
    PublishedIndicator,
    dead_pairs,
    default_rules,
    relaxed_defaults,
    resolve_objectives,
    threshold,
)
from mm2slo_core.quantity_text import format_duration, percent_text
from mm2slo_core.topology import Flow

Files = tuple[Text, ...]


class MirrorFilesConfig(Section):
    """MirrorMaker 2's own configuration: `clusters` and `flows` below those of this file."""

    properties: Files = Field(default=(), examples=[["mm2.properties"]])
    """Properties files of dedicated mode."""
    strimzi: Files = ()
    """`KafkaMirrorMaker2` resources of Strimzi or IBM Event Streams."""
    connect: Files = ()
    """Connectors on Kafka Connect, as JSON."""
    worker: Text | None = None
    """Properties file of the Connect workers, for `connect`."""
    secrets: Text | None = None
    """Folder of Kubernetes secrets, with files `<secret>/<key>`."""
    paths: Mapping[Text, Text] = Field(default={}, examples=[{"/opt/kafka/tls": "./tls"}])
    """Where files and folders of MirrorMaker 2's machine are on this one."""
    kafka_version: KafkaVersionText | None = Field(default=None, examples=["3.9"])
    """MirrorMaker 2's Kafka version, for its defaults; null: as in its files, or the newest."""


class Config(Section, RootSettings):
    """mm2slo.yaml after `defaults` and MirrorMaker 2's files were merged into each flow."""

    mm2: MirrorFilesConfig = MirrorFilesConfig()
    """MirrorMaker 2's own configuration."""
    clusters: Annotated[
        Mapping[Alias, ClusterConfig], Field(min_length=1, examples=CLUSTER_EXAMPLES)
    ]
    """Kafka clusters by MirrorMaker 2 alias; optional with `mm2`."""
    flows: Annotated[tuple[FlowConfig, ...], Field(min_length=1, examples=[{"flow": "us->eu"}])]
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
    logship: LogshipConfig | None = Field(default=None, examples=LOGSHIP_EXAMPLES)
    """Shipping of log files to Splunk; null: none."""

    if TYPE_CHECKING:

        def select(self, labels: Iterable[str]) -> tuple[FlowConfig, ...]: ...

    def as_settings(self) -> RootSettings:
        """What the exporter uses of this configuration."""
        names = ("clusters", "flows", "exporter")
        return RootSettings.of({name: plain_value(getattr(self, name)) for name in names})

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
            for objective in resolve_objectives(rules, flow, (each.key for each in indicators))
        )


RETENTION: Final = 35 * DAY
"""Retention of the shipped Prometheus configuration."""

_NEEDS_MIRRORMAKER: Final = (
    "MirrorMaker 2's heartbeats, offset syncs, checkpoints and connector states",
    "replicated position, lag and data freshness, stalled partitions",
    "retention headroom and records lost to retention",
    "failover readiness of consumer groups",
)


def unavailable(flow: FlowConfig) -> tuple[str, ...]:
    """What cannot be measured for *flow* because of its engine; usually nothing."""
    return () if flow.by_mirrormaker else _NEEDS_MIRRORMAKER


def notices(config: Config) -> tuple[str, ...]:
    """One sentence for each limitation of this configuration."""
    return tuple(_notices(config))


def unapplied_client_settings(config: Config) -> Iterator[str]:
    """One sentence for each cluster with settings that the audit cannot apply."""
    for alias, cluster in config.clusters.items():
        _known, unknown = java_settings(cluster.client)
        if unknown:
            yield (
                f"clusters.{alias}.client: {', '.join(unknown)} not applied by the audit, because "
                "Kafka's Java client has no equivalent"
            )


def _notices(config: Config) -> Iterator[str]:
    yield from unapplied_client_settings(config)
    if config.exporter.read_only:
        yield (
            "exporter.read_only: no canary, state and timeline are written; availability is "
            "measured by MirrorMaker 2's heartbeats; completeness, uniqueness, order and affinity "
            "are not measured; certain losses stay pending; verdicts do not survive a restart"
        )
    elif not config.exporter.timeline.enabled:
        yield (
            "exporter.timeline is off: after a restart, lag in seconds is derived from record "
            "timestamps until the new history is long enough"
        )
    yield from _slo_notices(config)
    identity = [flow for flow in config.flows if flow.policy.kind is PolicyKind.IDENTITY]
    for flow in config.flows:
        missing = unavailable(flow)
        if missing:
            yield f"{flow.label}: the engine {flow.engine} does not provide {'; '.join(missing)}"
        elif config.carrier(flow) is CanaryCarrier.OFF and not flow.emit_heartbeats:
            yield f"{flow.label}: availability is not measured, by canaries or by heartbeats"
        elif flow.canary.carrier is CanaryCarrier.OFF and not config.exporter.read_only:
            yield f"{flow.label}: no canary is sent; availability is measured by heartbeats"
        feeders = sorted(other.label for other in identity if other.flow.target == flow.flow.target)
        if flow in identity and len(feeders) > 1:
            yield (
                f"{flow.label}: {', '.join(feeders)} may write to the same topics under the "
                "identity policy; if they do, positions are as old as the last offset commit"
            )
        if flow in identity and any(other.flow == flow.flow.reverse for other in config.flows):
            yield (
                f"{flow.label}: the identity policy does not prevent replication cycles; both "
                "flows must not replicate the same topic"
            )


def _slo_notices(config: Config) -> Iterator[str]:
    rules = config.objective_rules
    flows_by_notice: dict[str, list[str]] = defaultdict(list)
    for rule in rules:
        dead = dead_pairs(rule)
        if dead:
            shares = ", ".join(
                f"{pair.name} (error ratio above {threshold(pair, rule.target, rule.window):.0%})"
                for pair in dead
            )
            flows_by_notice[
                f"{_indicator(rule.key)} at {percent_text(rule.target)}: these window pairs "
                f"cannot fire and are omitted: {shares}"
            ].extend(rule.flows)
    for sentence, flows in flows_by_notice.items():
        yield f"{', '.join(dict.fromkeys(flows))}: {sentence}"
    longest = max((rule.window for rule in rules), default=0.0)
    if longest > RETENTION:
        yield (
            f"slo: Prometheus must retain samples for more than {format_duration(longest)}; "
            f"the shipped configuration retains them for {format_duration(RETENTION)}"
        )
    for relaxed in relaxed_defaults(config.published, config.slo.window):
        # A configured objective replaces the default.
        kept = next(iter(resolve_objectives(rules, relaxed.flow, [relaxed.key])), None)
        if kept is None:
            outcome = "has no objective"
        elif kept.target == relaxed.target:
            outcome = f"has the objective {percent_text(kept.target)}"
        else:
            continue
        yield (
            f"{relaxed.flow.label}: {_indicator(relaxed.key)} {outcome} instead of the default "
            f"{percent_text(relaxed.wanted)}, which one bad event would breach at this event rate"
        )


def _indicator(key: SliKey) -> str:
    """*key* as text: `latency 10s`, `availability`."""
    return str(key.sli) if key.tier == ALL else f"{key.sli} {key.tier}"


def published(flow: FlowConfig, carrier: CanaryCarrier) -> tuple[PublishedIndicator, ...]:
    """The indicators of *flow* with the effective canary *carrier*.

    Rates of slices are for one partition or group, because the configuration does not contain
    their number.
    """
    slices = HOUR / flow.slice
    found: list[PublishedIndicator] = []
    if carrier is not CanaryCarrier.OFF:
        deadline = flow.canary.deadline
        rules = CanaryRules(
            deadline=deadline,
            # Thresholds above the deadline are reported by CanaryConfig.
            latency_tiers=tuple(tier for tier in flow.canary.latency_tiers if tier <= deadline),
            own_topic=carrier is CanaryCarrier.TOPIC,
        )
        found += [PublishedIndicator(key, HOUR / flow.canary.interval) for key in rules.indicators]
    elif flow.by_mirrormaker:
        found.append(PublishedIndicator(AVAILABILITY, slices))
    if flow.by_mirrormaker:
        classes = (SliKey(Sli.DATA_FRESHNESS, each.name) for each in flow.freshness)
        found += [PublishedIndicator(key, slices) for key in classes]
        found.append(PublishedIndicator(SliKey(Sli.CHECKPOINT_FRESHNESS), slices))
    return tuple(found)


def default_objective_rules() -> tuple[ObjectiveRule, ...]:
    """The default objectives of a flow with the default configuration and a canary topic."""
    flow = Flow("source", "target")
    return default_rules({flow: published(FlowConfig(flow=flow), CanaryCarrier.TOPIC)})
