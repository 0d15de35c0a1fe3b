"""A setup rendered in each form: properties file, Connect's REST API, Strimzi; and its ACLs.

`PortableSetup` is a setup in no form: without what a form derives, and without secrets in plain
text.

ACLs are those of least privilege, for the exporter of an mm2slo.yaml or with its defaults: canaries
in heartbeats, state and timeline.
"""

import json
import re
import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, permutations
from typing import Any, Final

from mm2slo_core.config.config_model import Config
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.config.service_config import ExporterConfig
from mm2slo_core.file_syntax import dump_properties, dump_yaml
from mm2slo_core.kafka_permissions import (
    ALL_NAMES,
    REQUIRED_PERMISSIONS,
    AclGrant,
    AclPattern,
    Component,
    FlowResources,
    Operation,
    ResourceKind,
    Role,
    granted_by,
)
from mm2slo_core.mm2_config.connector_settings import (
    CLIENT_KEYS,
    WORKER_KEYS,
    connector_key,
    default_value,
)
from mm2slo_core.mm2_config.flow_settings import flow_section
from mm2slo_core.mm2_config.mirror_setup import (
    BYTE_ARRAY_CONVERTER,
    EMIT,
    MIRROR_PACKAGE,
    Connector,
    ConnectorKind,
    Finding,
    FindingSeverity,
    MirrorCluster,
    MirrorFlow,
    MirrorSetup,
    Origin,
    ProviderKind,
    Setting,
    Settings,
)
from mm2slo_core.mm2_config.provider_references import (
    JAAS,
    PROVIDER,
    PROVIDER_CLASSES,
    REFERENCE,
    JaasError,
    SecretReferences,
    parse_jaas,
)
from mm2slo_core.mm2_config.strimzi_setup import CONNECTORS, PATTERNS, TARGET_KEYS
from mm2slo_core.replication_policy import (
    HEARTBEATS_TOPIC,
    PlacedTopic,
    connect_topic,
    internal_topics,
)
from mm2slo_core.topic_selection import replication_policy
from mm2slo_core.topology import Flow

Rendered = tuple[dict[str, str], list[Finding]]
"""Texts by file name, and what they cannot say."""
SECRETS_FOLDER: Final = "/etc/kafka/secrets"
_STRIMZI: Final = "kafka.strimzi.io/v1"
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
        finding = Finding("not-rendered", FindingSeverity.WARNING, origin, what, why, action)
        self.findings.append(finding)

    def check_name(self, connector: Connector, name: str) -> None:
        # Connect stores positions under the name of the connector (OffsetStorageWriter).
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
    read = {name: kind for setup in setups for name, kind in setup.providers.items()}
    kinds = {name: kind for name, kind in read.items() if kind} | {PROVIDER: ProviderKind.SECRET}
    references = SecretReferences({*read, PROVIDER}, kinds, folder, every)
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


def render_properties(setups: Sequence[MirrorSetup]) -> Rendered:
    """The file `mm2.properties` for *setups*."""
    setup = portable_setup(setups)
    entries = {"clusters": ", ".join(setup.clusters)}
    for key, each in ((key, each) for given in setups for key, each in given.process.items()):
        entries[key] = setup.references.hide("mm2-process", key, each).value
    for alias in setup.clusters:
        entries |= {f"{alias}.{key}": value for key, value in setup.client(alias).items()}
    for pair in (Flow(*aliases) for aliases in permutations(setup.clusters, 2)):
        flow = setup.flows.get(pair)
        # A pair without a flow has a herder for heartbeats, unless they are switched off.
        settings = _connectors(setup, flow) if flow else [("emit.heartbeats.enabled", "false")]
        entries |= {f"{pair}.{key}": value for key, value in settings}
    for flow in setup.flows.values():
        for key, value in _worker(setup, flow):
            if entries.setdefault(f"{flow.flow.target}.{key}", value) != value:
                what = f"{key} of the workers of {flow.flow} differs from that of other flows"
                setup.report(flow.origin, what, f"run the flows to {flow.flow.target} apart")
    entries |= setup.provider_lines(entries.values())
    text = dump_properties(entries)
    return {"mm2.properties": setup.references.note(text) + text}, setup.findings


def _connectors(setup: PortableSetup, flow: MirrorFlow) -> Iterator[tuple[str, str]]:
    """The settings of a flow, which all of its connectors share."""
    yield "enabled", str(ConnectorKind.SOURCE in flow.connectors).lower()
    yield from ((keys[0], "false") for kind, keys in EMIT.items() if kind not in flow.connectors)
    connectors = flow.connectors.values()
    for each in connectors:
        setup.check_name(each, each.kind)
        if each.state != "running":
            setup.report(each.origin, f"{each.name} is {each.state}", "stop MirrorMaker 2 instead")
    for key in dict.fromkeys(key for each in connectors for key in each.settings):
        entry = connector_key(key)
        acting = [each for each in connectors if entry is None or each.kind in entry.kinds]
        usual = default_value(key)
        values = [each.settings[key].value if key in each.settings else usual for each in acting]
        if len({value.removeprefix(MIRROR_PACKAGE) for value in values}) > 1:
            what = f"{key} of {flow.flow} differs between {' and '.join(e.kind for e in acting)}"
            setup.report(flow.origin, what, f"check that of {acting[0].kind}, which is for all")
        if key in acting[0].settings:
            yield key, acting[0].settings[key].value


def _worker(setup: PortableSetup, flow: MirrorFlow) -> Iterator[tuple[str, str]]:
    source, target = flow.flow.source, flow.flow.target
    shared = sum(pair.target == target for pair in setup.flows) > 1
    # MirrorMakerConfig.workerConfig gives each flow a worker group of its own, whose names have the
    # alias of the source; a setting of the target cluster would be that of all flows to it.
    for key, name in flow.worker.names.items():
        kind = key.partition(".")[0].replace("config", "configs").replace("offset", "offsets")
        usual = f"{source}-mm2" if kind == "group" else connect_topic(kind, source)
        if name not in {None, usual} and shared:
            what = f"{key} of {flow.flow} is {name}, but each flow to {target} needs its own"
            setup.report(flow.origin, what, f"expect {usual}")
        elif name not in {None, usual}:
            yield key, name
    for key, each in flow.worker.settings.items():
        # Settings of consumers of a cluster would apply to the flows from it.
        if not key.startswith("consumer."):
            yield key, each.value


def render_connect(setups: Sequence[MirrorSetup]) -> Rendered:
    """A folder for each group of workers: their properties, and a body of POST per connector."""
    setup = portable_setup(setups)
    files: dict[str, str] = {}
    groups: dict[tuple[str, ...], list[MirrorFlow]] = defaultdict(list)
    for flow in setup.flows.values():
        groups[flow.flow.target, *map(str, flow.worker.names.values())].append(flow)
    for (target, group, *_), flows in groups.items():
        folder = re.sub(r"[^\w.-]+", "-", f"{target}-{group}")
        client = setup.client(target)
        worker = {"bootstrap.servers": client.pop("bootstrap.servers")}
        for prefix in ("", "producer.", "consumer.", "admin."):
            worker |= {f"{prefix}{key}": value for key, value in client.items()}
        worker |= {key: name for key, name in flows[0].worker.names.items() if name}
        worker |= {f"{part}.converter": BYTE_ARRAY_CONVERTER for part in ("key", "value", "header")}
        bodies = {}
        for flow in flows:
            worker |= {key: each.value for key, each in flow.worker.settings.items()}
            for each in flow.connectors.values():
                body = json.dumps(_body(setup, flow, each), indent=2, ensure_ascii=False)
                bodies[f"{folder}/{flow.flow.slug}.{each.kind}.json"] = f"{body}\n"
        worker |= setup.provider_lines([*worker.values(), *bodies.values()])
        text = dump_properties(worker)
        note = setup.references.note("".join([text, *bodies.values()]))
        files |= {f"{folder}/connect-distributed.properties": note + text} | bodies
    return files, setup.findings


def _body(setup: PortableSetup, flow: MirrorFlow, connector: Connector) -> dict[str, object]:
    config = {"connector.class": f"{MIRROR_PACKAGE}{connector.kind}"}
    for side, alias in (("source", flow.flow.source), ("target", flow.flow.target)):
        config[f"{side}.cluster.alias"] = alias
        config |= {f"{side}.cluster.{key}": text for key, text in setup.client(alias).items()}
    config |= {key: each.value for key, each in connector.settings.items()}
    # KIP-980; as of Kafka 3.7.
    state = {} if connector.state == "running" else {"initial_state": connector.state.upper()}
    return {"name": connector.name, **state, "config": config}


_FOLDER: Final = "/mnt"  # Strimzi mounts additional volumes only there
_SECRET: Final = re.compile(rf"\$\{{{PROVIDER}:{_FOLDER}/([^:}}]*):([^}}]*)\}}")
_HELD: Final = "\ue000"  # a reference in a JAAS line
_VOLUME: Final = re.compile(rf"(?:{PROVIDER}:|\"){_FOLDER}/([^:/\"]+)")
_OTHER_FILE: Final = re.compile(rf"\.(?:location|file)=(?!\"?{_FOLDER}/)")

# Strimzi writes the name into a JAAS line as it is.
_USERNAME: Final = re.compile(r"[ !#%-\[\]-~]+")
_PLAIN: Final = re.compile(r"true|false|0|-?[1-9][0-9]{0,17}")
_CONNECTORS: Final = (ConnectorKind.SOURCE, ConnectorKind.CHECKPOINT)  # v1 has no other

# The operator sets or refuses these in `config` of the workers.
_OPERATOR: Final = (
    "listeners", "plugin.path", "rest.", "consumer.interceptor.", "producer.interceptor.",
)  # fmt: skip

_CLIENT_CONFIG: Final = {
    "ssl.endpoint.identification.algorithm", "ssl.cipher.suites", "ssl.protocol",
    "ssl.enabled.protocols",
}  # fmt: skip


def render_strimzi(setups: Sequence[MirrorSetup]) -> Rendered:
    """A file for each resource of *setups*."""
    setup = portable_setup(setups, _FOLDER, every=True)
    for flow in setup.flows.values():
        if each := flow.connectors.get(ConnectorKind.HEARTBEAT):
            what = f"{flow.flow} writes no heartbeats: Strimzi v1 has no heartbeat connector"
            setup.report(each.origin, what, "measure by canaries, for which there is a topic")
    flows = [each for each in setup.flows.values() if {*_CONNECTORS} & each.connectors.keys()]
    resources = {}
    for target in dict.fromkeys(each.flow.target for each in flows):
        mirrors = [each for each in flows if each.flow.target == target]
        resources[f"mm2-{resource_name(target)}"] = _mirror_maker(setup, target, mirrors)
    for source in dict.fromkeys(each.flow.source for each in flows):
        spec = {"partitions": 1, "replicas": 3, "config": {"cleanup.policy": "compact"}}
        topic = kubernetes_resource("KafkaTopic", HEARTBEATS_TOPIC, spec, source)
        resources[f"{HEARTBEATS_TOPIC}-{resource_name(source)}"] = topic
    texts = {f"{name}.yaml": dump_yaml(each) for name, each in resources.items()}
    files = {name: f"---\n{setup.references.note(text)}{text}" for name, text in texts.items()}
    return files, setup.findings


def kubernetes_resource(
    kind: str, name: str, spec: object, cluster: str | None = None, version: str = _STRIMZI
) -> dict[str, object]:
    """A resource, with the label for the operator of *cluster*."""
    label = f"{version.partition('/')[0].removeprefix('kafka.')}/cluster"
    labels = {"labels": {label: resource_name(cluster)}} if cluster else {}
    metadata = {"name": name, **labels}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def resource_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _mirror_maker(setup: PortableSetup, target: str, flows: list[MirrorFlow]) -> dict[str, object]:
    names = flows[0].worker.names
    for flow in flows:
        if flow.worker.names != names:
            what = f"{flow.flow} shares the workers of {flows[0].flow}, in {names['group.id']}"
            setup.report(flow.origin, what, "delete the topics of its former workers later")
    worker = {key: each for flow in flows for key, each in flow.worker.settings.items()}
    for key in [key for key in worker if key.startswith(_OPERATOR)]:
        what, action = f"the operator of Strimzi sets {key}", "look for a field of spec instead"
        setup.report(worker.pop(key).origin, what, action)
    cluster = _cluster(setup, target) | {name: names[key] for name, key in TARGET_KEYS.items()}
    mirrors = [_mirror(setup, each) for each in flows]
    spec: dict[str, Any] = {"replicas": 1, "target": cluster, "mirrors": mirrors}
    if setup.kafka_version:
        spec["version"] = setup.kafka_version
    cluster["config"] = cluster.get("config", {}) | _config(worker)
    text = json.dumps(spec).replace('\\"', '"')
    cluster["config"] |= setup.provider_lines([text])
    if volumes := {resource_name(each): each for each in sorted(_VOLUME.findall(text))}:
        mounts = [{"name": n, "mountPath": f"{_FOLDER}/{each}"} for n, each in volumes.items()]
        sources = [{"name": n, "secret": {"secretName": each}} for n, each in volumes.items()]
        container = {"connectContainer": {"volumeMounts": mounts}}
        spec["template"] = {"pod": {"volumes": sources}, **container}
    return kubernetes_resource("KafkaMirrorMaker2", f"mm2-{resource_name(target)}", spec)


def _mirror(setup: PortableSetup, flow: MirrorFlow) -> dict[str, object]:
    mirror: dict[str, object] = {"source": _cluster(setup, flow.flow.source)}
    connectors = [flow.connectors[kind] for kind in _CONNECTORS if kind in flow.connectors]
    for key, (name, *_) in PATTERNS.items():
        acting = connectors if "topics" in key else connectors[-1:]
        values = {each.settings[key].value if key in each.settings else None for each in acting}
        if len(values) == 1 and values != {None}:
            mirror[name] = values.pop()
    for each in connectors:
        setup.check_name(each, f"{flow.flow}.{each.kind}")
        patterns = {key for key, (name, *_) in PATTERNS.items() if name in mirror}
        config = {k: s for k, s in each.settings.items() if k not in patterns}
        tasks = config.pop("tasks.max", None)
        spec: dict[str, object] = {} if each.state == "running" else {"state": each.state}
        if tasks and re.fullmatch("[1-9][0-9]{0,8}", tasks.value):
            spec["tasksMax"] = int(tasks.value)
        elif tasks:
            setup.report(tasks.origin, f"tasks.max is {tasks.value}", "set tasksMax to a number")
        mirror[CONNECTORS[each.kind]] = spec | {"config": _config(config)}
    return mirror


def _config(settings: Settings) -> dict[str, object]:
    texts = {key: each.value for key, each in settings.items()}
    return {key: json.loads(v) if _PLAIN.fullmatch(v) else v for key, v in texts.items()}


def _cluster(setup: PortableSetup, alias: str) -> dict[str, Any]:
    client = setup.client(alias)
    found: dict[str, Any] = {"alias": alias, "bootstrapServers": client["bootstrap.servers"]}
    protocol = client.get("security.protocol", "").strip().upper()
    sasl = {k: v for k, v in client.items() if k.startswith("sasl.") and "SASL" in protocol}
    tls = {k: v for k, v in client.items() if k.startswith("ssl.") and protocol.endswith("SSL")}
    if protocol.endswith("SSL"):
        cas = _secrets(setup, alias, "ssl.truststore.certificates", "ca.crt")
        trusted = [
            {"secretName": name, "pattern" if "*" in key else "certificate": key}
            for name, key in cas or _secrets(setup, alias, "ssl.truststore.location", "ca.crt")
        ]
        found["tls"] = {"trustedCertificates": trusted}
    if authentication := _authentication(setup, alias, sasl, tls):
        found["authentication"] = authentication
    if config := {key: value for key, value in tls.items() if key in _CLIENT_CONFIG}:
        found["config"] = config
    lost = [k for k in tls if k not in _CLIENT_CONFIG and "store." not in k]
    lost += [key for key, value in sasl.items() if _OTHER_FILE.search(f"{key}={value}")]
    for key in lost:
        what = f"{key} of {alias} has no place in the resource, or is a file outside of its pods"
        action = "store keys without a password, and mount other files with spec.template"
        setup.report(setup.clusters[alias].client[key].origin, what, action)
    return found


def _secrets(setup: PortableSetup, alias: str, key: str, file: str) -> list[tuple[str, str]]:
    """Names and keys of the secrets with the PEM text of a setting."""
    setting = setup.clusters[alias].client.get(key)
    text = setting.value if setting else ""
    if setting and (key.endswith(".location") or _SECRET.sub("", text).strip()):
        content = f"{setting.key} ({setting.origin}) as PEM, without a password"
        text = setup.references.create(f"mm2-{alias}", file, content, text)
    return _SECRET.findall(text)


def _authentication(
    setup: PortableSetup, alias: str, sasl: Mapping[str, str], tls: Mapping[str, str]
) -> dict[str, object] | None:
    pair = []
    for part, file in (("certificate.chain", "tls.crt"), ("key", "tls.key")) if tls else ():
        found = _secrets(setup, alias, f"ssl.keystore.{part}", file)
        pair += (found or _secrets(setup, alias, "ssl.keystore.location", file))[:1]
    if len(pair) == 2 and pair[0][0] == pair[1][0] and not sasl:
        names = {"secretName": pair[0][0], "certificate": pair[0][1], "key": pair[1][1]}
        return {"type": "tls", "certificateAndKey": names}
    if sasl and not pair and (typed := _with_password(sasl)):
        return typed
    config = dict(sasl)
    if len(pair) == 2:
        chain, key = (f"${{{PROVIDER}:{_FOLDER}/{name}:{file}}}" for name, file in pair)
        config |= {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain}
        config["ssl.keystore.key"] = key
    return {"type": "custom", "sasl": bool(sasl), "config": config} if config else None


def _with_password(sasl: Mapping[str, str]) -> dict[str, object] | None:
    """The types for a user name and a password in a secret; None for anything else."""
    jaas, mechanism = sasl.get(JAAS, ""), sasl.get("sasl.mechanism", "").strip().lower()
    try:
        options = parse_jaas(_SECRET.sub(_HELD, jaas)).options
    except JaasError:
        return None
    username = options.get("username", "")
    if (
        mechanism not in {"plain", "scram-sha-256", "scram-sha-512"}
        or sasl.keys() != {"sasl.mechanism", JAAS}
        or options != {"username": username, "password": _HELD}
        or not _USERNAME.fullmatch(username)
    ):
        return None
    secret = dict(zip(("secretName", "password"), _SECRET.findall(jaas)[0], strict=True))
    return {"type": mechanism, "username": username, "passwordSecret": secret}


Bindings = Iterator[tuple[str, ResourceKind, AclPattern, list[Operation]]]

Principals = Mapping[str, Collection[Component]]
"""What each principal is for."""
_WORKERS: Final = {Role.OFFSETS, Role.STATES, Role.WORKER_GROUP, Role.TRANSACTIONS}

# What connectors use, beyond what their workers do.
_ROLES: Final = {
    ConnectorKind.SOURCE: {Role.TOPICS, Role.OFFSET_SYNCS, Role.CLUSTER},
    ConnectorKind.CHECKPOINT: {Role.TOPICS, Role.OFFSET_SYNCS, Role.CHECKPOINTS, Role.GROUPS},
    ConnectorKind.HEARTBEAT: {Role.OWN_HEARTBEATS},
}


def render_acls(
    setups: Sequence[MirrorSetup], principals: Principals, own: Config | None = None
) -> Rendered:
    """Lines of `kafka-acls.sh` for what each of *principals* needs."""
    setup, text = portable_setup(setups), ""
    for principal, components in principals.items():
        for cluster, kind, (name, prefixed), operations in acl_bindings(setup, components, own):
            line = ["kafka-acls.sh", "--bootstrap-server"]
            line += [setup.client(cluster)["bootstrap.servers"]]
            line += ["--command-config", f"admin-{cluster}.properties"]
            line += ["--add", "--allow-principal", principal]
            line += [each for operation in operations for each in ("--operation", operation)]
            line += ["--cluster"] if kind == "cluster" else [f"--{kind}", name]
            line += ["--resource-pattern-type", "prefixed"] if prefixed else []
            text += f"{shlex.join(line)}\n"
    return {"acls.sh": text}, setup.findings


def render_kafka_users(
    setups: Sequence[MirrorSetup], principals: Principals, own: Config | None = None
) -> Rendered:
    """The `KafkaUser` of each of *principals* on each cluster where it needs permissions.

    They have the API version of the first KafkaMirrorMaker2 among *setups*.
    """
    setup, files = portable_setup(setups), {}
    version = next((each.api_version for each in setups if each.api_version), _STRIMZI)
    for principal, components in principals.items():
        user = resource_name(principal.removeprefix("User:").removeprefix("CN="))
        for cluster, bindings in groupby(
            acl_bindings(setup, components, own), lambda each: each[0]
        ):
            acls = []
            for _, kind, (name, prefixed), operations in bindings:
                found = {"type": kind.replace("-id", "Id")}
                if kind != "cluster":
                    found |= {"name": name, "patternType": "prefix" if prefixed else "literal"}
                acls.append({"resource": found, "operations": operations})
            by_key = any(key.startswith("ssl.keystore.") for key in setup.client(cluster))
            spec = {
                "authentication": {"type": "tls" if by_key else "scram-sha-512"},
                "authorization": {"type": "simple", "acls": acls},
            }
            text = dump_yaml(kubernetes_resource("KafkaUser", user, spec, cluster, version))
            files[f"user-{user}-{resource_name(cluster)}.yaml"] = f"---\n{text}"
    return files, setup.findings


def acl_bindings(
    setup: PortableSetup, components: Collection[Component], own: Config | None = None
) -> Bindings:
    """Cluster, resource and operations of what *components* need; none is implied by another."""
    grants: set[AclGrant] = set()
    for flow in setup.flows.values():
        roles = _WORKERS.union(*(_ROLES[kind] for kind in flow.connectors))
        replicates = ConnectorKind.SOURCE in flow.connectors
        grants |= {
            AclGrant(cluster, row.role.kind, pattern, operation)
            for row, cluster, patterns in _resources(setup, flow, own).required(*components)
            if (row.role in roles if row.component == "mirrormaker2" else replicates)
            for pattern in patterns
            for operation in row.operations
        }
    least = sorted(each for each in grants if not any(g in grants for g in _implying(each)))
    for (cluster, kind, pattern), group in groupby(least, lambda grant: grant[:3]):
        yield cluster, kind, pattern, [grant.operation for grant in group]


def _implying(grant: AclGrant) -> Iterator[AclGrant]:
    """All other grants that imply *grant*: there are few, while setups may have many grants."""
    name = grant.pattern.name
    patterns = {grant.pattern, AclPattern(ALL_NAMES)}
    if name != ALL_NAMES:
        patterns |= {AclPattern(name[:end], prefixed=True) for end in range(1, len(name) + 1)}
    for pattern in patterns:
        for operation in granted_by(grant.operation):
            wider = grant._replace(pattern=pattern, operation=operation)
            if wider != grant:
                yield wider


def _resources(setup: PortableSetup, flow: MirrorFlow, own: Config | None) -> FlowResources:
    providers = setup.references.providers
    section, findings = flow_section(flow, setup.kafka_version, providers=providers)
    setup.findings.extend(findings)
    configured = (each for each in (own.flows if own else ()) if each.flow == flow.flow)
    config = next(configured, None) or FlowConfig.model_validate(section)
    policy, (_, *topics) = replication_policy(config), flow.worker.names.values()
    internal = internal_topics(flow.flow, policy, config.offset_syncs_location)
    names = zip(("connect_offsets", "connect_configs", "connect_status"), topics, strict=True)
    placed = {k: PlacedTopic(flow.flow.target, t) for k, t in names if t and "${" not in t}
    return FlowResources(
        flow.flow,
        policy,
        topics=config.topics,
        groups=config.groups,
        internal=replace(internal, **placed),
        settings=frozenset(_settings_on(flow)),
        worker_group=flow.worker.group_id,
    ).written_by(own.exporter if own else ExporterConfig(), config.canary)


def _settings_on(flow: MirrorFlow) -> Iterator[str]:
    """The settings that are on and need permissions."""
    given = {k: s for each in flow.connectors.values() for k, s in each.settings.items()}
    given |= flow.worker.settings
    of_mirrormaker = (row for row in REQUIRED_PERMISSIONS if row.component == "mirrormaker2")
    for name in {name for row in of_mirrormaker for name in row.settings}:
        value = given[name].value if name in given else default_value(name)
        if value.strip().lower() in {"true", "enabled"}:
            yield name
