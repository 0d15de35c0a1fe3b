"""Properties of MirrorMaker 2, Kafka Connect and the mirror connectors; the mm2slo.yaml (pure).

Intervals are one second instead of the defaults of one to ten minutes, but settings of topics are
synced once an hour; `mm2_properties` of the topology override them. Connectors are as deployed by
Strimzi.
"""

from collections.abc import Mapping
from typing import Any

import yaml

from mm2slo_core.topology import Flow
from mm2slo_lab.lab_topology import LabEngine, LabTopology, release_line
from mm2slo_lab.managed_process import HOST

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
        f"{pair.label}.enabled": str(pair in topology.flows).lower(),
        f"{pair.label}.emit.heartbeats.enabled": str(beats).lower(),
    }


OFFSETS_TOPIC = "connect-offsets"
STATUS_TOPIC = "connect-status"
CONFIGS_TOPIC = "connect-configs"
SOURCE = "MirrorSourceConnector"
CHECKPOINT = "MirrorCheckpointConnector"
HEARTBEAT = "MirrorHeartbeatConnector"
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_CONVERTERS = {f"{part}.converter": _BYTES for part in ("key", "value", "header")}


def worker_properties(client: Mapping[str, str], rest_port: int) -> dict[str, str]:
    """Return the properties of a distributed worker on the target of its connectors."""
    roles = ("", "producer.", "consumer.", "admin.")
    security = {key: value for key, value in client.items() if key != "bootstrap.servers"}
    return {
        "bootstrap.servers": client["bootstrap.servers"],
        **{f"{role}{key}": value for role in roles for key, value in security.items()},
        "group.id": "mirror-connect",
        "offset.storage.topic": OFFSETS_TOPIC,
        "status.storage.topic": STATUS_TOPIC,
        "config.storage.topic": CONFIGS_TOPIC,
        "listeners": f"http://{HOST}:{rest_port}",
        **_CONVERTERS,
        **STORAGE_SETTINGS,
        **WORKER_SETTINGS,
    }


def topics_excluded(topology: LabTopology) -> str:
    """Return MirrorMaker 2's default plus the internal topics of Connect.

    MirrorMaker 2 does not treat those as internal. If they were replicated, each offset commit
    would create another record to replicate.
    """
    return f"{release_line(topology.kafka_version).topics_excluded}, connect-.*"


def connector_name(flow: Flow, connector: str) -> str:
    """Return the name as in Strimzi, for example `us->eu.MirrorSourceConnector`."""
    return f"{flow.label}.{connector}"


def connectors(
    topology: LabTopology, pair: Flow, clients: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, str]]:
    """Return the connector configurations of *pair* by name.

    A flow has all three. If only the reverse flow exists, *pair* has the heartbeat connector: it
    writes the heartbeats that the reverse flow replicates.
    """
    if pair in topology.flows:
        kinds: tuple[str, ...] = (SOURCE, CHECKPOINT, HEARTBEAT)
    else:
        kinds = (HEARTBEAT,) if pair.reverse in topology.flows else ()
    properties = topology.mm2_properties
    given = {key: value for key, value in properties.items() if "->" not in key}
    given |= _flow_properties(properties, pair)
    common = {
        "source.cluster.alias": pair.source,
        "target.cluster.alias": pair.target,
        **{f"source.cluster.{key}": value for key, value in clients[pair.source].items()},
        **{f"target.cluster.{key}": value for key, value in clients[pair.target].items()},
        **_CONVERTERS,
        **CONNECTOR_SETTINGS,
        "topics.exclude": topics_excluded(topology),
        **given,
    }
    return {
        connector_name(pair, kind): {
            **common,
            "connector.class": f"org.apache.kafka.connect.mirror.{kind}",
        }
        for kind in kinds
    }


def _flow_properties(properties: Mapping[str, str], flow: Flow) -> dict[str, str]:
    """Keys of a flow, which override all others (MirrorMakerConfig.connectorBaseConfig)."""
    prefix = f"{flow.label}."
    own = (key for key in properties if key.startswith(prefix))
    return {key.removeprefix(prefix): properties[key] for key in own}


def render_config(
    topology: LabTopology,
    clusters: Mapping[str, Mapping[str, Any]],
    *,
    flow: Mapping[str, Any] | None = None,
    exporter: Mapping[str, Any] | None = None,
) -> str:
    """Render the configuration for all flows of *topology*; *clusters* are entries by alias.

    *flow* is merged into each flow, *exporter* into the exporter section.
    """
    document: dict[str, Any] = {
        "clusters": {alias: dict(entry) for alias, entry in clusters.items()},
        "flows": [
            {"flow": found.label, **_flow(topology, found), **(flow or {})}
            for found in topology.flows
        ],
    }
    if exporter:
        document["exporter"] = dict(exporter)
    return yaml.safe_dump(document, sort_keys=False)


def _flow(topology: LabTopology, flow: Flow) -> dict[str, Any]:
    """Translate the MirrorMaker 2 properties of *flow* to configuration keys."""
    given = {
        **CONNECTOR_SETTINGS,
        "topics.exclude": _topics_excluded(topology),
        **{f"{flow.target}.{key}": value for key, value in WORKER_SETTINGS.items()},
        **topology.mm2_properties,
    }
    given |= _flow_properties(given, flow)
    entry: dict[str, Any] = {
        "engine": "mirrormaker2",
        "policy": _policy(topology, given),
        "offset_flush_interval": f"{given[f'{flow.target}.offset.flush.interval.ms']}ms",
        "checkpoint_interval": f"{given['emit.checkpoints.interval.seconds']}s",
        "heartbeat_interval": f"{given['emit.heartbeats.interval.seconds']}s",
        "exactly_once": given.get(f"{flow.target}.exactly.once.source.support") == "enabled",
    }
    plain = {
        "offset_syncs_location": "offset-syncs.topic.location",
        "isolation": f"{flow.source}.consumer.isolation.level",
    }
    entry |= {name: given[key] for name, key in plain.items() if key in given}
    lists = ("topics", "topics.exclude", "groups", "groups.exclude", "config.properties.exclude")
    entry |= {key.replace(".", "_"): _listed(given[key]) for key in lists if key in given}
    if topology.engine is LabEngine.CONNECT:
        entry["connect"] = {
            "offsets_topic": OFFSETS_TOPIC,
            "status_topic": STATUS_TOPIC,
            "configs_topic": CONFIGS_TOPIC,
            "source_connector": connector_name(flow, SOURCE),
            "checkpoint_connector": connector_name(flow, CHECKPOINT),
            "heartbeat_connector": connector_name(flow, HEARTBEAT),
        }
    return entry


def _topics_excluded(topology: LabTopology) -> str:
    if topology.engine is LabEngine.CONNECT:
        return topics_excluded(topology)
    return release_line(topology.kafka_version).topics_excluded


def _policy(topology: LabTopology, given: Mapping[str, str]) -> dict[str, Any]:
    internal = given.get("replication.policy.internal.topic.separator.enabled", "true")
    return {
        "kind": "identity" if topology.identity else "default",
        "separator": topology.separator,
        "internal_separator": internal == "true",
    }


def _listed(patterns: str) -> list[str]:
    return [pattern.strip() for pattern in patterns.split(",")]
