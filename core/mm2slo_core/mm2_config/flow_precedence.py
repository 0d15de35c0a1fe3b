"""Which settings of dedicated mode reach a cluster's clients, a connector and a worker.

As `clusterProps`, `connectorBaseConfig`, `workerConfig` and `clusterPairs` of Kafka's
`MirrorMakerConfig`. What Kafka adds itself (`name`, `source.cluster.alias`) is left out.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from mm2slo_core.internal_topics import connect_topic
from mm2slo_core.mm2_config.connector_keys import CLIENT_KEYS, RENAMED, TOP_LEVEL_KEYS
from mm2slo_core.mm2_config.mirror_setup import Worker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.mm2_config.mirror_setup import Setting, Settings
    from mm2slo_core.topology import Flow

_CLIENTS: Final = ("producer", "consumer", "admin")
_CONNECTOR_PREFIXES: Final = ("config.providers", "replication.policy")
WORKER_PREFIXES: Final = (
    *("offset.storage", "config.storage", "status.storage", "key.converter", "value.converter"),
    *("header.converter", "task", "worker", *_CONNECTOR_PREFIXES),
)
"""Keys without an alias that reach workers, where they override those of the target cluster."""


class DedicatedSettings:
    """The settings of one file, by what they reach; *clusters* are those with a valid alias."""

    def __init__(self, properties: Settings, aliases: Iterable[str]) -> None:
        self._properties = properties
        # By the flow's source, so that a file with many flows is not searched for each of them.
        self._by_source: defaultdict[str, dict[str, Setting]] = defaultdict(dict)
        for key, each in properties.items():
            if "->" in key:
                self._by_source[key.partition("->")[0]][key] = each
        self._for_workers = {
            key: each for key, each in properties.items() if key.startswith(WORKER_PREFIXES)
        }
        self._for_connectors = {
            key: each
            for key, each in properties.items()
            if key in TOP_LEVEL_KEYS or key.startswith(_CONNECTOR_PREFIXES)
        }
        self.clusters = {alias: self._cluster(alias) for alias in aliases}

    def _cluster(self, alias: str) -> Settings:
        settings = _stripped(self._properties, f"{alias}.")
        own = {key: settings[key] for key in CLIENT_KEYS & settings.keys()}
        shared = {key: self._properties[key] for key in CLIENT_KEYS & self._properties.keys()}
        inherited = (shared | own).items()
        clients = {f"{client}.{key}": each for client in _CLIENTS for key, each in inherited}
        return clients | shared | settings

    def connector(self, flow: Flow) -> Settings:
        """What the three connectors of *flow* have in common, under new names."""
        merged = dict(self._for_connectors)
        for side, alias in (("source", flow.source), ("target", flow.target)):
            for key, each in self.clusters[alias].items():
                prefix = side if key.startswith(_CLIENTS) else f"{side}.cluster"
                merged[f"{prefix}.{key}"] = each
        merged |= _stripped(self._by_source[flow.source], f"{flow.label}.")
        # A new name wins, wherever it is written (ConfigUtils.translateDeprecatedConfigs).
        renamed = {RENAMED[key]: merged.pop(key) for key in RENAMED.keys() & merged.keys()}
        return renamed | merged

    def worker(self, flow: Flow) -> Worker:
        settings = {**self.clusters[flow.target], **self._for_workers}
        kinds = ("offsets", "status", "configs")
        topics = {f"{kind}_topic": connect_topic(kind, flow.source) for kind in kinds}
        return Worker.of(settings, group_id=f"{flow.source}-mm2", **topics)

    def of_flow(self, flow: Flow, key: str) -> Setting | None:
        """A setting with the prefix of the flow, or without any."""
        return self._properties.get(f"{flow.label}.{key}", self._properties.get(key))

    def has_herder(self, flow: Flow) -> bool:
        """Whether dedicated mode starts a herder, if only for heartbeats (KAFKA-10710)."""
        enabled = self._properties.get(f"{flow.label}.enabled")
        heartbeats = self.of_flow(flow, "emit.heartbeats.enabled")
        return _is_true(enabled) or heartbeats is None or _is_true(heartbeats)


def _is_true(setting: Setting | None) -> bool:
    # As Boolean.parseBoolean: with a space or a comment after it, `true` is false.
    return setting is not None and setting.value.lower() == "true"


def client_settings(cluster: Settings) -> Settings:
    """What a client needs in order to connect to a cluster with the settings *cluster*."""
    return {
        key: each
        for key, each in cluster.items()
        if key in CLIENT_KEYS or key.startswith(("ssl.", "sasl.", "security."))
    }


def _stripped(settings: Settings, prefix: str) -> dict[str, Setting]:
    return {
        key.removeprefix(prefix): each
        for key, each in settings.items()
        if key.startswith(prefix) and key != prefix
    }
