"""Strimzi's `KafkaMirrorMaker2` (v1) for each target of a setup, and topics for canaries."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from mm2slo_core.mm2_config.jaas import JaasError, parse_jaas
from mm2slo_core.mm2_config.mirror_setup import ConnectorKind
from mm2slo_core.mm2_config.portable_setup import portable_setup
from mm2slo_core.mm2_config.secret_references import JAAS, PROVIDER
from mm2slo_core.replication_policy import HEARTBEATS_TOPIC
from mm2slo_core.yaml_text import dump_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_core.mm2_config.mirror_setup import MirrorFlow, MirrorSetup, Settings
    from mm2slo_core.mm2_config.portable_setup import PortableSetup, Rendered

_FOLDER: Final = "/mnt"  # Strimzi mounts additional volumes only there
_SECRET: Final = re.compile(rf"\$\{{{PROVIDER}:{_FOLDER}/([^:}}]*):([^}}]*)\}}")
_HELD: Final = "\ue000"  # a reference in a JAAS line
_VOLUME: Final = re.compile(rf"(?:{PROVIDER}:|\"){_FOLDER}/([^:/\"]+)")
_OTHER_FILE: Final = re.compile(rf"\.(?:location|file)=(?!\"?{_FOLDER}/)")
# Strimzi writes the name into a JAAS line as it is.
_USERNAME: Final = re.compile(r"[ !#%-\[\]-~]+")
_PLAIN: Final = re.compile(r"true|false|0|-?[1-9][0-9]{0,17}")
_NAMES: Final = ("groupId", "offsetStorageTopic", "configStorageTopic", "statusStorageTopic")
_PATTERNS: Final = {
    "topics": "topicsPattern", "topics.exclude": "topicsExcludePattern",
    "groups": "groupsPattern", "groups.exclude": "groupsExcludePattern",
}  # fmt: skip
_CONNECTORS: Final = {
    ConnectorKind.SOURCE: "sourceConnector", ConnectorKind.CHECKPOINT: "checkpointConnector",
}  # fmt: skip
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
    flows = [each for each in setup.flows.values() if _CONNECTORS.keys() & each.connectors]
    resources = {}
    for target in dict.fromkeys(each.flow.target for each in flows):
        mirrors = [each for each in flows if each.flow.target == target]
        resources[f"mm2-{resource_name(target)}"] = _mirror_maker(setup, target, mirrors)
    for source in dict.fromkeys(each.flow.source for each in flows):
        spec = {"partitions": 1, "replicas": 3, "config": {"cleanup.policy": "compact"}}
        topic = resource("KafkaTopic", HEARTBEATS_TOPIC, spec, source)
        resources[f"{HEARTBEATS_TOPIC}-{resource_name(source)}"] = topic
    texts = {f"{name}.yaml": dump_yaml(each) for name, each in resources.items()}
    files = {name: f"---\n{setup.references.note(text)}{text}" for name, text in texts.items()}
    return files, setup.findings


def resource(kind: str, name: str, spec: object, cluster: str | None = None) -> dict[str, object]:
    """A resource, with the label for the operator of *cluster*."""
    labels = {"labels": {"strimzi.io/cluster": resource_name(cluster)}} if cluster else {}
    metadata = {"name": name, **labels}
    return {"apiVersion": "kafka.strimzi.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


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
    cluster = _cluster(setup, target) | dict(zip(_NAMES, names.values(), strict=True))
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
    return resource("KafkaMirrorMaker2", f"mm2-{resource_name(target)}", spec)


def _mirror(setup: PortableSetup, flow: MirrorFlow) -> dict[str, object]:
    mirror: dict[str, object] = {"source": _cluster(setup, flow.flow.source)}
    connectors = [flow.connectors[kind] for kind in _CONNECTORS if kind in flow.connectors]
    for key, name in _PATTERNS.items():
        acting = connectors if "topics" in key else connectors[-1:]
        values = {each.settings[key].value if key in each.settings else None for each in acting}
        if len(values) == 1 and values != {None}:
            mirror[name] = values.pop()
    for each in connectors:
        setup.check_name(each, f"{flow.flow}.{each.kind}")
        config = {k: s for k, s in each.settings.items() if _PATTERNS.get(k) not in mirror}
        tasks = config.pop("tasks.max", None)
        spec: dict[str, object] = {} if each.state == "running" else {"state": each.state}
        if tasks and re.fullmatch("[1-9][0-9]{0,8}", tasks.value):
            spec["tasksMax"] = int(tasks.value)
        elif tasks:
            setup.report(tasks.origin, f"tasks.max is {tasks.value}", "set tasksMax to a number")
        mirror[_CONNECTORS[each.kind]] = spec | {"config": _config(config)}
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
