"""Translates a `KafkaMirrorMaker2` to clusters, flows and workers.

Names, defaults and precedence are those of Strimzi's `KafkaMirrorMaker2Configuration` and
`KafkaMirrorMaker2Connectors`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mm2slo_core.config.suggestion import suggest_typo
from mm2slo_core.mm2_config import mirror_setup, strimzi_resource
from mm2slo_core.mm2_config.connector_keys import RENAMED, WORKER_KEYS, connector_key
from mm2slo_core.mm2_config.flow_precedence import client_settings
from mm2slo_core.mm2_config.mirror_setup import ConnectorKind, MirrorSetup, ProviderKind, Setting
from mm2slo_core.mm2_config.provider_references import read_providers
from mm2slo_core.mm2_config.strimzi_resource import Authentication, written_keys
from mm2slo_core.mm2_config.strimzi_security import cluster_settings
from mm2slo_core.topology import Flow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.config.config_problems import Path
    from mm2slo_core.mm2_config.resource_text import ResourceText
    from mm2slo_core.mm2_config.strimzi_resource import Cluster, Mirror, Spec

_BYTES: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"
_WORKER_DEFAULTS: Final = {
    "group.id": "mirrormaker2-cluster",
    "offset.storage.topic": "mirrormaker2-cluster-offsets",
    "config.storage.topic": "mirrormaker2-cluster-configs",
    "status.storage.topic": "mirrormaker2-cluster-status",
    **dict.fromkeys(("key.converter", "value.converter", "header.converter"), _BYTES),
}
_TARGET_KEYS: Final = {
    "groupId": "group.id",
    "offsetStorageTopic": "offset.storage.topic",
    "configStorageTopic": "config.storage.topic",
    "statusStorageTopic": "status.storage.topic",
}
_PROVIDERS: Final = {
    "secret": ProviderKind.SECRET,  # of the references to what the resource names
    "strimzisecrets": ProviderKind.SECRET,
    "strimzienv": ProviderKind.ENV,
    "strimzifile": ProviderKind.FILE,
    "strimzidir": ProviderKind.DIRECTORY,
    "file": ProviderKind.FILE,  # the default of older versions
}
_PATTERNS: Final = {
    "topics": ("topicsPattern",),
    "topics.exclude": ("topicsExcludePattern", "topicsBlacklistPattern"),
    "groups": ("groupsPattern",),
    "groups.exclude": ("groupsExcludePattern", "groupsBlacklistPattern"),
}
_OWN_CONNECTOR_KEYS: Final = {"name", "connector.class", "tasks.max", "connector.plugin.version"}
# Where keys of the resource belong; later parts win.
_PLACES: Final = {
    str(info.alias): place
    for part, place in (
        (Authentication, "the authentication of a cluster"),
        (strimzi_resource.Cluster, "the source or target of a mirror"),
        (strimzi_resource.Target, "spec.target"),
        (
            strimzi_resource.ConnectorSpec,
            "sourceConnector, checkpointConnector or heartbeatConnector",
        ),
        (strimzi_resource.Mirror, "spec.mirrors[]"),
        (strimzi_resource.Spec, "spec"),
    )
    for info in part.model_fields.values()
    if str(info.alias) not in {"alias", "type", "config"}
}
_REMOVED_IN_V1: Final = {
    "connectCluster": "spec.target",
    "clusters": "spec.target and spec.mirrors[].source",
    "sourceCluster": "source, with the settings of the cluster",
    "targetCluster": "spec.target",
    "heartbeatConnector": "",
    "topicsBlacklistPattern": "topicsExcludePattern",
    "groupsBlacklistPattern": "groupsExcludePattern",
    "pause": "state: paused",
    "metrics": "metricsConfig",
    "externalConfiguration": "template.pod.volumes and template.connectContainer",
    "oauth": "type: custom, with sasl.jaas.config in config",
}


def strimzi_setup(text: ResourceText, spec: Spec, version: str) -> MirrorSetup:
    reader = _Reader(text, spec, version)
    text.require(("spec",), *([] if spec.mirrors else ["mirrors"]))
    reader.check_keys()
    reader.add_clusters()
    worker = reader.worker()
    flows = tuple(reader.flows(worker)) if worker else ()
    providers, unknown = read_providers(worker.settings) if worker else ({}, ())
    findings = {*text.findings, *unknown}
    return MirrorSetup(
        mirror_setup.Form.STRIMZI,
        reader.clusters,
        flows,
        tuple(sorted(findings, key=lambda each: (each.origin.line or 0, each.what))),
        {**_PROVIDERS, **providers},
        spec.version,
    )


@dataclass(slots=True)
class _Reader:
    text: ResourceText
    spec: Spec
    version: str
    clusters: dict[str, mirror_setup.MirrorCluster] = field(default_factory=dict)
    settings: dict[str, dict[str, Setting]] = field(default_factory=dict)

    def check_keys(self) -> None:
        for inner, part in written_keys(self.spec):
            path, key = ("spec", *inner), str(inner[-1])
            known = {str(info.alias) for info in type(part).model_fields.values()}
            name = part.type if key == "type" and isinstance(part, Authentication) else key
            if self.version == "v1" and name in _REMOVED_IN_V1:
                new = _REMOVED_IN_V1[name]
                action = f"write {new}" if new else "remove it; v1 has no replacement"
                self.text.report("removed-key", path, f"{name} was removed in v1", action)
            elif key not in known | part.ignored:
                # Suggestions for a huge number of keys would take a minute.
                close = suggest_typo(key, known) if len(self.text.findings) < 100 else None
                action = f"did you mean {close}?" if close else ""
                place = _PLACES.get(key)
                if connector_key(key) or key in WORKER_KEYS:
                    place = "config"
                action = f"move it to {place}" if place and not close else action
                # Other text than a field's name may be a part of a secret.
                shown = f" {key}" if key.isidentifier() or place else ""
                self.text.report("unknown-key", path, f"unknown key{shown}", action)

    def add_clusters(self) -> None:
        spec = self.spec
        places: list[tuple[Path, Cluster | None]] = [(("spec", "target"), spec.target)]
        for index, mirror in enumerate(spec.mirrors):
            places.append((("spec", "mirrors", index, "source"), mirror.source))
        places += [(("spec", "clusters", index), each) for index, each in enumerate(spec.clusters)]
        for path, cluster in places:
            if cluster is not None and cluster.alias in self.clusters:
                what = f"a second cluster has the alias {cluster.alias}"
                self.text.report("duplicate-alias", (*path, "alias"), what)
            elif cluster is not None:
                settings = self.settings[cluster.alias] = cluster_settings(self.text, cluster, path)
                client, origin = client_settings(settings), self.text.origin(path)
                found = mirror_setup.MirrorCluster(cluster.alias, client, origin)
                self.clusters[cluster.alias] = found

    def worker(self) -> mirror_setup.Worker | None:
        """The worker group, on `target` or `connectCluster`; None if that is not known."""
        target = self.spec.target
        alias = target.alias if target else self.spec.connect_cluster
        if alias is None:
            self.text.require(("spec",), "target" if self.version == "v1" else "connectCluster")
        if alias is None or not self._are_clusters(("spec",), connectCluster=alias):
            return None
        origin = self.text.origin(("spec",))
        settings = {key: Setting(key, value, origin) for key, value in _WORKER_DEFAULTS.items()}
        settings |= self.settings[alias]
        if target is not None:
            written = target.model_dump(by_alias=True, exclude_none=True)
            path: Path = ("spec", "target")
            self.text.require(path, *(name for name in _TARGET_KEYS if name not in written))
            for name in _TARGET_KEYS.keys() & written.keys():
                settings |= self.text.place({_TARGET_KEYS[name]: written[name]}, (*path, name))
        return mirror_setup.Worker.of(settings)

    def _are_clusters(self, path: Path, **aliases: str) -> bool:
        unknown = {key: alias for key, alias in aliases.items() if alias not in self.clusters}
        for key, alias in unknown.items():
            action = f"use one of {', '.join(self.clusters)}, or add the cluster to spec.clusters"
            self.text.report("unknown-cluster", (*path, key), f"no cluster {alias}", action)
        return not unknown

    def flows(self, worker: mirror_setup.Worker) -> Iterator[mirror_setup.MirrorFlow]:
        seen = set()
        for index, mirror in enumerate(self.spec.mirrors):
            path: Path = ("spec", "mirrors", index)
            flow = self._flow(mirror, path)
            if flow in seen or (flow and flow.source == flow.target):
                self.text.report("invalid-flow", path, f"{flow} is a duplicate or a loop")
            elif flow:
                seen.add(flow)
                connectors = dict(self._connectors(flow, mirror, path))
                enabled = ConnectorKind.SOURCE in connectors
                origin = self.text.origin(path)
                yield mirror_setup.MirrorFlow(flow, connectors, worker, origin, enabled)

    def _flow(self, mirror: Mirror, path: Path) -> Flow | None:
        target = self.spec.target
        aliases = {"sourceCluster": mirror.source_cluster, "targetCluster": mirror.target_cluster}
        if target is not None:
            source = mirror.source.alias if mirror.source else None
            aliases = {"source": source, "target": target.alias}
        known = {key: alias for key, alias in aliases.items() if alias is not None}
        self.text.require(path, *(aliases.keys() - known.keys()))
        if len(known) == len(aliases) and self._are_clusters(path, **known):
            return Flow(*known.values())
        return None

    def _connectors(
        self, flow: Flow, mirror: Mirror, path: Path
    ) -> Iterator[tuple[ConnectorKind, mirror_setup.Connector]]:
        clusters = {
            f"{side}.cluster.{key}": each
            for side, alias in (("source", flow.source), ("target", flow.target))
            for key, each in self.settings[alias].items()
        }
        written = mirror.model_dump(by_alias=True, exclude_none=True)
        for name, kind, spec in (
            ("sourceConnector", ConnectorKind.SOURCE, mirror.source_connector),
            ("checkpointConnector", ConnectorKind.CHECKPOINT, mirror.checkpoint_connector),
            ("heartbeatConnector", ConnectorKind.HEARTBEAT, mirror.heartbeat_connector),
        ):
            if spec is None:
                continue
            here = (*path, name)
            config = self.text.settings(spec.config, (*here, "config"))
            old = {RENAMED[key]: config.pop(key) for key in RENAMED.keys() & config.keys()}
            # The cluster's settings come first since v1.
            settings = clusters | old | config if self.version == "v1" else old | config | clusters
            for key in _OWN_CONNECTOR_KEYS & settings.keys():
                what = f"config has {key}, which Strimzi sets itself"
                self.text.report("ignored-key", settings.pop(key).origin, what)
            if spec.tasks_max is not None:
                settings |= self.text.place({"tasks.max": str(spec.tasks_max)}, (*here, "tasksMax"))
            for key, names in _PATTERNS.items():
                for pattern in [each for each in names if each in written][:1]:
                    settings |= self.text.place({key: written[pattern]}, (*path, pattern))
            state = spec.state or ("paused" if spec.pause else "running")
            origin = self.text.origin(here)
            yield kind, mirror_setup.Connector(kind, f"{flow}.{kind}", settings, origin, state)
