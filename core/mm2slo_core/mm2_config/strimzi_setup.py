"""Reads Strimzi's `KafkaMirrorMaker2`, also under the API group of IBM Event Streams.

IBM's `EventStreamsGeoReplicator` has no flows: its operator keeps them in a `KafkaMirrorMaker2`.

Names, defaults and precedence are those of Strimzi's `KafkaMirrorMaker2Configuration` and
`KafkaMirrorMaker2Connectors`; fields as in its custom resource definitions (v1, v1beta2, v1alpha1),
as far as they concern Kafka. Security is as Strimzi's `KafkaMirrorMaker2Connectors` writes it, but
always PEM, and with references to the secrets that the user named: `${secret:NAME:KEY}`, where a
key such as `*.crt` matches several.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from mm2slo_core.config.config_document import (
    Document,
    Path,
    parse_resources,
    render_path,
    suggest_typo,
    value_at,
)
from mm2slo_core.mm2_config.connector_settings import WORKER_KEYS, client_settings, connector_key
from mm2slo_core.mm2_config.mirror_setup import (
    BYTE_ARRAY_CONVERTER,
    Connector,
    ConnectorKind,
    Finding,
    FindingSeverity,
    Form,
    MirrorCluster,
    MirrorFlow,
    MirrorSetup,
    Origin,
    ProviderKind,
    Setting,
    Worker,
)
from mm2slo_core.mm2_config.provider_references import read_providers
from mm2slo_core.mm2_config.running_settings import RENAMED
from mm2slo_core.topology import Flow

_KIND: Final = "KafkaMirrorMaker2"
_GEO_REPLICATOR: Final = "EventStreamsGeoReplicator"
_API_VERSION: Final = re.compile(r"[a-z0-9.-]+/(v1|v1beta2|v1alpha1)")

# In a file that is YAML, other braces belong to other kinds, such as PrometheusRule.
_HELM: Final = (".Values", ".Release", ".Chart")


def read_strimzi(name: str, text: str) -> tuple[MirrorSetup, ...]:
    """Return a setup for each KafkaMirrorMaker2 in *text*, or one with the reason for none.

    *name* is the file name, for messages. Findings about the file are in the first setup.
    """
    file = ResourceText(name, Document())
    setups, replicators = [], []
    for document in _documents(file, text):
        for root, value in _resources(document.value):
            resource = ResourceText(name, document, root)
            kind = value_at(value, ("kind",))
            if kind == _KIND:
                setups.append(_read_resource(resource, value))
            elif kind == _GEO_REPLICATOR:
                replicators.append((resource, value))
            else:
                what = f"skipped {kind}" if isinstance(kind, str) else "skipped a document"
                file.report("skipped-kind", resource.origin(("kind",)), what)
    if not setups:
        for resource, value in replicators:
            _report_replicator(file, resource, value)
        if not any(finding.is_error for finding in file.findings):
            file.report("no-mirror-maker", (), f"the file has no {_KIND}")
    first, *others = setups or [MirrorSetup(Form.STRIMZI, {}, ())]
    return (replace(first, findings=(*file.findings, *first.findings)), *others)


def _documents(file: ResourceText, text: str) -> list[Document]:
    """The documents of *text*; templates are seldom YAML before they are rendered."""
    documents = parse_resources(text)
    problems = [problem for document in documents for problem in document.problems]
    lines = (line.partition("#")[0] for line in text.split("\n"))
    templates = [
        str(number)
        for number, line in enumerate(lines, 1)
        if "{{" in line and (problems or any(name in line for name in _HELM))
    ]
    if templates:
        shown = ", ".join(templates[:10]) + (", ..." if len(templates) > 10 else "")
        origin = Origin(file.file, int(templates[0]))
        file.report("template", origin, f"has template placeholders {{{{ }}}} on line {shown}")
        return []
    for problem in problems:
        what, action = f"{problem.path} {problem.what}", problem.next_step or ""
        file.report("invalid-yaml", Origin(file.file, problem.line), what, action)
    return documents


def _resources(value: object) -> Iterator[tuple[Path, object]]:
    items = value_at(value, ("items",))
    if isinstance(items, list):
        yield from ((("items", index), item) for index, item in enumerate(items))
    elif value is not None:
        yield (), value


def _report_replicator(file: ResourceText, resource: ResourceText, value: object) -> None:
    # The operator gives both resources the name of the Event Streams instance.
    named = ((" ", "name"), (" -n ", "namespace"))
    texts = ((option, value_at(value, ("metadata", key))) for option, key in named)
    which = "".join(option + shlex.quote(text) for option, text in texts if isinstance(text, str))
    file.report(
        "geo-replicator", resource.origin(("kind",)), f"an {_GEO_REPLICATOR} has no flows",
        f"pass the output of: oc get kafkamirrormaker2.eventstreams.ibm.com{which} -o yaml",
    )  # fmt: skip


def _read_resource(resource: ResourceText, value: object) -> MirrorSetup:
    api_version = value_at(value, ("apiVersion",))
    version = _API_VERSION.fullmatch(str(api_version))
    if version is None:
        what = f"unknown apiVersion {api_version}"
        what = what if isinstance(api_version, str) else "no apiVersion"
        resource.report("unknown-api-version", ("apiVersion",), what)
        return MirrorSetup(Form.STRIMZI, {}, (), tuple(resource.findings))
    try:
        setup = strimzi_setup(resource, StrimziResource.model_validate(value).spec, version[1])
        return replace(setup, api_version=version[0])
    except ValidationError as invalid:
        for error in invalid.errors(include_input=False, include_url=False):
            path = error["loc"]
            if error["type"] == "missing":
                resource.require(path[:-1], str(path[-1]))
            else:
                what = f"{render_path(path)} has a wrong value"
                is_text = error["type"] == "model_type"
                action = "expected a mapping" if is_text else error["msg"]
                resource.report("invalid-value", path, what, action)
    return MirrorSetup(Form.STRIMZI, {}, (), tuple(resource.findings))


_WORKER_DEFAULTS: Final = {
    "group.id": "mirrormaker2-cluster",
    "offset.storage.topic": "mirrormaker2-cluster-offsets",
    "config.storage.topic": "mirrormaker2-cluster-configs",
    "status.storage.topic": "mirrormaker2-cluster-status",
    **dict.fromkeys(("key.converter", "value.converter", "header.converter"), BYTE_ARRAY_CONVERTER),
}

TARGET_KEYS: Final = {
    "groupId": "group.id",
    "offsetStorageTopic": "offset.storage.topic",
    "configStorageTopic": "config.storage.topic",
    "statusStorageTopic": "status.storage.topic",
}
"""Fields of `spec.target` with the worker's settings that they are."""

_PROVIDERS: Final = {
    "secret": ProviderKind.SECRET,  # of the references to what the resource names
    "strimzisecrets": ProviderKind.SECRET,
    "strimzienv": ProviderKind.ENV,
    "strimzifile": ProviderKind.FILE,
    "strimzidir": ProviderKind.DIRECTORY,
    "file": ProviderKind.FILE,  # the default of older versions
}

PATTERNS: Final = {
    "topics": ("topicsPattern",),
    "topics.exclude": ("topicsExcludePattern", "topicsBlacklistPattern"),
    "groups": ("groupsPattern",),
    "groups.exclude": ("groupsExcludePattern", "groupsBlacklistPattern"),
}
"""Settings of connectors with the fields of a mirror that they are, the present name first."""
CONNECTORS: Final = {
    ConnectorKind.SOURCE: "sourceConnector",
    ConnectorKind.CHECKPOINT: "checkpointConnector",
    ConnectorKind.HEARTBEAT: "heartbeatConnector",
}
_OWN_CONNECTOR_KEYS: Final = {"name", "connector.class", "tasks.max", "connector.plugin.version"}
ConfigValues = Mapping[str, object] | None


class StrimziPart(BaseModel):
    """A mapping of the resource. Unknown keys are kept; `repr` shows no value."""

    model_config = ConfigDict(
        frozen=True, extra="allow", alias_generator=to_camel, hide_input_in_errors=True
    )
    ignored: ClassVar[frozenset[str]] = frozenset()

    def __repr_args__(self) -> tuple[()]:
        return ()


# A name that fits into ${secret:NAME:KEY}; glob characters occur in `pattern`.
SecretText = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._*?\[\]-]+$")]


class SecretRef(StrimziPart):
    """A secret with the names of its keys; which of them are there depends on the use."""

    secret_name: SecretText
    key: SecretText | None = None
    certificate: SecretText | None = None
    pattern: SecretText | None = None
    password: SecretText | None = None


class Authentication(StrimziPart):
    ignored = frozenset({
        "accessTokenIsJwt", "connectTimeoutSeconds", "readTimeoutSeconds", "enableMetrics",
        "httpRetries", "httpRetryPauseMs", "includeAcceptHeader", "maxTokenExpirySeconds",
        "refreshToken", "accessToken", "accessTokenLocation",
        "clientAssertion", "clientAssertionLocation", "clientAssertionType",
    })  # fmt: skip

    type: str
    username: str | None = None
    password_secret: SecretRef | None = None
    certificate_and_key: SecretRef | None = None
    client_id: str | None = None
    client_secret: SecretRef | None = None
    token_endpoint_uri: str | None = None
    grant_type: str | None = None
    scope: str | None = None
    audience: str | None = None
    sasl_extensions: Mapping[str, str] | None = None
    disable_tls_hostname_verification: bool | None = None
    tls_trusted_certificates: tuple[SecretRef, ...] | None = None
    sasl: bool | None = None
    config: ConfigValues = None


class StrimziTls(StrimziPart):
    trusted_certificates: tuple[SecretRef, ...] | None = None


class StrimziCluster(StrimziPart):
    """`spec.clusters[]`, `spec.mirrors[].source` or `spec.target`; the names are the target's."""

    alias: Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,100}$")]
    bootstrap_servers: str
    tls: StrimziTls | None = None
    authentication: Authentication | None = None
    config: ConfigValues = None


class StrimziTarget(StrimziCluster):
    group_id: str | None = None
    config_storage_topic: str | None = None
    offset_storage_topic: str | None = None
    status_storage_topic: str | None = None


class ConnectorSpec(StrimziPart):
    ignored = frozenset({"version", "autoRestart", "listOffsets", "alterOffsets"})

    tasks_max: int | None = None
    pause: bool | None = None
    state: Literal["running", "paused", "stopped"] | None = None
    config: ConfigValues = None


class StrimziMirror(StrimziPart):
    source: StrimziCluster | None = None
    source_cluster: str | None = None
    target_cluster: str | None = None
    source_connector: ConnectorSpec | None = None
    checkpoint_connector: ConnectorSpec | None = None
    heartbeat_connector: ConnectorSpec | None = None
    topics_pattern: str | None = None
    topics_exclude_pattern: str | None = None
    topics_blacklist_pattern: str | None = None
    groups_pattern: str | None = None
    groups_exclude_pattern: str | None = None
    groups_blacklist_pattern: str | None = None


class StrimziSpec(StrimziPart):
    ignored = frozenset({
        "replicas", "image", "resources", "livenessProbe", "readinessProbe", "jvmOptions",
        "jmxOptions", "logging", "rack", "clientRackInitImage", "metricsConfig", "metrics",
        "tracing", "template", "externalConfiguration", "affinity", "tolerations",
    })  # fmt: skip

    version: str | None = None
    target: StrimziTarget | None = None
    connect_cluster: str | None = None
    clusters: tuple[StrimziCluster, ...] = ()
    mirrors: tuple[StrimziMirror, ...] = ()


# Where keys of the resource belong; later parts win.
_PLACES: Final = {
    str(info.alias): place
    for part, place in (
        (Authentication, "the authentication of a cluster"),
        (StrimziCluster, "the source or target of a mirror"),
        (StrimziTarget, "spec.target"),
        (ConnectorSpec, "sourceConnector, checkpointConnector or heartbeatConnector"),
        (StrimziMirror, "spec.mirrors[]"),
        (StrimziSpec, "spec"),
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


def strimzi_setup(text: ResourceText, spec: StrimziSpec, version: str) -> MirrorSetup:
    reader = _Reader(text, spec, version)
    text.require(("spec",), *([] if spec.mirrors else ["mirrors"]))
    reader.check_keys()
    reader.add_clusters()
    worker = reader.worker()
    flows = tuple(reader.flows(worker)) if worker else ()
    own = (each.settings for flow in flows for each in flow.connectors.values())
    providers, unknown = read_providers(worker.settings if worker else {}, *own)
    findings = {*text.findings, *unknown}
    return MirrorSetup(
        Form.STRIMZI,
        reader.clusters,
        flows,
        tuple(sorted(findings, key=lambda each: (each.origin.line or 0, each.what))),
        {**_PROVIDERS, **providers},
        spec.version,
    )


@dataclass(slots=True)
class _Reader:
    text: ResourceText
    spec: StrimziSpec
    version: str
    clusters: dict[str, MirrorCluster] = field(default_factory=dict)
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
        places: list[tuple[Path, StrimziCluster | None]] = [(("spec", "target"), spec.target)]
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
                found = MirrorCluster(cluster.alias, client, origin)
                self.clusters[cluster.alias] = found

    def worker(self) -> Worker | None:
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
            self.text.require(path, *(name for name in TARGET_KEYS if name not in written))
            for name in TARGET_KEYS.keys() & written.keys():
                settings |= self.text.place({TARGET_KEYS[name]: written[name]}, (*path, name))
        return Worker.of(settings)

    def _are_clusters(self, path: Path, **aliases: str) -> bool:
        unknown = {key: alias for key, alias in aliases.items() if alias not in self.clusters}
        for key, alias in unknown.items():
            action = f"use one of {', '.join(self.clusters)}, or add the cluster to spec.clusters"
            self.text.report("unknown-cluster", (*path, key), f"no cluster {alias}", action)
        return not unknown

    def flows(self, worker: Worker) -> Iterator[MirrorFlow]:
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
                yield MirrorFlow(flow, connectors, worker, origin, enabled)

    def _flow(self, mirror: StrimziMirror, path: Path) -> Flow | None:
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
        self, flow: Flow, mirror: StrimziMirror, path: Path
    ) -> Iterator[tuple[ConnectorKind, Connector]]:
        clusters = {
            f"{side}.cluster.{key}": each
            for side, alias in (("source", flow.source), ("target", flow.target))
            for key, each in self.settings[alias].items()
        }
        written = mirror.model_dump(by_alias=True, exclude_none=True)
        specs = (mirror.source_connector, mirror.checkpoint_connector, mirror.heartbeat_connector)
        for (kind, name), spec in zip(CONNECTORS.items(), specs, strict=True):
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
            for key, names in PATTERNS.items():
                for pattern in [each for each in names if each in written][:1]:
                    settings |= self.text.place({key: written[pattern]}, (*path, pattern))
            state = spec.state or ("paused" if spec.pause else "running")
            origin = self.text.origin(here)
            yield kind, Connector(kind, f"{flow}.{kind}", settings, origin, state)


_MODULES: Final = "org.apache.kafka.common.security"

_LOGIN: Final = (
    'LoginModule required username="{username}"'
    ' password="${{secret:{passwordSecret[secretName]}:{passwordSecret[password]}}}";'
)
_SCRAM: Final = f"{_MODULES}.scram.Scram{_LOGIN}"
_PAIR: Final = "${{secret:{certificateAndKey[secretName]}:"

# Settings of each type, as format strings of the keys of `authentication`. Strimzi does not escape
# the values of JAAS options either.
_SETTINGS: Final = {
    "tls": {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": _PAIR + "{certificateAndKey[certificate]}}}",
        "ssl.keystore.key": _PAIR + "{certificateAndKey[key]}}}",
    },
    "plain": {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f"{_MODULES}.plain.Plain{_LOGIN}"},
    "scram-sha-256": {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": _SCRAM},
    "scram-sha-512": {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": _SCRAM},
    "oauth": {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required"
        ' oauth.client.id="{clientId}" oauth.token.endpoint.uri="{tokenEndpointUri}"'
        ' oauth.client.secret="${{secret:{clientSecret[secretName]}:{clientSecret[key]}}}"'
        "{options};",
        "sasl.login.callback.handler.class": (
            "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
        ),
    },
    "custom": {},
}

_OTHER_GRANTS: Final = {
    "accessToken", "accessTokenLocation", "clientAssertion", "clientAssertionLocation",
    "passwordSecret", "refreshToken",
}  # fmt: skip


def cluster_settings(text: ResourceText, cluster: StrimziCluster, path: Path) -> dict[str, Setting]:
    """All settings of *cluster*, written at *path*; its `config` wins, as in Strimzi."""
    given, tls, auth = cluster.authentication, cluster.tls, (*path, "authentication")
    protocol = "PLAINTEXT" if tls is None else "SSL"
    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    settings = text.place(servers, (*path, "bootstrapServers"))
    if tls is not None and tls.trusted_certificates:
        trusted = _certificates(text, tls.trusted_certificates, (*path, "tls"))
        stores = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": trusted}
        settings |= text.place(stores, (*path, "tls"))
        _check_authority(text, tls.trusted_certificates, given, (*path, "tls"))
    if given is not None:
        settings |= _authentication(text, given, auth)
        if given.sasl if given.type == "custom" else given.type != "tls":
            protocol = "SASL_PLAINTEXT" if tls is None else "SASL_SSL"
    settings |= text.place({"security.protocol": protocol}, auth)
    return settings | text.settings(cluster.config, (*path, "config"))


def _check_authority(
    text: ResourceText, trusted: tuple[SecretRef, ...], given: Authentication | None, path: Path
) -> None:
    """Report trust in a KafkaUser's Secret: its `ca.crt` is the clients CA (`KafkaUserModel`).

    Secrets of other origin have other keys, as cert-manager's `tls.crt`, and may have the same CA.
    """
    user = given.certificate_and_key if given else None
    names = {each.secret_name for each in trusted}
    if user is not None and user.certificate == "user.crt" and user.secret_name in names:
        what = f"trusts ca.crt of {user.secret_name}, the Secret of a KafkaUser"
        text.report("clients-ca", path, what)


def _authentication(text: ResourceText, given: Authentication, path: Path) -> dict[str, Setting]:
    values = given.model_dump(by_alias=True, exclude_none=True)
    grants = sorted(_OTHER_GRANTS & values.keys()) if given.type == "oauth" else []
    if given.type not in _SETTINGS or grants:
        what = ", ".join(grants) or f"type {given.type}"
        text.report("unsupported-authentication", path, f"authentication uses {what}")
        return {}
    values["options"] = "".join(f' {name}="{value}"' for name, value in _options(given).items())
    settings = {}
    try:
        for key, template in _SETTINGS[given.type].items():
            settings[key] = template.format_map(values)
    except KeyError as missing:
        text.require(path, str(missing.args[0]))
    if given.type == "custom":
        return _custom(text, given, path)
    if given.tls_trusted_certificates:
        # Of Strimzi's OAuth client. Options of JAAS cannot contain its line breaks.
        trusted = _certificates(text, given.tls_trusted_certificates, path)
        settings["sasl.oauthbearer.ssl.truststore.certificates"] = trusted
    return text.place(settings, path)


def _options(given: Authentication) -> dict[str, str]:
    options = {
        "oauth.client.credentials.grant.type": given.grant_type,
        "oauth.scope": given.scope,
        "oauth.audience": given.audience,
        "oauth.ssl.endpoint.identification.algorithm": (
            "" if given.disable_tls_hostname_verification else None
        ),
    }
    extensions = given.sasl_extensions or {}
    options |= {f"oauth.sasl.extension.{name}": value for name, value in extensions.items()}
    return {name: value for name, value in options.items() if value is not None}


def _custom(text: ResourceText, given: Authentication, path: Path) -> dict[str, Setting]:
    config = text.settings(given.config, (*path, "config"))
    for key in [key for key in config if not key.startswith(("sasl.", "ssl.keystore."))]:
        what = f"authentication.config has {key}; expected only sasl.* and ssl.keystore.*"
        text.report("ignored-key", config.pop(key).origin, what, "move it to the cluster's config")
    return config


def _certificates(text: ResourceText, sources: tuple[SecretRef, ...], path: Path) -> str:
    references = []
    for source in sources:
        key = source.certificate or source.pattern
        text.require(path, *([] if key else ["certificate"]))
        references.append(f"${{secret:{source.secret_name}:{key}}}")
    return "\n".join(references)


class StrimziResource(StrimziPart):
    spec: StrimziSpec


def written_keys(part: StrimziPart) -> Iterator[tuple[tuple[str | int, ...], StrimziPart]]:
    """Yield the path of each key, except those in `config`, with the mapping that has it."""
    for name in part.model_fields_set:
        info, value = type(part).model_fields.get(name), getattr(part, name)
        key = str(info.alias) if info else name
        yield (key,), part
        for index, item in enumerate(value if isinstance(value, tuple) else (value,)):
            if isinstance(item, StrimziPart):
                prefix = (key, index) if isinstance(value, tuple) else (key,)
                yield from (((*prefix, *path), owner) for path, owner in written_keys(item))


_REFUSED: Final = "the operator refuses the resource"

# Checks with why they matter and what to do, unless a finding has its own action.
_ERRORS: Final = {
    "invalid-yaml": ("the file cannot be read reliably", "correct the syntax"),
    "template": ("its value is only known after rendering", "pass the output of helm template"),
    "no-mirror-maker": (
        "no other kind has flows", "pass the output of: kubectl get kafkamirrormaker2 -o yaml"
    ),
    "unknown-api-version": (
        "the layout differs between versions", "use kafka.strimzi.io/v1, v1beta2 or v1alpha1"
    ),
    "geo-replicator": ("its operator keeps them in a KafkaMirrorMaker2", ""),
    "missing-key": (_REFUSED, ""),
    "invalid-value": (_REFUSED, ""),
    "removed-key": ("Strimzi ignores it", ""),
    "duplicate-alias": (
        _REFUSED, "give each cluster its own alias, and each pair of clusters one mirror"
    ),
    "unknown-cluster": (_REFUSED, ""),
    "clients-ca": (
        "it is the CA of the clients, and the brokers' certificates are of another one",
        "trust ca.crt of the Secret CLUSTER-cluster-ca-cert",
    ),
    "invalid-flow": (_REFUSED, "remove this mirror"),
    "unsupported-authentication": (
        "mm2slo reads tls, plain, scram-sha-256, scram-sha-512, custom, and oauth with a secret",
        "set clusters.<alias>.security in mm2slo.yaml",
    ),
}  # fmt: skip

_OTHERS: Final = {
    "unknown-key": ("Strimzi ignores it", "remove it"),
    "ignored-key": ("Strimzi ignores it", "remove it"),
    "skipped-kind": ("mm2slo reads KafkaMirrorMaker2", "no action is needed"),
}


@dataclass(frozen=True, slots=True)
class ResourceText:
    """*root* is the path of the resource in *document*; other paths start there."""

    file: str
    document: Document
    root: Path = ()
    findings: list[Finding] = field(default_factory=list)

    def origin(self, path: Path) -> Origin:
        return Origin(self.file, self.document.line_of((*self.root, *path)))

    def report(self, check: str, place: Path | Origin, what: str, action: str = "") -> None:
        severity = FindingSeverity.ERROR if check in _ERRORS else FindingSeverity.WARNING
        severity = FindingSeverity.INFO if check == "skipped-kind" else severity
        why, usual_action = (_ERRORS | _OTHERS)[check]
        origin = place if isinstance(place, Origin) else self.origin(place)
        self.findings.append(Finding(check, severity, origin, what, why, action or usual_action))

    def require(self, path: Path, *keys: str) -> None:
        """Report that *keys* are missing at *path*, unless no key is given."""
        if keys:
            names = ", ".join(keys)
            self.report("missing-key", path, f"{render_path(path)} has no {names}", f"add {names}")

    def place(self, values: Mapping[str, str], path: Path) -> dict[str, Setting]:
        """Settings that all come from *path*."""
        key, origin = str(path[-1]), self.origin(path)
        return {name: Setting(key, value, origin) for name, value in values.items()}

    def settings(self, config: Mapping[str, object] | None, path: Path) -> dict[str, Setting]:
        """A `config` mapping as Kafka sees it; null is absent, as for Kubernetes."""
        found = {}
        for key, value in (config or {}).items():
            if isinstance(value, dict | list):
                what = f"{key} is not text, a number or a boolean"
                self.report("invalid-value", (*path, key), what, "write lists as one text: a,b")
            elif value is not None:
                text = str(value).lower() if isinstance(value, bool) else str(value)
                found[key] = Setting(key, text, self.origin((*path, key)))
        return found
