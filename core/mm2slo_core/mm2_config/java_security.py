"""Security of a Kafka Java client's properties, as `Security`.

Defaults and rules as Kafka's `SslConfigs`, `SaslConfigs` and `DefaultSslEngineFactory`, the OAuth
handlers of Apache (KIP-768, KIP-1139) and Strimzi, and aws-msk-iam-auth. What librdkafka cannot
do is refused by name; no finding shows a password or the value of a JAAS option.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import ValidationError

from mm2slo_core.client_security import AWS_HANDLER, LOGIN_MODULES, OAUTH_HANDLER
from mm2slo_core.cluster_security import Mechanism, OAuth, Protocol, Sasl, Security, Tls
from mm2slo_core.mm2_config.findings import Finding, Severity
from mm2slo_core.mm2_config.jaas import JaasError, parse_jaas
from mm2slo_core.mm2_config.java_stores import Store, UnusableError, read_pem, read_store, to_pem
from mm2slo_core.mm2_config.provider_references import UnresolvedReferenceError
from mm2slo_core.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mm2slo_core.mm2_config.mirror_setup import Settings
    from mm2slo_core.mm2_config.provider_references import MirrorFiles

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
_SERVERS: Final = "bootstrap.servers"
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
        except UnusableError as error:
            self._report(Severity.ERROR, key, error)
        except UnresolvedReferenceError as error:
            action = "map the files of MirrorMaker 2's machine with --path FROM=TO"
            self._report(Severity.ERROR, key, UnusableError("store-missing", str(error), action))
        return None

    def _report(self, severity: Severity, key: str, error: UnusableError) -> None:
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
            raise UnusableError("security-protocol", f"unknown security.protocol {name}", expected)
        return Protocol(name)

    def _sasl(self) -> Sasl:
        self._check_classes("sasl.")
        # GSSAPI is Kafka's default.
        name = self._text("sasl.mechanism") or "GSSAPI"
        if name not in set(Mechanism):
            what = f"mm2slo cannot use sasl.mechanism {name}"
            raise UnusableError("unsupported-mechanism", what, _OWN, "sasl.mechanism")
        mechanism = Mechanism(name)
        options = self._options(mechanism)
        if mechanism is Mechanism.OAUTHBEARER:
            return Sasl(mechanism=mechanism, oauth=self._oauth(options))
        if mechanism is Mechanism.AWS_MSK_IAM:
            region = _AWS_REGION.search(self._text(_SERVERS))
            if region is None:
                what = "mm2slo finds no AWS region in bootstrap.servers"
                raise UnusableError("unsupported-region", what, _OWN, _SERVERS)
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
            raise UnusableError("unsupported-class", what, _OWN)
        if module.name != LOGIN_MODULES[mechanism]:
            raise _bad_jaas(f"has the login module {module.name}", f"use that of {mechanism}")
        for name in _REFUSED_OPTIONS:
            if name in module.options:
                what = f"mm2slo cannot use {name} of sasl.jaas.config"
                raise UnusableError("unsupported-option", what, _OWN)
        return module.options

    def _oauth(self, options: Mapping[str, str]) -> OAuth:
        if not self._text(_LOGIN_HANDLER):
            what = f"OAUTHBEARER without {_LOGIN_HANDLER} uses unsecured tokens"
            raise UnusableError("class", what, f"set it to {OAUTH_HANDLER}", _LOGIN_HANDLER)
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
            raise UnusableError("oauth-option", what, action) from None

    def _tls(self) -> Tls:
        self._part("security.protocol", lambda: self._check_classes("ssl."))
        trust, own = (
            self._part(f"{prefix}location", partial(self._store, self._values, prefix)) or Store()
            for prefix in ("ssl.truststore.", "ssl.keystore.")
        )
        if trust.certificates and not trust.roots:
            what = "ssl.truststore.* has no root CA, without which librdkafka trusts no certificate"
            warning = UnusableError("trust-store-without-root", what, "add the root CA")
            self._report(Severity.WARNING, "ssl.truststore.location", warning)
        if own.certificates and own.key is None:
            kind = "only CA certificates" if own.certificates == own.roots else "no private key"
            what = f"ssl.keystore.* has {kind}"
            action = "use the client's certificate with its key; CAs belong in ssl.truststore.*"
            error = UnusableError("key-store-without-key", what, action)
            self._report(Severity.ERROR, "ssl.keystore.location", error)
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

    def _store(self, values: Mapping[str, str], prefix: str) -> Store:
        key_password = self._values.get("ssl.key.password")
        parts = ("certificates", "certificate.chain", "key")
        inline = "\n".join(values.get(f"{prefix}{part}", "") for part in parts).strip()
        if inline:
            return read_pem(inline, f"{prefix}*", key_password)
        path = values.get(f"{prefix}location", "").strip()
        if not path:
            return Store()
        password = values.get(f"{prefix}password")
        return read_store(self._files.content(path), path, password, key_password)

    def _check_classes(self, prefix: str) -> None:
        for key in self._values:
            name = self._text(key)
            if key.startswith(prefix) and key.endswith(".class") and name not in {"", *_CLASSES}:
                what = f"mm2slo cannot use {key}={name}"
                raise UnusableError("unsupported-class", what, _OWN, key)


def _bad_jaas(what: str, action: str) -> UnusableError:
    return UnusableError("sasl-jaas-config", f"sasl.jaas.config {what}", f"{action}{_ELSE}")
