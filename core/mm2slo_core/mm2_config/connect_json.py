"""Reads the connectors of MirrorMaker 2 on a self-run Kafka Connect cluster.

Forms are those of Connect's REST API: the bodies of `POST /connectors` (also several in an array)
and `PUT /connectors/NAME/config`, and the response of `GET /connectors?expand=info`. Internal
topics and the group are the worker's: `connect-distributed.properties`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from mm2slo_core.config.config_document import Path, parse_document
from mm2slo_core.file_syntax import PropertiesError, parse_properties
from mm2slo_core.java_values import share_servers
from mm2slo_core.mm2_config.mirror_setup import (
    MIRROR_PACKAGE,
    WORKER_NAMES,
    Connector,
    ConnectorKind,
    Finding,
    FindingSeverity,
    Form,
    MirrorCluster,
    MirrorFlow,
    MirrorSetup,
    Origin,
    Setting,
    Settings,
    Worker,
)
from mm2slo_core.mm2_config.provider_references import REFERENCE, read_providers
from mm2slo_core.topology import Flow

Connectors = dict[ConnectorKind, Connector]

# Connect also accepts a class without its package, and without the suffix.
_KINDS: Final = {
    name: kind
    for kind in ConnectorKind
    for name in (f"{MIRROR_PACKAGE}{kind}", kind, kind.removesuffix("Connector"))
}
_DEFAULT_TARGET: Final = "target"  # MirrorConnectorConfig.TARGET_CLUSTER_ALIAS_DEFAULT
_CLIENT_KEYS: Final = ("bootstrap.servers", "security.", "sasl.", "ssl.")

# Why each finding matters and what to do; those without a severity of their own are errors.
_CHECKS: Final = {
    "not-connect-json": (
        "connectors are read as Kafka Connect's REST API has them",
        "pass the body of POST /connectors or the response of GET /connectors?expand=info"),
    "other-connector": ("it is not a connector of MirrorMaker 2", "no action is needed"),
    "invalid-name": ("Kafka Connect stores a connector's offsets under its name",
        'set "name" to the NAME in PUT /connectors/NAME/config'),
    "invalid-alias": ("the aliases identify the flow",
        "set source.cluster.alias and target.cluster.alias to two names without spaces"),
    "duplicate-connector": ("mm2slo reads one connector of each kind per flow",
        "pass one of them, or give them different cluster aliases"),
    "no-source-connector": ("nothing is replicated, so that mm2slo does not watch the flow",
        "pass the JSON of the source connector too, if there is one"),
    "conflicting-cluster": ("an alias is one cluster", "give each cluster its own alias"),
    "missing-worker": ("the names of Kafka Connect's group and topics have no defaults",
        "add --worker FILE: the connect-distributed.properties of the distributed worker"),
}  # fmt: skip
_SEVERITIES: Final = {
    "other-connector": FindingSeverity.INFO,
    "no-source-connector": FindingSeverity.WARNING,
}


def read_connect_json(
    files: Sequence[tuple[str, str]], worker: tuple[str, bytes] | None
) -> MirrorSetup:
    """Read connectors from *files*, at least one, and the properties file of their *worker*.

    Both are pairs of a name, for messages, and the content.
    """
    findings: list[Finding] = []
    connectors = [found for name, text in files for found in _read_file(name, text, findings)]
    settings = _read_worker(*worker, findings) if worker else {}
    missing = [key for key in WORKER_NAMES.values() if key not in settings]
    if missing:
        origin = Origin(worker[0] if worker else files[0][0])
        what = f"the worker's {', '.join(missing)} is unknown"
        findings.append(_finding("missing-worker", origin, what))
    providers, unknown_providers = read_providers(settings, *(each.settings for each in connectors))
    if worker is None:  # it may declare any
        values = [each.value for part in connectors for each in part.settings.values()]
        providers |= {match[1]: None for each in values for match in REFERENCE.finditer(each)}
    flows = tuple(
        _mirror_flow(flow, by_kind, settings, findings)
        for flow, by_kind in _by_flow(connectors, findings).items()
    )
    clusters = _clusters(flows, findings)
    found = (*findings, *unknown_providers)
    return MirrorSetup(Form.CONNECT_JSON, clusters, flows, found, providers)


def _finding(check: str, origin: Origin, what: str) -> Finding:
    severity = _SEVERITIES.get(check, FindingSeverity.ERROR)
    return Finding(check, severity, origin, what, *_CHECKS[check])


def _read_file(file: str, text: str, findings: list[Finding]) -> Iterator[Connector]:
    try:
        # Connect keeps numbers as they are written.
        document = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
        # Java encodes half of a surrogate pair as a question mark.
        document = json.loads(json.dumps(document, ensure_ascii=False).encode(errors="replace"))
    except (json.JSONDecodeError, RecursionError) as error:
        origin = Origin(file, getattr(error, "lineno", None))
        what = f"is not JSON: {getattr(error, 'msg', 'nested too deeply')}"
        findings.append(_finding("not-connect-json", origin, what))
        return
    # JSON is YAML, except for tabs, which only occur between its tokens.
    lines = parse_document(text.replace("\t", " "))
    for path, name, config in _entries(document):
        origins = {
            key: Origin(file, lines.line_of((*path, key)))
            for key in ("", *(config if isinstance(config, dict) else ()))
        }
        found = _connector(name, config, origins)
        if isinstance(found, Connector):
            yield found
        else:
            findings.append(found)


def _entries(document: object) -> Iterator[tuple[Path, object, object]]:
    """Yield path, name and configuration of each connector, unchecked."""
    for index, entry in enumerate(document if isinstance(document, list) else [document]):
        path: Path = (index,) if isinstance(document, list) else ()
        if not isinstance(entry, dict) or "connector.class" in entry:
            yield path, None, entry
        elif "config" in entry:
            yield (*path, "config"), entry.get("name"), entry["config"]
        elif all(isinstance(inner, dict) for inner in entry.values()):
            for name, inner in entry.items():
                info = inner.get("info")
                config = info.get("config") if isinstance(info, dict) else None
                yield (*path, name, "info", "config"), name, config
        else:
            yield path, None, None


def _connector(name: object, config: object, origins: Mapping[str, Origin]) -> Connector | Finding:
    class_name = config.get("connector.class") if isinstance(config, dict) else None
    if not isinstance(config, dict) or not isinstance(class_name, str):
        return _finding("not-connect-json", origins[""], "no connector.class found")
    origin = origins["connector.class"]
    kind = _KINDS.get(class_name.strip())
    if kind is None:
        return _finding("other-connector", origin, f"skipped a {class_name}")
    names = {found for found in (name, config.get("name")) if isinstance(found, str) and found}
    if len(names) != 1:
        return _finding("invalid-name", origin, f"a {kind} has {len(names)} names, expected one")
    settings = {
        # Connect takes numbers and booleans as text; null is the same as an absent key.
        key: Setting(key, value if isinstance(value, str) else json.dumps(value), origins[key])
        for key, value in config.items()
        if value is not None
    }
    return Connector(kind, names.pop(), settings, origin)


def _read_worker(file: str, content: bytes, findings: list[Finding]) -> Settings:
    settings = {}
    try:
        # Kafka's Utils.loadProps: Properties.load(InputStream) does not read UTF-8.
        for line in parse_properties(content.decode("iso-8859-1")):
            settings[line.key] = Setting(line.key, line.value, Origin(file, line.number))
    except PropertiesError as error:
        what = f"the file {error}"
        findings.append(_finding("missing-worker", Origin(file, error.line), what))
    return settings


def _by_flow(connectors: Iterable[Connector], findings: list[Finding]) -> Mapping[Flow, Connectors]:
    flows: dict[Flow, Connectors] = {}
    for connector in connectors:
        source = _value(connector.settings, "source.cluster.alias") or ""
        target = _value(connector.settings, "target.cluster.alias") or _DEFAULT_TARGET
        what = f"{connector.kind} {connector.name!r}"
        try:
            flow = Flow.parse(f"{source}->{target}")
        except ValueError as error:
            findings.append(_finding("invalid-alias", connector.origin, f"{what}: {error}"))
            continue
        known = flows.setdefault(flow, {}).setdefault(connector.kind, connector)
        if known is not connector:
            what += f" is the second of {flow}, after {known.name!r} at {known.origin}"
            findings.append(_finding("duplicate-connector", connector.origin, what))
    return flows


def _mirror_flow(
    flow: Flow, connectors: Connectors, settings: Settings, findings: list[Finding]
) -> MirrorFlow:
    source = connectors.get(ConnectorKind.SOURCE)
    own = source.settings if source else {}
    origin = (source or next(iter(connectors.values()))).origin
    if source is None:
        what = f"{flow} has no {ConnectorKind.SOURCE}"
        findings.append(_finding("no-source-connector", origin, what))
    worker = Worker.of(settings)
    # A source connector may keep its offsets in its own topic (KIP-618).
    offsets = _value(own, "offsets.storage.topic") or worker.offsets_topic
    worker = replace(worker, offsets_topic=offsets)
    switched_off = "enabled" in own and own["enabled"].is_false
    return MirrorFlow(flow, connectors, worker, origin, source is not None and not switched_off)


def _clusters(flows: Iterable[MirrorFlow], findings: list[Finding]) -> dict[str, MirrorCluster]:
    clusters: dict[str, MirrorCluster] = {}
    # Source connectors first: Kafka does not use all clients of the others.
    connectors = [
        (f"{side}.cluster.", getattr(each.flow, side), each.connectors[kind].settings)
        for kind in ConnectorKind
        for each in flows
        if kind in each.connectors
        for side in ("source", "target")
    ]
    for prefix, alias, settings in connectors:
        client = {
            key.removeprefix(prefix): setting
            for key, setting in settings.items()
            if key.startswith(tuple(prefix + family for family in _CLIENT_KEYS))
        }
        servers = client.get("bootstrap.servers")
        if servers is None:
            continue
        known = clusters.setdefault(alias, MirrorCluster(alias, client, servers.origin))
        if not share_servers(known.servers or "", servers.value):
            what = f"{alias} has other bootstrap.servers than at {known.origin}"
            findings.append(_finding("conflicting-cluster", servers.origin, what))
    return clusters


def _value(settings: Settings, key: str) -> str | None:
    return settings[key].value if key in settings else None
