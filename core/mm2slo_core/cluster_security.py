"""Security settings of a cluster, rendered for librdkafka and for Java.

Property names: librdkafka's CONFIGURATION.md; Kafka's `SslConfigs`, `SaslConfigs` and
`DefaultSslEngineFactory` (PEM stores, KIP-651); OAUTHBEARER with OIDC, KIP-768.
The rendered properties contain secrets in plain text: pass them to a client, never print them.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from mm2slo_core.secret import Secret

_SECURITY_PACKAGE: Final = "org.apache.kafka.common.security"
_PLAIN_MODULE: Final = f"{_SECURITY_PACKAGE}.plain.PlainLoginModule"
_SCRAM_MODULE: Final = f"{_SECURITY_PACKAGE}.scram.ScramLoginModule"
_OAUTH_MODULE: Final = f"{_SECURITY_PACKAGE}.oauthbearer.OAuthBearerLoginModule"
_OAUTH_HANDLER: Final = f"{_SECURITY_PACKAGE}.oauthbearer.OAuthBearerLoginCallbackHandler"

# Characters that java.io.StreamTokenizer, which parses JAAS lines, needs escaped inside quotes.
_JAAS_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})


class Protocol(StrEnum):
    """Kafka's `security.protocol`."""

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


class Mechanism(StrEnum):
    """The SASL mechanisms that both client libraries support without Kerberos."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"


_Text = Annotated[str, Field(min_length=1)]
_FROZEN: Final = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class OAuth(BaseModel):
    """OAUTHBEARER by OpenID Connect, client-credentials grant (KIP-768)."""

    model_config = _FROZEN

    method: Literal["oidc"] = Field(default="oidc", description="How a token is obtained.")
    token_endpoint: Annotated[str, Field(pattern=r"^https?://[^\s]+$")] = Field(
        description="URL of the identity provider's token endpoint."
    )
    client_id: _Text = Field(description="Client id of this application.")
    client_secret: Secret = Field(description="Client secret of this application.")
    scope: _Text | None = Field(default=None, description="Scope to request; default: none.")
    extensions: Mapping[
        Annotated[str, Field(pattern=r"^[A-Za-z]+$")],
        Annotated[str, Field(pattern=r"^[^,=\x00]*$")],
    ] = Field(default_factory=dict, description="SASL extensions sent to the broker (RFC 7628).")


class Sasl(BaseModel):
    """SASL credentials; the configuration check verifies the fields that a mechanism needs."""

    model_config = _FROZEN

    mechanism: Mechanism = Field(description="How to authenticate.")
    username: _Text | None = Field(default=None, description="User name, for PLAIN and SCRAM.")
    password: Secret | None = Field(default=None, description="Password, for PLAIN and SCRAM.")
    oauth: OAuth | None = Field(default=None, description="Token endpoint, for OAUTHBEARER.")


class Tls(BaseModel):
    """Trusted CAs and, for mutual TLS, the client certificate. All files are PEM."""

    model_config = _FROZEN

    ca_file: _Text | None = Field(
        default=None, description="Trusted CA certificates; default: those of the system."
    )
    certificate_file: _Text | None = Field(
        default=None, description="Client certificate chain, for mutual TLS."
    )
    key_file: _Text | None = Field(
        default=None, description="Client private key (PKCS#8); default: in `certificate_file`."
    )
    key_password: Secret | None = Field(default=None, description="Password of the private key.")
    verify_hostname: bool = Field(
        default=True,
        strict=True,
        description="Verify that the broker's certificate matches its host name.",
    )


class Security(BaseModel):
    """The security settings of one cluster."""

    model_config = _FROZEN

    protocol: Protocol = Field(default=Protocol.PLAINTEXT, description="Kafka's security protocol.")
    sasl: Sasl | None = Field(default=None, description="SASL; required by the SASL protocols.")
    tls: Tls | None = Field(default=None, description="TLS; default: the system's CA certificates.")

    def librdkafka_properties(self) -> dict[str, str]:
        """Return properties for librdkafka (confluent-kafka), with secrets in plain text."""
        properties = {"security.protocol": self.protocol.value}
        if self.protocol.has_sasl and self.sasl is not None:
            properties |= _librdkafka_sasl(self.sasl)
        if self.protocol.has_tls and self.tls is not None:
            properties |= _librdkafka_tls(self.tls)
        return properties

    def java_properties(
        self, prefix: str = "", *, read_text: Callable[[str], str] | None = None
    ) -> dict[str, str]:
        """Return properties for Kafka's Java clients, with *prefix* and secrets in plain text.

        A Java PEM key store is one file with chain and key. If they are separate, *read_text* reads
        their content into the properties; ValueError without it. Values are raw: escape them in a
        properties file. With OAUTHBEARER, Java clients from Kafka 4.0 on also need
        `-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=<endpoint>`.
        """
        properties = {"security.protocol": self.protocol.value}
        if self.protocol.has_sasl and self.sasl is not None:
            properties |= _java_sasl(self.sasl)
        if self.protocol.has_tls and self.tls is not None:
            properties |= _java_tls(self.tls, read_text)
        return {prefix + name: value for name, value in properties.items()}


def jaas_quote(value: str) -> str:
    """Quote *value* for a JAAS line, which `java.io.StreamTokenizer` parses."""
    return f'"{value.translate(_JAAS_ESCAPES)}"'


def _jaas_line(module: str, options: Mapping[str, str]) -> str:
    pairs = (f"{name}={jaas_quote(value)}" for name, value in options.items())
    return " ".join([module, "required", *pairs]) + ";"


def _librdkafka_sasl(sasl: Sasl) -> dict[str, str]:
    properties = {"sasl.mechanism": sasl.mechanism.value}
    if sasl.mechanism is not Mechanism.OAUTHBEARER:
        return properties | _credentials(sasl, "sasl.username", "sasl.password")
    if sasl.oauth is None:
        return properties
    oauth = sasl.oauth
    properties |= {
        "sasl.oauthbearer.method": oauth.method,
        "sasl.oauthbearer.token.endpoint.url": oauth.token_endpoint,
        "sasl.oauthbearer.client.id": oauth.client_id,
        "sasl.oauthbearer.client.secret": oauth.client_secret.reveal(),
    }
    if oauth.scope is not None:
        properties["sasl.oauthbearer.scope"] = oauth.scope
    if oauth.extensions:
        properties["sasl.oauthbearer.extensions"] = ",".join(
            f"{name}={value}" for name, value in oauth.extensions.items()
        )
    return properties


def _java_sasl(sasl: Sasl) -> dict[str, str]:
    properties = {"sasl.mechanism": sasl.mechanism.value}
    if sasl.mechanism is not Mechanism.OAUTHBEARER:
        module = _PLAIN_MODULE if sasl.mechanism is Mechanism.PLAIN else _SCRAM_MODULE
        options = _credentials(sasl, "username", "password")
        return properties | {"sasl.jaas.config": _jaas_line(module, options)}
    if sasl.oauth is None:
        return properties
    oauth = sasl.oauth
    options = {"clientId": oauth.client_id, "clientSecret": oauth.client_secret.reveal()}
    if oauth.scope is not None:
        options["scope"] = oauth.scope
    options |= {f"extension_{name}": value for name, value in oauth.extensions.items()}
    return properties | {
        "sasl.jaas.config": _jaas_line(_OAUTH_MODULE, options),
        "sasl.login.callback.handler.class": _OAUTH_HANDLER,
        "sasl.oauthbearer.token.endpoint.url": oauth.token_endpoint,
    }


def _credentials(sasl: Sasl, username: str, password: str) -> dict[str, str]:
    found = {}
    if sasl.username is not None:
        found[username] = sasl.username
    if sasl.password is not None:
        found[password] = sasl.password.reveal()
    return found


def _librdkafka_tls(tls: Tls) -> dict[str, str]:
    properties = {
        "ssl.endpoint.identification.algorithm": "https" if tls.verify_hostname else "none"
    }
    if tls.ca_file is not None:
        properties["ssl.ca.location"] = tls.ca_file
    if tls.certificate_file is not None:
        properties["ssl.certificate.location"] = tls.certificate_file
        properties["ssl.key.location"] = tls.key_file or tls.certificate_file
    if tls.key_password is not None:
        properties["ssl.key.password"] = tls.key_password.reveal()
    return properties


def _java_tls(tls: Tls, read_text: Callable[[str], str] | None) -> dict[str, str]:
    properties = {"ssl.endpoint.identification.algorithm": "https" if tls.verify_hostname else ""}
    if tls.ca_file is not None:
        properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": tls.ca_file}
    if tls.certificate_file is not None:
        properties["ssl.keystore.type"] = "PEM"
        if tls.key_file in {None, tls.certificate_file}:
            properties["ssl.keystore.location"] = tls.certificate_file
        elif read_text is None:
            raise ValueError(
                f"{tls.certificate_file!r} has no private key; a Java PEM key store is one file "
                "with chain and key: concatenate the two files or pass read_text"
            )
        elif tls.key_file is not None:
            properties["ssl.keystore.certificate.chain"] = read_text(tls.certificate_file)
            properties["ssl.keystore.key"] = read_text(tls.key_file)
    if tls.key_password is not None:
        properties["ssl.key.password"] = tls.key_password.reveal()
    return properties
