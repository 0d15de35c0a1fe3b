"""What the connectors of a flow run with, read as the exporter reads it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mm2slo_audit.scope.topic_reader import read_to_end
from mm2slo_core.config.flow_config import SettingsSource
from mm2slo_core.internal_topics import internal_topics
from mm2slo_core.mm2_config.observed_settings import (
    RunningConnectors,
    observed_flow,
    overridden_settings,
    setting_differences,
)
from mm2slo_core.records import DecodeError, SourceOffset
from mm2slo_core.topic_selection import replication_policy
from mm2slo_core.transactional_commits import TransactionalCommits
from mm2slo_kafka.connector_configs import ConnectorConfigs
from mm2slo_kafka.kafka_errors import KafkaOperationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mm2slo_core.config.flow_config import FlowConfig
    from mm2slo_kafka.cluster_client import ClusterClient

_NAMED: Final = ("offset_syncs_location", "policy.")
"""Settings that decide which topics are read: only named, the configured ones are used."""


def read_connectors(client: ClusterClient, topic: str) -> ConnectorConfigs:
    """The connectors in a configuration topic of Connect. Raises as `read_to_end`."""
    found = ConnectorConfigs()
    for record in read_to_end(client, topic):
        with suppress(DecodeError):
            found.apply(record)
    return found


def commits_in_transactions(
    flow: FlowConfig, client: ClusterClient, connectors: ConnectorConfigs
) -> bool:
    """Whether the worker of *flow* has exactly-once support. Raises as `read_to_end`."""
    connector = flow.connect.source_connector
    if connector not in connectors.fenced:
        return False
    usual = internal_topics(flow.flow, replication_policy(flow)).connect_offsets.topic
    commits = TransactionalCommits()
    topic = flow.connect.offsets_topic or usual

    def is_decided(positions: Mapping[int, int | None]) -> bool:
        # The marker of the newest commit may not have been read yet.
        commits.read_up_to(positions)
        return commits.found is not None

    for record in read_to_end(client, topic, is_enough=is_decided):
        with suppress(DecodeError):
            found = SourceOffset.decode(record.key, record.value)
            if isinstance(found, SourceOffset) and found.connector == connector:
                committed = found.topic_partition
                commits.add(record.partition, record.offset, record.written_at, committed)
    return connectors.is_transactional(connector, commits)


def use_running_settings(
    flow: FlowConfig, client: ClusterClient
) -> tuple[FlowConfig, tuple[str, ...]]:
    """*flow* with the settings of its running connectors, and a sentence for each difference.

    *client* is that of its target. If they cannot be read, a sentence has the reason.
    """
    usual = internal_topics(flow.flow, replication_policy(flow)).connect_configs.topic
    topic = flow.connect.configs_topic or usual
    try:
        connectors = read_connectors(client, topic)
        running = RunningConnectors(
            connectors.by_name, transactional=commits_in_transactions(flow, client, connectors)
        )
    except (KafkaOperationError, TimeoutError) as error:
        return flow, (f"{flow.label}: the configured settings were used, because {error}",)
    return observed_flow(flow, running), tuple(_differences(flow, running))


def _differences(flow: FlowConfig, running: RunningConnectors) -> Iterator[str]:
    is_used = flow.settings is SettingsSource.OBSERVED
    observed = observed_flow(flow.model_copy(update={"settings": SettingsSource.OBSERVED}), running)
    found = [(each, is_used) for each in overridden_settings(flow, observed)]
    found += [
        (each, False)
        for each in setting_differences(flow, running.by_name)
        if each.field.startswith(_NAMED)
    ]
    for (name, configured, used), is_observed in found:
        if name == "transforms":
            continue  # what they mean for an audit is said below
        choice = used if is_observed else configured
        yield (
            f"{flow.label}: {name} is configured as {configured!r}, but MirrorMaker 2 runs with"
            f" {used!r}; the audit used {choice!r}"
        )
    connector = running.by_name.get(flow.connect.source_connector)
    if connector is not None and (transforms := connector.settings.get("transforms")):
        yield (
            f"{flow.label}: MirrorMaker 2 runs with the transforms {transforms}: records that they"
            " leave out count as lost, records that they change as altered, unless"
            " audit.identity leaves these parts out"
        )
