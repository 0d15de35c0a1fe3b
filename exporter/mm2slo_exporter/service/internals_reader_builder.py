"""Builds the reader of a flow's internal topics from its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.config.flow_config import SettingsSource
from mm2slo_exporter.readers.internals_reader import InternalsReader, InternalTopicLocation
from mm2slo_exporter.readers.internals_store import InternalsStore, InternalTopic

if TYPE_CHECKING:
    from mm2slo_exporter.collection_health import Health
    from mm2slo_exporter.service.cluster_handles import FlowClusters
    from mm2slo_exporter.service.flow_policies import FlowPolicies


def internals_reader(
    policies: FlowPolicies, clusters: FlowClusters, health: Health, *, shared_target: bool
) -> InternalsReader:
    """The reader of one flow; without topics for engines other than MirrorMaker 2."""
    flow, connect = policies.flow, policies.flow.connect
    target = clusters.target.client.alias
    store = InternalsStore(
        source_alias=flow.flow.source,
        source_connector=connect.source_connector,
        connectors=frozenset(
            {
                connect.source_connector,
                connect.checkpoint_connector,
                connect.heartbeat_connector,
            }
        ),
        heartbeat_connector=policies.heartbeat_connector,
        malformed=lambda kind, reason: health.record_malformed(target, kind.value, reason),
        dense=not (shared_target or flow.exactly_once),
        detects_transactions=flow.settings is SettingsSource.OBSERVED,
        forgetful_connector=None if flow.keeps_offset_syncs else connect.checkpoint_connector,
    )
    locations = _locations(policies, clusters) if flow.by_mirrormaker else ()
    return InternalsReader(flow.label, locations, store, health)


def _locations(policies: FlowPolicies, clusters: FlowClusters) -> tuple[InternalTopicLocation, ...]:
    flow, connect, internal = policies.flow, policies.flow.connect, policies.internal
    source, target = clusters.source.client, clusters.target.client
    return (
        InternalTopicLocation(
            InternalTopic.OFFSET_SYNCS,
            source if internal.offset_syncs.cluster == flow.flow.source else target,
            internal.offset_syncs.topic,
            after=None if flow.keeps_offset_syncs else InternalTopic.STATUS,
        ),
        InternalTopicLocation(InternalTopic.CHECKPOINTS, target, internal.checkpoints.topic),
        InternalTopicLocation(
            InternalTopic.COMMITTED_OFFSETS,
            target,
            connect.offsets_topic or internal.connect_offsets.topic,
        ),
        InternalTopicLocation(
            InternalTopic.STATUS, target, connect.status_topic or internal.connect_status.topic
        ),
        InternalTopicLocation(
            InternalTopic.CONNECTOR_CONFIGS,
            target,
            connect.configs_topic or internal.connect_configs.topic,
        ),
        InternalTopicLocation(
            InternalTopic.HEARTBEAT_CONFIGS, source, policies.heartbeat_configs, optional=True
        ),
    )
