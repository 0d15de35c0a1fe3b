"""Clusters and flows for mm2slo.yaml, from MirrorMaker 2's own configuration.

Security: defaults and rules as Kafka's `SslConfigs`, `SaslConfigs` and `DefaultSslEngineFactory`,
the OAuth handlers of Apache (KIP-768, KIP-1139) and Strimzi, and aws-msk-iam-auth. What librdkafka
cannot do is refused by name; no finding shows a password or the value of a JAAS option.

Stores: the format is recognised by content, as Java does: many files named `.jks` are PKCS12. PEM
as Kafka's `DefaultSslEngineFactory` reads it (KIP-651), also when it was written on one line.
"""

from __future__ import annotations

import base64
import re
import shlex
import textwrap
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from typing import Final, TypeVar

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from pydantic import ValidationError

from mm2slo_core.config.client_security import (
    AWS_HANDLER,
    LOGIN_MODULES,
    OAUTH_HANDLER,
    Mechanism,
    OAuth,
    Protocol,
    Sasl,
    Security,
    Tls,
)
from mm2slo_core.config.config_document import Path, Problem, UnresolvedError
from mm2slo_core.config.config_loader import BaseConfig, own_keys
from mm2slo_core.config.secret import Secret
from mm2slo_core.java_values import share_servers
from mm2slo_core.mm2_config.flow_settings import flow_section
from mm2slo_core.mm2_config.mirror_setup import (
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
)
from mm2slo_core.mm2_config.provider_references import (
    JaasError,
    MirrorFiles,
    parse_jaas,
    resolve_settings,
)

_SERVERS: Final = "bootstrap.servers"

# Settings of connectors and workers that do not matter to flows and may refer to secrets.
_NOT_OF_FLOWS: Final = re.compile(
    r"bootstrap\.servers$|(?:^|\.)(?:sasl|ssl)\.|^(?:transforms|predicates)\.|converter"
)


def config_problem(finding: Finding) -> Problem:
    """*finding* as a problem in the report of a configuration."""
    what, origin = f"{finding.what}; {finding.why}", finding.origin
    return Problem("", what, None, finding.action, origin.line, file=origin.file)


def combine_setups(
    setups: Sequence[MirrorSetup],
    files: MirrorFiles,
    own: Mapping[str, object],
    kafka_version: str | None = None,
) -> tuple[BaseConfig, tuple[Finding, ...]]:
    """Combine *setups*; errors among the findings are problems of the result.

    *own* is the content of mm2slo.yaml: what it replaces is neither resolved nor read.
    """
    builder = _Builder(files, own_keys(own))
    for setup in setups:
        for flow in setup.flows:
            builder.herders[flow.flow.target].append((flow, setup))
    for setup in setups:
        builder.add(setup, kafka_version or setup.kafka_version)
    builder.report_principals()
    findings = tuple(dict.fromkeys(builder.findings))
    problems = tuple(config_problem(each) for each in findings if each.is_error)
    is_complete = not any(each.is_error for setup in setups for each in setup.findings)
    base = BaseConfig(builder.clusters, builder.flows, builder.origins, problems, is_complete)
    return base, findings


@dataclass(slots=True)
class _Builder:
    files: MirrorFiles
    own: defaultdict[tuple[str, str], set[str]]
    # By the target of a flow, on which its herder is.
    herders: defaultdict[str, list[tuple[MirrorFlow, MirrorSetup]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    clusters: dict[str, dict[str, object]] = field(default_factory=dict)
    flows: dict[str, dict[str, object]] = field(default_factory=dict)
    origins: dict[Path, tuple[str, int | None]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    principals: dict[str, Origin] = field(default_factory=dict)

    def add(self, setup: MirrorSetup, kafka_version: str | None) -> None:
        self.findings += setup.findings
        used = {alias for each in setup.enabled_flows for alias in astuple(each.flow)}
        for alias, cluster in setup.clusters.items():
            if alias in used or self.own["clusters", alias]:
                self._add_cluster(cluster, setup)
        for flow in setup.enabled_flows:
            label = flow.flow.label
            if not self._is_first(flow):
                continue
            resolved, unresolved = self._resolve_flow(flow, setup)
            writer, more = self._writer(flow)
            self.flows[label], found = flow_section(
                resolved, kafka_version, writer=writer, providers=setup.providers
            )
            # Dedicated mode has all herders; other forms may have that of the way back elsewhere.
            back = {each.flow for each, _ in self.herders[flow.flow.source]}
            is_known = setup.form is Form.PROPERTIES or flow.flow.reverse in back
            if writer is None and is_known:
                self.flows[label]["emit_heartbeats"] = False
            replaced = self.own["flows", label] | self.own["defaults", ""]
            ignored = {f"{kind}-{name}" for kind in ("custom", "unknown") for name in replaced}
            findings = [each for each in found if each.check not in ignored]
            # Of references that cannot be resolved, those matter that the flow's entry needs.
            needed = {each.origin for each in findings if each.is_error}
            unresolved += more
            self.findings += (e for e in unresolved if e.origin in needed or not e.is_error)
            self.findings += (e for e in findings if not e.check.startswith("unknown-"))

    def report_principals(self) -> None:
        """Recommend an own principal, once for all clusters."""
        if self.principals:
            self.findings.append(Finding(
                "own-principal", FindingSeverity.WARNING, next(iter(self.principals.values())),
                f"mm2slo uses MirrorMaker 2's principal on {', '.join(self.principals)}",
                "it can write to every replicated topic, and mm2slo only reads them",
                "set clusters.<alias>.security to an own principal with the permissions of "
                "docs/permissions.md",
            ))  # fmt: skip

    def _add_cluster(self, cluster: MirrorCluster, setup: MirrorSetup) -> None:
        alias, before = cluster.alias, len(self.findings)
        replaced = {*self.own["clusters", alias]}
        if alias in self.clusters:
            # The security settings of the first file apply.
            replaced.add("security")
        chosen = {
            key: each
            for key, each in cluster.client.items()
            if ("bootstrap_servers" if key == _SERVERS else "security") not in replaced
        }
        client, findings = resolve_settings(chosen, setup.providers, self.files)
        self.findings += findings
        section = self.clusters.setdefault(alias, {})
        self.origins.setdefault(("clusters", alias), astuple(cluster.origin))
        if _SERVERS in client:
            self._add_servers(alias, client[_SERVERS])
        if "security" in replaced or any(each.is_error for each in self.findings[before:]):
            return
        security, findings = read_security(client, self.files)
        self.findings += findings
        if security is not None:
            section["security"] = security
            tls = security.tls
            if security.sasl or (tls and (tls.certificate or tls.certificate_file)):
                self.principals[alias] = cluster.origin

    def _add_servers(self, alias: str, servers: Setting) -> None:
        known = str(self.clusters[alias].setdefault("bootstrap_servers", servers.value))
        path = ("clusters", alias, "bootstrap_servers")
        first = Origin(*self.origins.setdefault(path, astuple(servers.origin)))
        if not share_servers(known, servers.value):
            self.findings.append(Finding(
                "conflicting-clusters", FindingSeverity.ERROR, servers.origin,
                f"the cluster {alias!r} has the bootstrap servers {servers.value!r}, but {known!r} "
                f"in {first}",
                "an alias is one cluster",
                f"set clusters.{alias}.bootstrap_servers, or use one mm2slo.yaml per MirrorMaker 2",
            ))  # fmt: skip

    def _is_first(self, flow: MirrorFlow) -> bool:
        first = self.origins.setdefault(("flows", flow.flow.label), astuple(flow.origin))
        if flow.flow.label in self.flows:
            self.findings.append(Finding(
                "duplicate-flow", FindingSeverity.ERROR, flow.origin,
                f"the flow {flow.flow.label!r} is already enabled in {Origin(*first)}",
                "two of the same flow replicate each record twice",
                "leave out one of the files, or disable the flow in one of them",
            ))  # fmt: skip
        return flow.flow.label not in self.flows

    def _writer(self, flow: MirrorFlow) -> tuple[MirrorFlow | None, list[Finding]]:
        """The flow that writes the heartbeats of *flow*: the way back, or another to its source."""
        found = [
            (each, setup)
            for each, setup in self.herders[flow.flow.source]
            if ConnectorKind.HEARTBEAT in each.working_connectors
        ]
        # MirrorHeartbeatConnector writes to the target of its own flow.
        chosen = max(found, key=lambda each: each[0].flow == flow.flow.reverse, default=None)
        return self._resolve_flow(*chosen) if chosen else (None, [])

    def _resolve_flow(
        self, flow: MirrorFlow, setup: MirrorSetup
    ) -> tuple[MirrorFlow, list[Finding]]:
        unresolved: list[Finding] = []

        def resolve(settings: Settings) -> Settings:
            chosen = {k: each for k, each in settings.items() if not _NOT_OF_FLOWS.search(k)}
            resolved, findings = resolve_settings(chosen, setup.providers, self.files)
            unresolved.extend(findings)
            return {**settings, **resolved}

        connectors = {
            kind: replace(each, settings=resolve(each.settings))
            for kind, each in flow.connectors.items()
        }
        worker = replace(flow.worker, settings=resolve(flow.worker.settings))
        return replace(flow, connectors=connectors, worker=worker), unresolved


_WHY: Final = "mm2slo connects to the clusters as MirrorMaker 2 does"
_OWN: Final = "set clusters.<alias>.security in mm2slo.yaml to what mm2slo can use"
_ELSE: Final = ", or set clusters.<alias>.security in mm2slo.yaml"
_STRIMZI_HANDLER: Final = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
_PACKAGE: Final = OAUTH_HANDLER.rpartition(".")[0]
_LOGIN_HANDLER: Final = "sasl.login.callback.handler.class"

_CLASSES: Final = frozenset(
    {
        # Kafka 3.1 to 3.3 had Apache's handler in the package `secured`.
        OAUTH_HANDLER, OAUTH_HANDLER.replace(_PACKAGE, f"{_PACKAGE}.secured"), _STRIMZI_HANDLER,
        f"{_PACKAGE}.DefaultJwtRetriever", f"{_PACKAGE}.ClientCredentialsJwtRetriever", AWS_HANDLER,
    }
)  # fmt: skip

# Fields of `OAuth` as client properties (`sasl.oauthbearer.*`, first) and JAAS options: those of
# Apache, and of Strimzi (`oauth.*`); without these prefixes.
_OAUTH_OPTIONS: Final = {
    "token_endpoint": ("token.endpoint.url", "token.endpoint.uri"),
    "client_id": ("client.credentials.client.id", "clientId", "client.id"),
    "client_secret": ("client.credentials.client.secret", "clientSecret", "client.secret"),
    "scope": ("scope",),
    "audience": ("audience",),
}
_OAUTH_PREFIX: Final = "sasl.oauthbearer."
_EXTENSION: Final = re.compile(r"(?:extension_|sasl\.extension\.)(.+)")

_REFUSED_OPTIONS: Final = (
    "tokenauth", "awsProfileName", "oauth.access.token", "oauth.access.token.location",
    "oauth.refresh.token", "oauth.refresh.token.location", "oauth.client.assertion",
    "oauth.client.assertion.location", "oauth.password.grant.username",
    "oauth.client.credentials.grant.type",
)  # fmt: skip
_AWS_REGION: Final = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.")
_Part = TypeVar("_Part")


def read_security(
    client: Settings, files: MirrorFiles
) -> tuple[Security | None, tuple[Finding, ...]]:
    """Return the security of *client* (resolved values) with PEM content; None if it has errors."""
    reader = _Reader(client, files)
    security = reader.read()
    errors = any(finding.is_error for finding in reader.findings)
    return None if errors else security, tuple(reader.findings)


class _Reader:
    def __init__(self, client: Settings, files: MirrorFiles) -> None:
        self._client = client
        self._values = {key: setting.value for key, setting in client.items()}
        self._files = files
        self.findings: list[Finding] = []

    def read(self) -> Security | None:
        protocol = self._part("security.protocol", self._protocol)
        if protocol is None:
            return None
        sasl = self._part("sasl.jaas.config", self._sasl) if protocol.has_sasl else None
        return Security(protocol=protocol, sasl=sasl, tls=self._tls() if protocol.has_tls else None)

    def _part(self, key: str, read: Callable[[], _Part]) -> _Part | None:
        """Read a part; None if it cannot be used, which is reported at *key*."""
        try:
            return read()
        except UnusableStoreError as error:
            self._report(FindingSeverity.ERROR, key, error)
        except UnresolvedError as error:
            action = "map the files of MirrorMaker 2's machine with --path FROM=TO"
            self._report(
                FindingSeverity.ERROR, key, UnusableStoreError("store-missing", str(error), action)
            )
        return None

    def _report(self, severity: FindingSeverity, key: str, error: UnusableStoreError) -> None:
        # A missing setting is reported at the one that requires it.
        keys = (error.key or key, "sasl.mechanism", "security.protocol", *self._client)
        origin = next(self._client[each].origin for each in keys if each in self._client)
        self.findings.append(Finding(error.check, severity, origin, error.what, _WHY, error.action))

    def _text(self, key: str) -> str:
        return self._values.get(key, "").strip()

    def _protocol(self) -> Protocol:
        name = self._text("security.protocol").upper() or Protocol.PLAINTEXT
        if name not in set(Protocol):
            expected = f"use one of {', '.join(Protocol)}"
            raise UnusableStoreError(
                "security-protocol", f"unknown security.protocol {name}", expected
            )
        return Protocol(name)

    def _sasl(self) -> Sasl:
        self._check_classes("sasl.")
        # GSSAPI is Kafka's default.
        name = self._text("sasl.mechanism") or "GSSAPI"
        if name not in set(Mechanism):
            what = f"mm2slo cannot use sasl.mechanism {name}"
            raise UnusableStoreError("unsupported-mechanism", what, _OWN, "sasl.mechanism")
        mechanism = Mechanism(name)
        options = self._options(mechanism)
        if mechanism is Mechanism.OAUTHBEARER:
            return Sasl(mechanism=mechanism, oauth=self._oauth(options))
        if mechanism is Mechanism.AWS_MSK_IAM:
            region = _AWS_REGION.search(self._text(_SERVERS))
            if region is None:
                what = "mm2slo finds no AWS region in bootstrap.servers"
                raise UnusableStoreError("unsupported-region", what, _OWN, _SERVERS)
            role = options.get("awsRoleArn")
            return Sasl(mechanism=mechanism, aws_region=region[1], aws_role_arn=role)
        if not (options.get("username") and options.get("password")):
            raise _bad_jaas("has no username or no password", 'add username="..." password="..."')
        user, password = options["username"], Secret(options["password"])
        return Sasl(mechanism=mechanism, username=user, password=password)

    def _options(self, mechanism: Mechanism) -> Mapping[str, str]:
        try:
            module = parse_jaas(self._values.get("sasl.jaas.config", ""))
        except JaasError as error:
            raise _bad_jaas(str(error), 'write CLASS required name="value" ...;') from None
        if module.name not in LOGIN_MODULES.values():
            what = f"mm2slo cannot use the login module {module.name}"
            raise UnusableStoreError("unsupported-class", what, _OWN)
        if module.name != LOGIN_MODULES[mechanism]:
            raise _bad_jaas(f"has the login module {module.name}", f"use that of {mechanism}")
        for name in _REFUSED_OPTIONS:
            if name in module.options:
                what = f"mm2slo cannot use {name} of sasl.jaas.config"
                raise UnusableStoreError("unsupported-option", what, _OWN)
        return module.options

    def _oauth(self, options: Mapping[str, str]) -> OAuth:
        if not self._text(_LOGIN_HANDLER):
            what = f"OAUTHBEARER without {_LOGIN_HANDLER} uses unsecured tokens"
            raise UnusableStoreError("class", what, f"set it to {OAUTH_HANDLER}", _LOGIN_HANDLER)
        given = {name.removeprefix("oauth."): value for name, value in options.items()}
        extensions = {
            match[1]: value for name, value in given.items() if (match := _EXTENSION.match(name))
        }
        given |= {
            name.removeprefix(_OAUTH_PREFIX): value if name.endswith("secret") else value.strip()
            for name, value in self._values.items()
            if name.startswith(_OAUTH_PREFIX)
        }
        ca = to_pem(self._store(given, "ssl.truststore.").certificates)
        fields = {
            field: next((given[name] for name in names if given.get(name)), None)
            for field, names in _OAUTH_OPTIONS.items()
        }
        try:
            return OAuth.model_validate({**fields, "ca": ca, "extensions": extensions})
        except ValidationError as invalid:
            field = str(invalid.errors()[0]["loc"][0])
            what = f"the {field.replace('_', ' ')} is missing or not supported"
            action = "set client id, client secret and the http(s) URL of the token endpoint"
            raise UnusableStoreError("oauth-option", what, action) from None

    def _tls(self) -> Tls:
        self._part("security.protocol", lambda: self._check_classes("ssl."))
        trust, own = (
            self._part(f"{prefix}location", partial(self._store, self._values, prefix))
            or CertificateStore()
            for prefix in ("ssl.truststore.", "ssl.keystore.")
        )
        # Java trusts every certificate of the store; OpenSSL, which librdkafka uses, requires a
        # chain up to a self-signed one unless X509_V_FLAG_PARTIAL_CHAIN is set.
        if trust.certificates and not trust.roots:
            what = "ssl.truststore.* has no root CA, without which librdkafka trusts no certificate"
            warning = UnusableStoreError("trust-store-without-root", what, "add the root CA")
            self._report(FindingSeverity.WARNING, "ssl.truststore.location", warning)
        if own.certificates and own.key is None:
            kind = "only CA certificates" if own.certificates == own.roots else "no private key"
            what = f"ssl.keystore.* has {kind}"
            action = "use the client's certificate with its key; CAs belong in ssl.truststore.*"
            error = UnusableStoreError("key-store-without-key", what, action)
            self._report(FindingSeverity.ERROR, "ssl.keystore.location", error)
        encrypted = "ENCRYPTED" in (own.key or "")
        # An empty algorithm disables the verification of host names.
        algorithm = self._values.get("ssl.endpoint.identification.algorithm", "https")
        return Tls(
            ca=to_pem(trust.certificates),
            certificate=to_pem(own.chain),
            key=Secret(own.key) if own.key else None,
            key_password=Secret(self._values["ssl.key.password"]) if encrypted else None,
            verify_hostname=bool(algorithm.strip()),
        )

    def _store(self, values: Mapping[str, str], prefix: str) -> CertificateStore:
        key_password = self._values.get("ssl.key.password")
        parts = ("certificates", "certificate.chain", "key")
        inline = "\n".join(values.get(f"{prefix}{part}", "") for part in parts).strip()
        if inline:
            return read_pem(inline, f"{prefix}*", key_password)
        path = values.get(f"{prefix}location", "").strip()
        if not path:
            return CertificateStore()
        password = values.get(f"{prefix}password")
        return read_store(self._files.content(path), path, password, key_password)

    def _check_classes(self, prefix: str) -> None:
        for key in self._values:
            name = self._text(key)
            if key.startswith(prefix) and key.endswith(".class") and name not in {"", *_CLASSES}:
                what = f"mm2slo cannot use {key}={name}"
                raise UnusableStoreError("unsupported-class", what, _OWN, key)


def _bad_jaas(what: str, action: str) -> UnusableStoreError:
    return UnusableStoreError("sasl-jaas-config", f"sasl.jaas.config {what}", f"{action}{_ELSE}")


_PEM: Final = re.compile(r"-----BEGIN\s+([A-Z0-9 ]+?)-+\s*([A-Za-z0-9+/=\s]+?)-+END\s+\1-+")
# The first four bytes of Java's own format (JavaKeyStore.MAGIC).
_JKS: Final = b"\xfe\xed\xfe\xed"


class UnusableStoreError(ValueError):
    """Settings that cannot be used: name of the check, what, what to do, and the setting."""

    def __init__(self, check: str, what: str, action: str, key: str | None = None) -> None:
        super().__init__(check, what, action)
        self.check, self.what, self.action, self.key = check, what, action, key


@dataclass(frozen=True, slots=True)
class CertificateStore:
    """All certificates; a private key as PEM, if any; its certificate and the issuers of it."""

    certificates: Sequence[x509.Certificate] = ()
    key: str | None = field(default=None, repr=False)
    chain: Sequence[x509.Certificate] = ()

    @property
    def roots(self) -> list[x509.Certificate]:
        return [each for each in self.certificates if each.subject == each.issuer]


def to_pem(certificates: Sequence[x509.Certificate]) -> str | None:
    """The PEM text of *certificates*; None without any."""
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates) or None


def read_store(
    content: bytes, path: str, password: str | None, key_password: str | None
) -> CertificateStore:
    """Read the bytes that were found at *path*; raises UnusableStoreError."""
    if b"-----BEGIN" in content:
        return read_pem(content.decode("utf-8", "replace"), path, key_password)
    if content.startswith(_JKS):
        source, target = shlex.quote(path), shlex.quote(f"{path.removesuffix('.jks')}.p12")
        action = f"convert it: keytool -importkeystore -srckeystore {source} -srcstoretype JKS"
        action += f" -destkeystore {target} -deststoretype PKCS12"
        raise UnusableStoreError(
            "unsupported-store", f"{path} is a JKS store, which only Java reads", action
        )
    try:
        found = pkcs12.load_pkcs12(content, password.encode() if password else None)
    except (ValueError, UnsupportedAlgorithm):
        how = "with its password" if password else "without a password"
        what = f"{path} cannot be read as PKCS12 {how}, and is not PEM"
        action = "check the password of the store, and that the file is a PKCS12 or PEM store"
        raise UnusableStoreError("store-unreadable", what, action) from None
    entries = ([] if found.cert is None else [found.cert]) + found.additional_certs
    return _certificate_store([each.certificate for each in entries], found.key, None, path)


def read_pem(text: str, place: str, key_password: str | None) -> CertificateStore:
    """Read PEM blocks; an encrypted key stays encrypted. Raises UnusableStoreError."""
    certificates, key, encrypted = [], None, None
    what = "a damaged certificate"
    try:
        for label, body in _PEM.findall(text):
            content = textwrap.fill("".join(body.split()), 64)
            if label == "CERTIFICATE":
                certificates.append(x509.load_der_x509_certificate(base64.b64decode(content)))
            elif label.endswith("PRIVATE KEY") and key is None:
                what = f"a key that cannot be read {'with' if key_password else 'without'} password"
                pem = f"-----BEGIN {label}-----\n{content}\n-----END {label}-----\n"
                password = key_password.encode() if key_password else None
                key = load_pem_private_key(pem.encode(), password)
                encrypted = pem if key_password else None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        action = "replace the certificate or key; set ssl.key.password if, and only if, it is "
        raise UnusableStoreError(
            "store-unreadable", f"{place} has {what}", f"{action}encrypted"
        ) from None
    return _certificate_store(certificates, key, encrypted, place)


def _certificate_store(
    certificates: Sequence[x509.Certificate], key: PrivateKeyTypes | None,
    encrypted: str | None, place: str,
) -> CertificateStore:  # fmt: skip
    public = None if key is None else key.public_key()
    found = next((each for each in certificates if public in (None, each.public_key())), None)
    if found is None:
        what = "no certificate" if key is None else "a private key without its certificate"
        raise UnusableStoreError("store-without-certificate", f"{place} has {what}", "add it")
    if key is None:
        return CertificateStore(certificates)
    chain = []
    while found is not None:
        chain.append(found)
        issuers = (each for each in certificates if each.subject == chain[-1].issuer)
        found = next((each for each in issuers if each not in chain), None)
    plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return CertificateStore(certificates, encrypted or plain.decode(), chain)
