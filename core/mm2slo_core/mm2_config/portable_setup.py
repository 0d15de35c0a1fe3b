"""A setup in no form: without what a form derives, and without secrets in plain text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from mm2slo_core.mm2_config.connector_keys import CLIENT_KEYS, WORKER_KEYS, connector_key
from mm2slo_core.mm2_config.findings import Finding, Severity
from mm2slo_core.mm2_config.mirror_setup import ConnectorKind, ProviderKind
from mm2slo_core.mm2_config.provider_references import PROVIDER_CLASSES, REFERENCE
from mm2slo_core.mm2_config.secret_references import JAAS, PROVIDER, SecretReferences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mm2slo_core.mm2_config.findings import Origin
    from mm2slo_core.mm2_config.mirror_setup import (
        Connector,
        MirrorCluster,
        MirrorFlow,
        MirrorSetup,
        Setting,
    )
    from mm2slo_core.topology import Flow

Rendered = tuple[dict[str, str], list[Finding]]
"""Texts by file name, and what they cannot say."""

SECRETS_FOLDER: Final = "/etc/kafka/secrets"
_PROVIDERS: Final = "config.providers"
# What the reader of Strimzi's resources has for OAuth's `tlsTrustedCertificates`.
_OAUTH_CAS: Final = "sasl.oauthbearer.ssl.truststore.certificates"
_SIDE: Final = re.compile(r"(source|target)\.(?:cluster|producer|consumer|admin)\.(.+)")
_OF_CLIENTS: Final = ("producer.", "consumer.", "admin.")
_OF_WORKERS: Final = (*_OF_CLIENTS, "key.converter", "value.converter", "header.converter")


@dataclass(frozen=True, slots=True)
class PortableSetup:
    """Clusters, and flows with the connectors that do something.

    Connectors have the settings that act on them, and workers theirs, without names and the
    connection to clusters.
    """

    references: SecretReferences
    provider_settings: Mapping[str, Setting]
    kafka_version: str | None
    clusters: dict[str, MirrorCluster] = field(default_factory=dict)
    flows: dict[Flow, MirrorFlow] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def report(self, origin: Origin, what: str, action: str) -> None:
        why = "the rendered files differ from the input in this"
        finding = Finding("not-rendered", Severity.WARNING, origin, what, why, action)
        self.findings.append(finding)

    def check_name(self, connector: Connector, name: str) -> None:
        if connector.kind is ConnectorKind.SOURCE and connector.name != name:
            what = f"{connector.name} becomes {name}: all records are copied again"
            self.report(connector.origin, what, "expect duplicates, or start with empty copies")

    def client(self, alias: str) -> dict[str, str]:
        return {key: each.value for key, each in self.clusters[alias].client.items()}

    def provider_lines(self, texts: Iterable[str]) -> dict[str, str]:
        """The settings of the config providers that *texts* use."""
        used = {match[1] for text in texts for match in REFERENCE.finditer(text)}
        names = sorted(used & {*self.references.providers})
        found = {_PROVIDERS: ",".join(names)} if names else {}
        kinds = {**self.references.kinds, PROVIDER: ProviderKind.DIRECTORY}
        for name in names:
            prefix = f"{_PROVIDERS}.{name}."
            if name in kinds:
                found[f"{prefix}class"] = PROVIDER_CLASSES[kinds[name]]
            own = (key for key in self.provider_settings if key.startswith(prefix))
            found |= {key: self.provider_settings[key].value for key in own}
        return found


def portable_setup(
    setups: Sequence[MirrorSetup], folder: str = SECRETS_FOLDER, *, every: bool = False
) -> PortableSetup:
    """Combine *setups*; *folder* and *every* are those of `SecretReferences`."""
    flows = [flow for setup in setups for flow in setup.flows]
    settings = [flow.worker.settings for flow in flows]
    settings += [each.settings for flow in flows for each in flow.connectors.values()]
    providers = {k: s for each in settings for k, s in each.items() if k.startswith(_PROVIDERS)}
    listed = providers[_PROVIDERS].value.split(",") if _PROVIDERS in providers else []
    kinds = {name: kind for setup in setups for name, kind in setup.providers.items()}
    kinds[PROVIDER] = ProviderKind.SECRET
    references = SecretReferences({*map(str.strip, listed), *kinds}, kinds, folder, every)
    version = next((setup.kafka_version for setup in setups if setup.kafka_version), None)
    hidden = _hidden(references, "config-providers", providers.items())
    portable = PortableSetup(references, hidden, version)
    clusters: dict[str, MirrorCluster] = {}
    for cluster in (each for setup in setups for each in setup.clusters.values()):
        known = clusters.setdefault(cluster.alias, cluster)
        if any(known.client.get(k, s).value != s.value for k, s in cluster.client.items()):
            what = f"{cluster.alias} has other settings than at {known.origin}"
            portable.report(cluster.origin, what, "give each cluster its own alias")
    for alias, cluster in clusters.items():
        client = _hidden(references, alias, cluster.client.items())
        if cas := client.pop(_OAUTH_CAS, None):
            client[JAAS] = _with_oauth_cas(references, alias, client[JAAS], cas)
        portable.clusters[alias] = replace(cluster, client=client)
    for flow in flows:
        _add_flow(portable, flow, clusters)
    return portable


def _hidden(
    references: SecretReferences, owner: str, settings: Iterable[tuple[str, Setting]]
) -> dict[str, Setting]:
    return {key: references.hide(f"mm2-{owner}", key, each) for key, each in settings}


def _with_oauth_cas(
    references: SecretReferences, alias: str, jaas: Setting, cas: Setting
) -> Setting:
    """*jaas* with the option of Strimzi's OAuth client for a file of trusted certificates."""
    text = cas.value
    if not REFERENCE.fullmatch(text):
        content = f"the CA certificates of the token endpoint ({cas.origin})"
        text = references.create(f"mm2-{alias}", "oauth.crt", content, text)
    file = text[2:-1].partition(":")[2].replace(":", "/")
    option = f'oauth.ssl.truststore.location="{file}" oauth.ssl.truststore.type="PEM"'
    return replace(jaas, value=f"{jaas.value.rstrip('; ')} {option};")


def _add_flow(
    portable: PortableSetup, flow: MirrorFlow, clusters: Mapping[str, MirrorCluster]
) -> None:
    pair, references = flow.flow, portable.references
    if pair in portable.flows or not clusters.keys() >= {pair.source, pair.target}:
        action = "pass the files of one deployment, with all clusters"
        portable.report(flow.origin, f"{pair} is a duplicate, or its cluster is missing", action)
        return
    connectors = {}
    for kind, each in flow.working_connectors.items():
        settings = _hidden(references, pair.slug, _acting(flow, each, clusters))
        connectors[kind] = replace(each, settings=settings)
    if connectors:
        settings = _hidden(references, f"{pair.target}-worker", _of_worker(flow))
        worker = replace(flow.worker, settings=settings)
        portable.flows[pair] = replace(flow, connectors=connectors, worker=worker)


def _acting(
    flow: MirrorFlow, connector: Connector, clusters: Mapping[str, MirrorCluster]
) -> Iterator[tuple[str, Setting]]:
    """The settings that act on *connector* and that it does not have from its clusters."""
    aliases = {f"{side}.cluster.alias": getattr(flow.flow, side) for side in ("source", "target")}
    for key, setting in connector.settings.items():
        entry, match = connector_key(key), _SIDE.fullmatch(key)
        known = match and clusters[getattr(flow.flow, match[1])].client.get(match[2])
        if (
            key not in {"name", "connector.class", "enabled"}
            and not key.startswith(_PROVIDERS)
            and (entry is None or connector.kind in entry.kinds)
            and setting.value != (known.value if known else aliases.get(key))
        ):
            yield key, setting


def _of_worker(flow: MirrorFlow) -> Iterator[tuple[str, Setting]]:
    ignored = {*flow.worker.names, *CLIENT_KEYS}
    ignored |= {prefix + key for prefix in _OF_CLIENTS for key in CLIENT_KEYS}
    for key, setting in flow.worker.settings.items():
        known = key in WORKER_KEYS or key.startswith(_OF_WORKERS) or connector_key(key) is None
        if known and key not in ignored and not key.startswith((_PROVIDERS, "ssl.", "sasl.")):
            yield key, setting
