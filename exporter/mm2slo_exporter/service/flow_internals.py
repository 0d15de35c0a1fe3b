"""The internal topics of one flow, followed by the readers of its clusters."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.config.flow_config import SettingsSource
from mm2slo_exporter.collection_health import Health, Stage
from mm2slo_exporter.readers.internal_topics_reader import Subscription
from mm2slo_exporter.readers.internals_store import InternalsStore, InternalTopic
from mm2slo_exporter.state_records.saved_state import SavedState

if TYPE_CHECKING:
    from mm2slo_exporter.observation import InternalsView
    from mm2slo_exporter.readers.internal_topics_reader import InternalTopicsReader
    from mm2slo_exporter.service.cluster_handles import ClusterHandle, FlowClusters
    from mm2slo_exporter.service.flow_policies import FlowPolicies


class _Followed(NamedTuple):
    title: str
    reader: InternalTopicsReader
    subscription: Subscription


class FlowInternals:
    """Follows the topics of a flow; none for engines other than MirrorMaker 2."""

    def __init__(
        self,
        policies: FlowPolicies,
        clusters: FlowClusters,
        state_topic: str,
        health: Health,
        *,
        shared_target: bool,
    ) -> None:
        flow, connect, internal = policies.flow, policies.flow.connect, policies.internal
        target = clusters.target
        self._store = InternalsStore(
            flow_slug=flow.flow.slug,
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
            malformed=lambda kind, reason: health.record_malformed(
                target.client.alias, kind.value, reason
            ),
            dense=not (shared_target or flow.exactly_once),
            detects_transactions=flow.settings is SettingsSource.OBSERVED,
            forgetful_connector=None if flow.keeps_offset_syncs else connect.checkpoint_connector,
        )
        self._state = self._followed(InternalTopic.STATE, target, state_topic)
        self._first: list[_Followed] = []
        self._later: list[_Followed] = []
        """What is followed when the status topic was read: MirrorMaker 2 before Kafka 3.7.1."""
        if not flow.by_mirrormaker:
            return
        on_source = internal.offset_syncs.cluster == flow.flow.source
        syncs = self._followed(
            InternalTopic.OFFSET_SYNCS,
            clusters.source if on_source else target,
            internal.offset_syncs.topic,
        )
        (self._first if flow.keeps_offset_syncs else self._later).append(syncs)
        offsets = connect.offsets_topic or internal.connect_offsets.topic
        status = connect.status_topic or internal.connect_status.topic
        configs = connect.configs_topic or internal.connect_configs.topic
        self._first += [
            self._state,
            self._followed(InternalTopic.CHECKPOINTS, target, internal.checkpoints.topic),
            self._followed(InternalTopic.COMMITTED_OFFSETS, target, offsets),
            self._followed(InternalTopic.STATUS, target, status),
            self._followed(InternalTopic.CONNECTOR_CONFIGS, target, configs),
            self._followed(
                InternalTopic.HEARTBEAT_CONFIGS, clusters.source, policies.heartbeat_configs
            ),
        ]

    def start(self) -> None:
        for each in self._first:
            each.reader.follow(each.subscription)

    def stop(self) -> None:
        for each in (*self._first, *self._later):
            each.reader.unfollow(each.subscription)

    def view(self) -> InternalsView:
        """The current state, and the topics that have not been read to their end yet."""
        state = self._state.subscription
        # A denied state topic leaves losses pending; a new one has no earlier state.
        optional = state if state.is_denied or state.was_absent else None
        view = self._store.view(
            tuple(
                each.title
                for each in (*self._first, *self._later)
                if not (each.subscription.is_optional or each.subscription.is_complete)
                and each.subscription is not optional
            )
        )
        return view if state.is_complete else replace(view, saved=SavedState())

    def _followed(self, kind: InternalTopic, cluster: ClusterHandle, topic: str) -> _Followed:
        is_of_opposite = kind is InternalTopic.HEARTBEAT_CONFIGS
        return _Followed(
            f"{topic} on {cluster.client.alias}",
            cluster.internals,
            Subscription(
                topic,
                Stage.CONNECTOR_CONFIGS if is_of_opposite else Stage(kind.value),
                apply=partial(self._store.apply, kind),
                read_up_to=partial(self._store.read_up_to, kind),
                clear=partial(self._store.clear, kind),
                on_complete=self._follow_later if kind is InternalTopic.STATUS else lambda: None,
                is_optional=is_of_opposite,
            ),
        )

    def _follow_later(self) -> None:
        for each in self._later:
            each.reader.follow(each.subscription)
