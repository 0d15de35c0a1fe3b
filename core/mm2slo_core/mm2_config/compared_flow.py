"""A flow of a configuration, with the names that it selects and writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.internal_topics import internal_topics
from mm2slo_core.java_values import split_list
from mm2slo_core.mm2_config.connector_keys import kafka_release
from mm2slo_core.mm2_config.flow_settings import flow_section
from mm2slo_core.mm2_config.mirror_setup import ConnectorKind
from mm2slo_core.mm2_config.setting_effects import effective_values
from mm2slo_core.name_filters import GroupFilter
from mm2slo_core.replication_policy import DEFAULT_VERSION
from mm2slo_core.topic_selection import replicated_topics, replication_policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from mm2slo_core.mm2_config.mirror_setup import Connector, Form, MirrorFlow, MirrorSetup
    from mm2slo_core.replication_policy import KafkaVersion, ReplicationPolicy
    from mm2slo_core.topology import Flow

_SOURCE, _CHECKPOINT, _ = ConnectorKind


class SourceNames(NamedTuple):
    """Topics and groups of a source cluster; None if not known."""

    topics: frozenset[str] | None = None
    groups: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class ComparedFlow:
    """A flow before or after. *config* is None if it cannot be interpreted.

    *connectors* are those that work, *servers* those of the source and of the target.
    """

    flow: MirrorFlow
    connectors: Mapping[ConnectorKind, Connector]
    config: FlowConfig | None
    version: KafkaVersion | None
    form: Form
    servers: tuple[frozenset[str], ...]

    @property
    def release(self) -> KafkaVersion:
        return self.version or DEFAULT_VERSION

    @property
    def policy(self) -> ReplicationPolicy | None:
        return replication_policy(self.config, self.release) if self.config else None

    def copy_of(self, topic: str) -> str | None:
        return self.policy.remote_topic(self.flow.flow.source, topic) if self.policy else None

    def copies(self, names: SourceNames) -> dict[str, str] | None:
        """Names of copies by topic; None if not known."""
        if self.config is None or names.topics is None:
            return None
        pairs = replicated_topics(self.config, names.topics, version=self.release)
        return {pair.source: pair.target for pair in pairs}

    def groups(self, names: SourceNames) -> frozenset[str] | None:
        """Groups whose offsets are translated; None if not known."""
        if not self.connectors.keys() >= {_SOURCE, _CHECKPOINT}:
            return frozenset()
        if self.config is None or names.groups is None:
            return None
        selected = GroupFilter(self.config.groups, self.config.groups_exclude)
        return frozenset(filter(selected.matches, names.groups))

    def values(self, kinds: AbstractSet[ConnectorKind]) -> dict[str, str]:
        """What can differ between flows that have the connectors *kinds* in common."""
        found = effective_values(self.flow, kinds, self.version, self.form)
        if kinds >= {_SOURCE, _CHECKPOINT} and self.config and self.policy:
            location = self.config.offset_syncs_location
            topics = internal_topics(self.flow.flow, self.policy, location)
            found["offset syncs"] = f"{topics.offset_syncs.topic} on the {location}"
            found["checkpoints"] = topics.checkpoints.topic
        if _SOURCE in kinds:
            found["source servers"], found["target servers"] = map(",".join, self.servers)
        return found

    def offset_topics(self) -> list[str]:
        worker, own = self.flow.worker, self.connectors[_SOURCE].settings
        settings = (own.get("offsets.storage.topic"), worker.settings.get("offset.storage.topic"))
        return [*filter(None, [worker.offsets_topic]), *(each.value for each in settings if each)]


def read_flows(
    setups: Sequence[MirrorSetup], version: str | None, notes: list[str]
) -> dict[Flow, ComparedFlow]:
    """The flows of *setups*; adds to *notes* what cannot be interpreted."""
    clusters = {alias: each.client for setup in setups for alias, each in setup.clusters.items()}
    found = {}
    for flow, where in ((flow, setup) for setup in setups for flow in setup.flows):
        section, findings = flow_section(flow, version, providers=where.providers)
        errors = [each for each in findings if each.is_error]
        notes += (
            f"{each.origin}: names of {flow.flow} are not compared: {each.what}" for each in errors
        )
        servers = (
            clusters.get(alias, {}).get("bootstrap.servers")
            for alias in (flow.flow.source, flow.flow.target)
        )
        found[flow.flow] = ComparedFlow(
            flow,
            flow.working_connectors,
            None if errors else FlowConfig.model_validate(section),
            kafka_release(version or ""),
            where.form,
            tuple(frozenset(split_list(each.value) if each else ()) for each in servers),
        )
    return found
