"""Properties of Kafka Connect and the mirror connectors, as deployed by Strimzi (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_lab.kafka_versions import release_line
from mm2slo_lab.mirror_properties import CONNECTOR_SETTINGS, STORAGE_SETTINGS, WORKER_SETTINGS
from mm2slo_lab.ports import HOST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.topology import Flow
    from mm2slo_lab.lab_topology import LabTopology

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
    # Keys of a flow override all others, as in dedicated mode.
    prefix = f"{pair.label}."
    given |= {
        key.removeprefix(prefix): value
        for key, value in properties.items()
        if key.startswith(prefix)
    }
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
