"""Security settings of a cluster, which `client_security` renders for librdkafka and Java."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from mm2slo_core.secret import Secret


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


class Mechanism(StrEnum):
    """The SASL mechanisms that both client libraries support without Kerberos."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"
    AWS_MSK_IAM = "AWS_MSK_IAM"


_Text = Annotated[str, Field(min_length=1)]


class _Settings(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
    )


class OAuth(_Settings):
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
    """Audience to request; default: none. Not supported by the audit."""
    ca_file: _Text | None = None
    """CA certificates of the token endpoint (PEM); default: those of the system."""
    ca: _Text | None = Field(default=None, repr=False)
    """Content in place of `ca_file`."""
    extensions: Mapping[
        Annotated[str, Field(pattern=r"^[A-Za-z]+$")],
        Annotated[str, Field(pattern=r"^[^,=\x00]*$")],
    ] = Field(default_factory=dict)
    """SASL extensions sent to the broker (RFC 7628)."""


class Sasl(_Settings):
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


class Tls(_Settings):
    """Trusted CAs and, for mutual TLS, the client certificate: PEM, as files or as content."""

    ca_file: _Text | None = None
    """Trusted CA certificates; default: those of the system."""
    ca: _Text | None = Field(default=None, repr=False)
    """Content in place of `ca_file`."""
    certificate_file: _Text | None = None
    """Client certificate chain, for mutual TLS."""
    certificate: _Text | None = Field(default=None, repr=False)
    """Content in place of `certificate_file`."""
    key_file: _Text | None = None
    """Client private key (PKCS#8); default: in `certificate_file`."""
    key: Secret | None = None
    """Content in place of `key_file`."""
    key_password: Secret | None = None
    """Password of the private key."""
    verify_hostname: bool = Field(default=True, strict=True)
    """Verify that the broker's certificate matches its host name."""


class Security(_Settings):
    """The security settings of one cluster."""

    protocol: Protocol = Protocol.PLAINTEXT
    """Kafka's security protocol."""
    sasl: Sasl | None = None
    """SASL; required by the SASL protocols."""
    tls: Tls | None = None
    """TLS; default: the system's CA certificates."""

    def inlined(self, read_text: Callable[[str], str]) -> "Security":
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
