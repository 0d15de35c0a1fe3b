"""Which units can be audited at all: clusters that answer, topics that exist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from mm2slo_audit.scope.audit_units import Unit, plan_units, select_units
from mm2slo_audit.scope.not_audited_reasons import failed, reason_for_error
from mm2slo_audit.scope.topic_listing import TopicListing, list_cluster_topics
from mm2slo_core.audit.audit_scope import NotAudited, NotAuditedReason
from mm2slo_core.config.flow_config import PolicyKind
from mm2slo_core.name_filters import TopicFilter
from mm2slo_core.replication_policy import lineage
from mm2slo_core.topic_selection import replication_policy
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mm2slo_core.config import Config
    from mm2slo_core.config.flow_config import FlowConfig
    from mm2slo_kafka.cluster_client import ClusterClient
    from mm2slo_kafka.kafka_errors import KafkaOperationError


@dataclass(frozen=True, slots=True)
class ReachableUnit:
    """A unit whose topics exist, with their numbers of partitions."""

    unit: Unit
    partitions: int
    source_partitions: tuple[int, ...]
    """Of each feed."""


@dataclass(frozen=True, slots=True)
class ReachableUnits:
    """What a run can look at, and what it cannot and why."""

    units: tuple[ReachableUnit, ...]
    not_audited: tuple[NotAudited, ...]

    @classmethod
    def find(
        cls,
        config: Config,
        chosen: Sequence[FlowConfig],
        topics: Sequence[str],
        clients: Mapping[str, ClusterClient],
    ) -> Self:
        """The units of the *chosen* flows, with all configured flows that feed them.

        Raises UserError when none of the flows can be asked, or none copies a topic of *topics*.
        """
        targets = {flow.flow.target for flow in chosen}
        flows = [flow for flow in config.flows if flow.flow.target in targets]
        aliases = targets | {flow.flow.source for flow in flows}
        listings, problems = list_cluster_topics(clients, aliases)
        away = {flow.label: problem for flow in flows if (problem := _away(flow, problems))}
        if all(flow.label in away for flow in chosen):
            raise UserError(str(away[chosen[0].label]))
        asked = [flow for flow in flows if flow.label not in away]
        labels = {flow.label for flow in chosen}
        units = plan_units(
            asked,
            {alias: listing.counts for alias, listing in listings.items()},
            _ours(config),
        )
        units = select_units(units, labels, topics)
        reached: list[ReachableUnit] = []
        refused = [
            failed(flow.label, away[flow.label], (flow.flow,))
            for flow in chosen
            if flow.label in away
        ]
        unasked = [flow for flow in flows if flow.label in away]
        for unit in units:
            found = _reached(unit, listings, unasked)
            if isinstance(found, ReachableUnit):
                reached.append(found)
            else:
                refused.append(found)
        if not topics:
            refused += _sources_missing([flow for flow in asked if flow.label in labels], listings)
        return cls(tuple(reached), tuple(refused))


def _ours(config: Config) -> frozenset[str]:
    return frozenset({config.exporter.timeline.topic})


def _away(
    flow: FlowConfig, problems: Mapping[str, KafkaOperationError]
) -> KafkaOperationError | None:
    return problems.get(flow.flow.source) or problems.get(flow.flow.target)


def _reached(
    unit: Unit, listings: Mapping[str, TopicListing], away: Sequence[FlowConfig]
) -> ReachableUnit | NotAudited:
    target = listings[unit.cluster]
    for flow in away:
        if flow.flow.target == unit.cluster and _may_feed(flow, unit.topic):
            return NotAudited(
                unit.topic,
                NotAuditedReason.UNREACHABLE,
                f"{flow.label} may feed it as well, and its source could not be asked",
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
            f"there is no {unit.topic} on {unit.cluster}, the copy of "
            + " and ".join(f"{feed.topic} on {feed.flow.flow.source}" for feed in unit.feeds),
            unit.flows,
        )
    counts = tuple(listings[feed.flow.flow.source].counts[feed.topic] for feed in unit.feeds)
    return ReachableUnit(unit, target.counts[unit.topic], counts)


def _may_feed(flow: FlowConfig, topic: str) -> bool:
    """Whether a flow whose topics are not known may write *topic* under its own name."""
    if flow.policy.kind is not PolicyKind.IDENTITY:
        return False
    return TopicFilter(flow.topics, flow.topics_exclude).matches(topic)


def _sources_missing(
    flows: Sequence[FlowConfig], listings: Mapping[str, TopicListing]
) -> Iterator[NotAudited]:
    """Copies on the target whose source topic is gone, where the name tells the source."""
    for flow in flows:
        if flow.policy.kind is PolicyKind.IDENTITY:
            continue
        policy = replication_policy(flow)
        source, target = listings[flow.flow.source], listings[flow.flow.target]
        for topic in sorted(target.counts):
            hops = lineage(policy, topic, (flow.flow.source,)).hops
            original = policy.upstream_topic(topic) if hops else None
            if original is None or original in source.counts or policy.is_internal_topic(topic):
                continue
            if any(plan_units([flow], {flow.flow.source: [original]})):
                yield NotAudited(
                    topic,
                    NotAuditedReason.SOURCE_MISSING,
                    f"there is no {original} on {flow.flow.source}, or it may not be seen",
                    (flow.flow,),
                )
