"""Units that can be audited: their clusters answer and their topics exist."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from mm2slo_audit.scope.audit_units import (
    AuditUnit,
    audited_pairs,
    not_audited_after,
    plan_units,
    reason_for_error,
    select_units,
)
from mm2slo_audit.scope.cluster_readings import ClusterTopics, list_cluster_topics
from mm2slo_audit.scope.flow_topic_reader import use_running_settings
from mm2slo_core.audit.audit_scope import NotAudited, NotAuditedReason
from mm2slo_core.config.config_model import Config
from mm2slo_core.config.exporter_settings import PolicyKind
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.topic_filters import TopicFilter
from mm2slo_core.topic_selection import replication_policy
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import KafkaOperationError


@dataclass(frozen=True, slots=True)
class ReachableUnit:
    """A unit whose topics exist, with their partition counts."""

    unit: AuditUnit
    partitions: int
    source_partitions: tuple[int, ...]
    """Per feed."""


@dataclass(frozen=True, slots=True)
class ReachableUnits:
    """Units that a run can audit, and topics that it cannot."""

    units: tuple[ReachableUnit, ...]
    not_audited: tuple[NotAudited, ...]
    notes: tuple[str, ...] = ()
    """Where running connectors differ from the configuration."""

    @classmethod
    def find(
        cls,
        config: Config,
        chosen: Sequence[FlowConfig],
        topics: Sequence[str],
        clients: Mapping[str, ClusterClient],
    ) -> Self:
        """Find the units of the *chosen* flows, with all configured flows that feed them.

        Flows have the settings of their running connectors, as in the exporter.
        Raises UserError if the clusters of no flow answer, or no flow copies a topic of *topics*.
        """
        targets = {flow.flow.target for flow in chosen}
        flows = [flow for flow in config.flows if flow.flow.target in targets]
        aliases = targets | {flow.flow.source for flow in flows}
        listings, problems = list_cluster_topics(clients, aliases)
        unreachable = {
            flow.label: problem for flow in flows if (problem := _find_error(flow, problems))
        }
        if all(flow.label in unreachable for flow in chosen):
            raise UserError(str(unreachable[chosen[0].label]))
        reachable_flows, notes = _running_flows(
            [flow for flow in flows if flow.label not in unreachable], clients
        )
        labels = {flow.label for flow in chosen}
        names = {alias: listing.counts for alias, listing in listings.items()}
        own_topics = _own_topics(config)
        units = plan_units(reachable_flows, names, own_topics)
        unnamed = [
            each
            for flow in reachable_flows
            if flow.label in labels
            for each in _unnamed_copies(flow, names[flow.flow.source], own_topics)
            if not topics or each.target_topic in topics
        ]
        without_name = {each.target_topic for each in unnamed}
        named = [each for each in topics if each not in without_name]
        units = select_units(units, labels, named) if named or not topics else ()
        reached: list[ReachableUnit] = []
        not_audited = [
            not_audited_after(flow.label, unreachable[flow.label], (flow.flow,))
            for flow in chosen
            if flow.label in unreachable
        ]
        not_audited += unnamed
        unreachable_flows = [flow for flow in flows if flow.label in unreachable]
        for unit in units:
            found = _check_unit(unit, listings, unreachable_flows)
            if isinstance(found, ReachableUnit):
                reached.append(found)
            else:
                not_audited.append(found)
        if not topics:
            not_audited += _sources_missing(
                [flow for flow in reachable_flows if flow.label in labels], listings
            )
        return cls(tuple(reached), tuple(not_audited), notes)


def _running_flows(
    flows: Sequence[FlowConfig], clients: Mapping[str, ClusterClient]
) -> tuple[list[FlowConfig], tuple[str, ...]]:
    """*flows* with the settings of their running connectors, and where these differ."""
    running = list(flows)
    notes: tuple[str, ...] = ()
    for number, flow in enumerate(flows):
        if flow.by_mirrormaker:
            running[number], named = use_running_settings(flow, clients[flow.flow.target])
            notes += named
    return running, notes


def _unnamed_copies(
    flow: FlowConfig, topics: Iterable[str], own_topics: Collection[str]
) -> Iterator[NotAudited]:
    for pair in audited_pairs(flow, topics, own_topics):
        if not pair.target:
            detail = (
                f"the name of the copy of {pair.source} on {flow.flow.target} is not known: the"
                f" transforms of {flow.connect.source_connector} decide it"
            )
            yield NotAudited(pair.source, NotAuditedReason.COPY_UNKNOWN, detail, (flow.flow,))


def _own_topics(config: Config) -> frozenset[str]:
    timeline = config.exporter.timeline
    return frozenset({timeline.topic, timeline.arrivals_topic})


def _find_error(
    flow: FlowConfig, problems: Mapping[str, KafkaOperationError]
) -> KafkaOperationError | None:
    return problems.get(flow.flow.source) or problems.get(flow.flow.target)


def _check_unit(
    unit: AuditUnit, listings: Mapping[str, ClusterTopics], unreachable: Sequence[FlowConfig]
) -> ReachableUnit | NotAudited:
    target = listings[unit.cluster]
    for flow in unreachable:
        if flow.flow.target == unit.cluster and _may_feed(flow, unit.topic):
            return NotAudited(
                unit.topic,
                NotAuditedReason.UNREACHABLE,
                f"{flow.label} may feed it as well, and its source is unreachable",
                (*unit.flows, flow.flow),
            )
    if unit.topic in target.errors:
        kind = target.errors[unit.topic]
        return NotAudited(
            unit.topic,
            reason_for_error(kind),
            f"{unit.topic} on {unit.cluster} cannot be read ({kind})",
            unit.flows,
        )
    if unit.topic not in target.counts:
        return NotAudited(
            unit.topic,
            NotAuditedReason.TARGET_MISSING,
            f"{unit.topic} does not exist on {unit.cluster}; it is the copy of "
            + " and ".join(f"{feed.topic} on {feed.flow.flow.source}" for feed in unit.feeds),
            unit.flows,
        )
    counts = tuple(listings[feed.flow.flow.source].counts[feed.topic] for feed in unit.feeds)
    return ReachableUnit(unit, target.counts[unit.topic], counts)


def _may_feed(flow: FlowConfig, topic: str) -> bool:
    """Whether a flow whose topics are unknown may write *topic* under the same name."""
    if flow.policy.kind is not PolicyKind.IDENTITY:
        return False
    return TopicFilter(flow.topics, flow.topics_exclude).matches(topic)


def _sources_missing(
    flows: Sequence[FlowConfig], listings: Mapping[str, ClusterTopics]
) -> Iterator[NotAudited]:
    """Copies whose source topic is missing, if the name identifies the source."""
    for flow in flows:
        if flow.policy.kind is PolicyKind.IDENTITY:
            continue
        policy = replication_policy(flow)
        source, target = listings[flow.flow.source], listings[flow.flow.target]
        for topic in sorted(target.counts):
            # A policy takes any first part of a name for an alias, as that of `orders.v1`.
            is_copy = policy.topic_source(topic) == flow.flow.source
            original = policy.upstream_topic(topic) if is_copy else None
            if original is None or original in source.counts or policy.is_internal_topic(topic):
                continue
            if any(plan_units([flow], {flow.flow.source: [original]})):
                yield NotAudited(
                    topic,
                    NotAuditedReason.SOURCE_MISSING,
                    f"{original} does not exist on {flow.flow.source}, or is not visible",
                    (flow.flow,),
                )
