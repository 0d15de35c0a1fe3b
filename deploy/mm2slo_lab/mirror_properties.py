"""Properties of MirrorMaker 2 in the lab (pure).

Intervals are one second instead of the defaults of one to ten minutes, but settings of topics are
synced once an hour; `mm2_properties` of the topology override them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.topology import Flow
    from mm2slo_lab.lab_topology import LabTopology

CONNECTOR_SETTINGS = {
    "topics": ".*",
    "groups": ".*",
    "tasks.max": "2",
    "replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "refresh.topics.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "emit.heartbeats.interval.seconds": "1",
    "sync.topic.acls.enabled": "false",
    # `fail_task` lowers a limit of a copy, which the default of ten minutes restores meanwhile.
    "sync.topic.configs.interval.seconds": "3600",
    "consumer.poll.timeout.ms": "500",
}
STORAGE_SETTINGS = {
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "1",
    "status.storage.replication.factor": "1",
    "status.storage.partitions": "1",
    "config.storage.replication.factor": "1",
}
# Scanning 94 jars, once for the process and once per herder, takes five seconds; Kafka's connectors
# support service loading (KIP-898).
_DISCOVERY = {"plugin.discovery": "service_load"}
# Workers read these only with the prefix of the target.
WORKER_SETTINGS = {
    "offset.flush.interval.ms": "1000",
    "scheduled.rebalance.max.delay.ms": "1000",
    # Tasks of a killed worker are reassigned after this time.
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1500",
    **_DISCOVERY,
}


def mirror_properties(
    topology: LabTopology, clients: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """Return the properties of a process with all flows; *clients* are Java properties by alias.

    A herder starts for every ordered pair unless both the flow and its heartbeats are disabled
    (`MirrorMakerConfig.clusterPairs`, KAFKA-10710). Heartbeats stay enabled for the reverse of a
    flow: it writes those that the flow replicates.
    """
    properties = {"clusters": ", ".join(topology.clusters)}
    for alias in topology.clusters:
        settings = {**clients[alias], **WORKER_SETTINGS}
        properties |= {f"{alias}.{key}": value for key, value in settings.items()}
    for pair in topology.pairs:
        properties |= _switches(topology, pair)
    return {
        **properties,
        **_DISCOVERY,
        **CONNECTOR_SETTINGS,
        **STORAGE_SETTINGS,
        **topology.mm2_properties,
    }


def _switches(topology: LabTopology, pair: Flow) -> dict[str, str]:
    beats = pair in topology.flows or pair.reverse in topology.flows
    return {
        f"{pair.label}.enabled": _java(flag=pair in topology.flows),
        f"{pair.label}.emit.heartbeats.enabled": _java(flag=beats),
    }


def _java(*, flag: bool) -> str:
    return "true" if flag else "false"
