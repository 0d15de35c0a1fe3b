"""MirrorMaker 2's properties file, as the lab runs it (pure).

Intervals are a second where MirrorMaker 2's own are one to ten minutes, so that a test sees what
a day of operation would show; every one can be overridden by the topology's `mm2_properties`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.topology import Flow
    from mm2slo_lab.topology import LabTopology

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
    "consumer.poll.timeout.ms": "500",
}
STORAGE_SETTINGS = {
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "1",
    "status.storage.replication.factor": "1",
    "status.storage.partitions": "1",
    "config.storage.replication.factor": "1",
}
# Looking into every class of 94 jars, once for the file and once for each herder, takes five
# seconds; Kafka's own connectors announce themselves (KIP-898).
_DISCOVERY = {"plugin.discovery": "service_load"}
# Read by the worker from the target's keys only: without the prefix they are ignored.
WORKER_SETTINGS = {
    "offset.flush.interval.ms": "1000",
    "scheduled.rebalance.max.delay.ms": "1000",
    # A killed worker is missed after this time, and its tasks wait for it.
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1500",
    **_DISCOVERY,
}


def mirror_properties(
    topology: LabTopology, clients: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """The file of one process that runs all flows; *clients* holds each cluster's Java settings.

    A herder starts for every ordered pair unless both the flow and its heartbeats are off
    (`MirrorMakerConfig.clusterPairs`, KAFKA-10710). The reverse of a flow keeps its heartbeats:
    it writes those on the source that the flow then copies.
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
