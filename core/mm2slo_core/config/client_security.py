"""Security settings of a cluster, as properties of Kafka clients: librdkafka and Java.

Names: librdkafka's CONFIGURATION.md; Kafka's `SslConfigs`, `SaslConfigs` and
`DefaultSslEngineFactory` (PEM, KIP-651); OAUTHBEARER with OIDC, KIP-768, whose TLS settings are
JAAS options in Java; aws-msk-iam-auth. The properties contain secrets in plain text: pass them to a
client, never print them.

`java_settings` gives librdkafka's settings under their names in Java: from librdkafka's
CONFIGURATION.md and Kafka's `ConsumerConfig`: only names with the same meaning, unit and values.
Others (`ssl.cipher.suites` has other names of ciphers) have no equivalent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Final, Literal
from urllib.parse import quote_plus

from pydantic import BaseModel, Field

from mm2slo_core.config.config_section import Section, SectionFinding
from mm2slo_core.config.secret import Secret

_SECURITY_PACKAGE: Final = "org.apache.kafka.common.security"
_SCRAM_MODULE: Final = f"{_SECURITY_PACKAGE}.scram.ScramLoginModule"


class Mechanism(StrEnum):
    """The SASL mechanisms that both client libraries support without Kerberos."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"
    AWS_MSK_IAM = "AWS_MSK_IAM"


LOGIN_MODULES: Final = {
    Mechanism.PLAIN: f"{_SECURITY_PACKAGE}.plain.PlainLoginModule",
    Mechanism.SCRAM_SHA_256: _SCRAM_MODULE,
    Mechanism.SCRAM_SHA_512: _SCRAM_MODULE,
    Mechanism.OAUTHBEARER: f"{_SECURITY_PACKAGE}.oauthbearer.OAuthBearerLoginModule",
    Mechanism.AWS_MSK_IAM: "software.amazon.msk.auth.iam.IAMLoginModule",
}
OAUTH_HANDLER: Final = f"{_SECURITY_PACKAGE}.oauthbearer.OAuthBearerLoginCallbackHandler"
AWS_HANDLER: Final = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"

# Characters that java.io.StreamTokenizer, which parses JAAS lines, needs escaped inside quotes.
_JAAS_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})


def librdkafka_properties(security: Security) -> dict[str, str]:
    """Return properties for librdkafka (confluent-kafka), with secrets in plain text."""
    properties = {"security.protocol": security.protocol.value}
    if security.protocol.has_sasl and security.sasl is not None:
        properties |= _librdkafka_sasl(security.sasl)
    if security.protocol.has_tls and security.tls is not None:
        properties |= _librdkafka_tls(security.tls)
    return properties


def java_properties(security: Security, prefix: str = "") -> dict[str, str]:
    """Return properties for Kafka's Java clients, with *prefix* and secrets in plain text.

    Values are raw: escape them in a properties file. Raises ValueError for what Java clients cannot
    do. With OAUTHBEARER, Java clients from Kafka 4.0 on also need
    `-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=<endpoint>`.
    """
    properties = {"security.protocol": security.protocol.value}
    if security.protocol.has_sasl and security.sasl is not None:
        properties |= _java_sasl(security.sasl)
    if security.protocol.has_tls and security.tls is not None:
        properties |= _java_tls(security.tls)
    return {prefix + name: value for name, value in properties.items()}


def jaas_quote(value: str) -> str:
    """Quote *value* for a JAAS line, which `java.io.StreamTokenizer` parses."""
    return f'"{value.translate(_JAAS_ESCAPES)}"'


def _librdkafka_sasl(sasl: Sasl) -> dict[str, str]:
    if sasl.mechanism is Mechanism.AWS_MSK_IAM:
        # librdkafka has no such mechanism: `mm2slo_kafka.client_handles` makes tokens from this.
        config = json.dumps(_given({"region": sasl.aws_region, "role_arn": sasl.aws_role_arn}))
        return {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.config": config}
    user = {"sasl.username": sasl.username, "sasl.password": sasl.password}
    properties = {"sasl.mechanism": sasl.mechanism.value, **_given(user)}
    if sasl.oauth is None:
        return properties
    oauth, scope = sasl.oauth, sasl.oauth.scope
    if oauth.audience is not None:
        # librdkafka 2.16 has no such property, but sends the scope unencoded in the form.
        scope = f"{scope or ''}&audience={quote_plus(oauth.audience)}"
    extensions = ",".join(f"{name}={value}" for name, value in oauth.extensions.items())
    return properties | _given(
        {
            "sasl.oauthbearer.method": oauth.method,
            "sasl.oauthbearer.token.endpoint.url": oauth.token_endpoint,
            "sasl.oauthbearer.client.id": oauth.client_id,
            "sasl.oauthbearer.client.secret": oauth.client_secret,
            "sasl.oauthbearer.scope": scope,
            "sasl.oauthbearer.extensions": extensions or None,
            "https.ca.location": oauth.ca_file,
            "https.ca.pem": oauth.ca,
        }
    )


def _librdkafka_tls(tls: Tls) -> dict[str, str]:
    # Verification is switched off by `none` here and by empty text in Java (SslConfigs).
    return _given(
        {
            "ssl.endpoint.identification.algorithm": "https" if tls.verify_hostname else "none",
            "ssl.ca.location": tls.ca_file,
            "ssl.ca.pem": tls.ca,
            "ssl.certificate.location": tls.certificate_file,
            "ssl.certificate.pem": tls.certificate,
            "ssl.key.location": tls.key_file or tls.certificate_file,
            "ssl.key.pem": tls.key,
            "ssl.key.password": tls.key_password,
        }
    )


def _java_sasl(sasl: Sasl) -> dict[str, str]:
    options = _given({"username": sasl.username, "password": sasl.password})
    properties = {"sasl.mechanism": sasl.mechanism.value}
    if sasl.oauth is not None:
        options |= _java_oauth(sasl.oauth)
        properties |= {
            "sasl.login.callback.handler.class": OAUTH_HANDLER,
            "sasl.oauthbearer.token.endpoint.url": sasl.oauth.token_endpoint,
        }
    if sasl.mechanism is Mechanism.AWS_MSK_IAM:
        options |= _given({"awsRoleArn": sasl.aws_role_arn, "awsStsRegion": sasl.aws_region})
        properties["sasl.client.callback.handler.class"] = AWS_HANDLER
    pairs = (f"{name}={jaas_quote(value)}" for name, value in options.items())
    line = " ".join([LOGIN_MODULES[sasl.mechanism], "required", *pairs])
    return properties | {"sasl.jaas.config": f"{line};"}


def _java_oauth(oauth: OAuth) -> dict[str, str]:
    if oauth.audience is not None:
        raise ValueError(
            "Kafka's Java client cannot request the audience of sasl.oauth.audience; use a scope or"
            " the identity provider's default audience"
        )
    options = _given(
        {"clientId": oauth.client_id, "clientSecret": oauth.client_secret, "scope": oauth.scope}
    )
    extensions = {f"extension_{name}": value for name, value in oauth.extensions.items()}
    return options | extensions | _java_trust(oauth)


def _java_tls(tls: Tls) -> dict[str, str]:
    if tls.key_file not in {None, tls.certificate_file}:
        raise ValueError(
            f"{tls.certificate_file!r} has no private key; a Java PEM key store is one file with "
            "chain and key: concatenate the two files or use Security.inlined"
        )
    properties: dict[str, str | Secret | None] = {
        "ssl.endpoint.identification.algorithm": "https" if tls.verify_hostname else "",
        "ssl.keystore.type": "PEM" if tls.certificate_file or tls.certificate else None,
        "ssl.keystore.location": tls.certificate_file,
        "ssl.keystore.certificate.chain": tls.certificate,
        "ssl.keystore.key": tls.key,
        "ssl.key.password": tls.key_password,
    }
    return _given(properties) | _java_trust(tls)


def _java_trust(section: Tls | OAuth) -> dict[str, str]:
    properties = _given(
        {"ssl.truststore.location": section.ca_file, "ssl.truststore.certificates": section.ca}
    )
    return {"ssl.truststore.type": "PEM", **properties} if properties else {}


def _given(properties: Mapping[str, str | Secret | None]) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else value.reveal()
        for name, value in properties.items()
        if value is not None
    }


class Protocol(StrEnum):
    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def has_sasl(self) -> bool:
        return self in {Protocol.SASL_PLAINTEXT, Protocol.SASL_SSL}

    @property
    def has_tls(self) -> bool:
        return self in {Protocol.SSL, Protocol.SASL_SSL}


_Text = Annotated[str, Field(min_length=1)]


_CREDENTIALS: Final = {Mechanism.OAUTHBEARER: ("oauth",), Mechanism.AWS_MSK_IAM: ("aws_region",)}
_PEM: Final = "-----BEGIN CERTIFICATE-----"

_TLS_OWNERS: Final = {
    "key_file": ("certificate_file",), "key": ("certificate",), "certificate": ("key",),
    "key_password": ("certificate_file", "certificate"),
}  # fmt: skip


class OAuth(Section):
    """OAUTHBEARER by OpenID Connect, client-credentials grant (KIP-768)."""

    method: Literal["oidc"] = "oidc"
    """How a token is obtained."""
    token_endpoint: Annotated[str, Field(pattern=r"^https?://[^\s]+$")]
    """URL of the identity provider's token endpoint."""
    client_id: _Text
    """Client id of this application."""
    client_secret: Secret
    """Client secret of this application."""
    scope: _Text | None = None
    """Scope to request; default: none."""
    audience: _Text | None = None
    """Audience to request, not supported by the audit; default: none."""
    ca_file: _Text | None = None
    """CA certificates of the token endpoint (PEM); default: those of the system."""
    ca: _Text | None = Field(default=None, repr=False)
    """PEM text in place of `ca_file`."""
    extensions: Mapping[
        Annotated[str, Field(pattern=r"^[A-Za-z]+$")],
        Annotated[str, Field(pattern=r"^[^,=\x00]*$")],
    ] = Field(default_factory=dict)
    """SASL extensions sent to the broker (RFC 7628)."""

    def check(self) -> Iterator[SectionFinding]:
        return _check_pem(self, "ca")


class Sasl(Section):
    """SASL credentials; the configuration check verifies the fields that a mechanism needs."""

    mechanism: Mechanism
    """How to authenticate."""
    username: _Text | None = None
    """User name, for PLAIN and SCRAM."""
    password: Secret | None = None
    """Password, for PLAIN and SCRAM."""
    oauth: OAuth | None = None
    """Token endpoint, for OAUTHBEARER."""
    aws_region: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")] | None = None
    """Region of the cluster, for AWS_MSK_IAM (extra `msk`)."""
    aws_role_arn: _Text | None = None
    """Role to assume, for AWS_MSK_IAM; default: AWS's default."""

    def check(self) -> Iterator[SectionFinding]:
        needed = _CREDENTIALS.get(self.mechanism, ("username", "password"))
        for name in ("username", "password", "oauth", "aws_region"):
            if (getattr(self, name) is None) == (name in needed):
                what, verb = "has no effect", "remove"
                if name in needed:
                    what, verb = "is required", "add"
                yield SectionFinding(
                    (name,), f"{what} with the mechanism {self.mechanism}",
                    f"{' and '.join(needed)} with {self.mechanism}", f"{verb} {name}",
                )  # fmt: skip


class Tls(Section):
    """Trusted CAs and, for mutual TLS, the client certificate: PEM, as files or as content."""

    ca_file: _Text | None = None
    """Trusted CA certificates; default: those of the system."""
    ca: _Text | None = Field(default=None, repr=False)
    """PEM text in place of `ca_file`."""
    certificate_file: _Text | None = None
    """Client certificate chain, for mutual TLS."""
    certificate: _Text | None = Field(default=None, repr=False)
    """PEM text in place of `certificate_file`."""
    key_file: _Text | None = None
    """Client private key (PKCS#8); default: in `certificate_file`."""
    key: Secret | None = None
    """PEM text in place of `key_file`."""
    key_password: Secret | None = None
    """Password of the private key."""
    verify_hostname: bool = Field(default=True, strict=True)
    """Verify that the broker's certificate matches its host name."""

    def check(self) -> Iterator[SectionFinding]:
        for name, owners in _TLS_OWNERS.items():
            has_owner = any(getattr(self, owner) for owner in owners)
            if getattr(self, name) is not None and not has_owner:
                yield SectionFinding(
                    (name,), f"is set without {owners[0]}",
                    f"{owners[0]} and {name} together, for mutual TLS", f"add {owners[0]}",
                )  # fmt: skip
        yield from _check_pem(self, "ca", "certificate", "key")


def _check_pem(section: Tls | OAuth, *names: str) -> Iterator[SectionFinding]:
    for name in names:
        content = getattr(section, name)
        if content is not None and getattr(section, f"{name}_file") is not None:
            yield SectionFinding(
                (name,), f"is set together with {name}_file",
                f"{name}_file or {name}", "remove one of them",
            )  # fmt: skip
        # A key here would be shown.
        if isinstance(content, str) and (_PEM not in content or "PRIVATE KEY" in content):
            yield SectionFinding(
                (name,), "is not a list of PEM certificates", f"{_PEM}, and so on, without a key"
            )


class Security(Section):
    """The security settings of one cluster."""

    protocol: Protocol = Protocol.PLAINTEXT
    """Kafka's security protocol."""
    sasl: Sasl | None = None
    """SASL; required by the SASL protocols."""
    tls: Tls | None = None
    """TLS; default: the system's CA certificates."""

    def check(self) -> Iterator[SectionFinding]:
        """SASL and TLS settings match the protocol."""
        protocol = self.protocol
        if self.sasl is None and protocol.has_sasl:
            yield SectionFinding(
                ("sasl",), f"is required with the protocol {protocol}",
                "mechanism and credentials", "add sasl, or set protocol to one without SASL",
            )  # fmt: skip
        for name, is_used, protocols in (
            ("sasl", protocol.has_sasl, "SASL_PLAINTEXT or SASL_SSL"),
            ("tls", protocol.has_tls, "SSL or SASL_SSL"),
        ):
            if getattr(self, name) is not None and not is_used:
                yield SectionFinding(
                    (name,), f"has no effect with the protocol {protocol}",
                    f"protocol {protocols}", f"set protocol, or remove {name}",
                )  # fmt: skip

    def inlined(self, read_text: Callable[[str], str]) -> Security:
        """Return the same settings with PEM content in place of files, for other machines."""

        def content(section: Tls | OAuth) -> dict[str, str | None]:
            files = {name: getattr(section, f"{name}_file", None) for name in ("ca", "certificate")}
            read = {name: read_text(path) for name, path in files.items() if path is not None}
            return read | {f"{name}_file": None for name in read}

        update: dict[str, BaseModel] = {}
        if self.tls is not None:
            # A certificate file without a key file contains both; clients take their part of it.
            key_file = self.tls.key_file or self.tls.certificate_file
            key = self.tls.key if key_file is None else Secret(read_text(key_file))
            changes = {**content(self.tls), "key": key, "key_file": None}
            update["tls"] = self.tls.model_copy(update=changes)
        if self.sasl is not None and self.sasl.oauth is not None:
            oauth = self.sasl.oauth.model_copy(update=content(self.sasl.oauth))
            update["sasl"] = self.sasl.model_copy(update={"oauth": oauth})
        return self.model_copy(update=update)


_SAME: Final = (
    "check.crcs", "client.dns.lookup", "client.id", "client.rack", "connections.max.idle.ms",
    "enable.metrics.push", "fetch.max.bytes", "fetch.min.bytes", "max.partition.fetch.bytes",
    "metadata.max.age.ms", "reconnect.backoff.max.ms", "reconnect.backoff.ms",
    "retry.backoff.max.ms", "retry.backoff.ms", "socket.connection.setup.timeout.ms",
)  # fmt: skip

_JAVA_NAMES: Final = {
    **{name: name for name in _SAME},
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "socket.timeout.ms": "request.timeout.ms",
}


def java_settings(client: Mapping[str, Secret]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The settings for Java, in plain text, and the names of those without an equivalent."""
    values = {name: value.reveal() for name, value in client.items()}
    # 0 is librdkafka's "unlimited" or "as the system", for which Java has other values.
    known = {name for name, value in values.items() if name in _JAVA_NAMES and value != "0"}
    named = {_JAVA_NAMES[name]: values[name] for name in values if name in known}
    return named, tuple(name for name in values if name not in known)
