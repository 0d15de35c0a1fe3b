"""The mm2slo.yaml of a lab (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from mm2slo_lab import connect_properties as connect_worker
from mm2slo_lab.kafka_versions import release_line
from mm2slo_lab.lab_topology import Engine
from mm2slo_lab.mirror_properties import CONNECTOR_SETTINGS, WORKER_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.topology import Flow
    from mm2slo_lab.lab_topology import LabTopology


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
    # Keys of a flow override all others (MirrorMakerConfig.connectorBaseConfig).
    prefix = f"{flow.label}."
    given |= {
        key.removeprefix(prefix): value for key, value in given.items() if key.startswith(prefix)
    }
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
    if topology.engine is Engine.CONNECT:
        entry["connect"] = {
            "offsets_topic": connect_worker.OFFSETS_TOPIC,
            "status_topic": connect_worker.STATUS_TOPIC,
            "configs_topic": connect_worker.CONFIGS_TOPIC,
            "source_connector": connect_worker.connector_name(flow, connect_worker.SOURCE),
            "checkpoint_connector": connect_worker.connector_name(flow, connect_worker.CHECKPOINT),
            "heartbeat_connector": connect_worker.connector_name(flow, connect_worker.HEARTBEAT),
        }
    return entry


def _topics_excluded(topology: LabTopology) -> str:
    if topology.engine is Engine.CONNECT:
        return connect_worker.topics_excluded(topology)
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
