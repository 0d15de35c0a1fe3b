"""Prometheus's web configuration file: TLS, authentication, response headers.

Format: https://prometheus.io/docs/prometheus/latest/configuration/https/ with one extension,
`bearer_tokens_sha256`. Keys that this server cannot honour are refused, never passed over.
`parse_web_config` loads a file, or reports all that is wrong with it.
"""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    PlainValidator,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from mm2slo_core.config.config_document import ConfigError, Path, Problem, render_path
from mm2slo_core.config.config_loader import reason_of
from mm2slo_core.config.config_section import Section
from mm2slo_core.config.field_types import Flag, Text
from mm2slo_core.config.secret import Secret
from mm2slo_core.quantity_text import InvalidValueError


class ClientAuthType(StrEnum):
    """Whether a client must show a certificate; the names are those of Go's crypto/tls."""

    NONE = "NoClientCert"
    IF_GIVEN = "VerifyClientCertIfGiven"
    REQUIRED = "RequireAndVerifyClientCert"


class TlsVersion(StrEnum):
    """Versions that may be asked for; older ones are broken and refused."""

    # RFC 8996 deprecates TLS 1.0 and 1.1.
    TLS12 = "TLS12"
    TLS13 = "TLS13"


def _texts(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


class TlsServerConfig(Section):
    """How the server shows itself, and which clients it lets in. Paths as written."""

    cert_file: Text
    key_file: Text
    client_ca_file: Text | None = None
    client_auth_type: ClientAuthType = ClientAuthType.NONE
    client_allowed_sans: Annotated[tuple[Text, ...], BeforeValidator(_texts)] = ()
    min_version: TlsVersion = TlsVersion.TLS12
    max_version: TlsVersion = TlsVersion.TLS13

    @model_validator(mode="after")
    def _goes_together(self) -> "TlsServerConfig":
        verifies = self.client_auth_type is not ClientAuthType.NONE
        if verifies != (self.client_ca_file is not None):
            raise InvalidValueError(
                "has one of client_ca_file and client_auth_type alone",
                expected="both, or neither",
            )
        if self.client_allowed_sans and self.client_auth_type is not ClientAuthType.REQUIRED:
            raise InvalidValueError(
                "has client_allowed_sans for clients that need no certificate",
                expected=f"client_auth_type: {ClientAuthType.REQUIRED}",
            )
        if self.min_version > self.max_version:
            raise InvalidValueError(
                "has a min_version above its max_version", expected="TLS12 up to TLS13"
            )
        return self


_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

# Where an HTTP/1.1 message ends, and what its body is, depends on these (RFC 9112, section 6): the
# server sets them by what it sends.
_FRAMING: Final = frozenset(
    {
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "date",
        "transfer-encoding",
    }
)


def _header_name(value: str) -> str:
    if not _TOKEN.fullmatch(value) or value.lower() in _FRAMING:
        raise InvalidValueError(
            "is not a header that can be set",
            expected=f"an HTTP header name other than {', '.join(sorted(_FRAMING))}",
        )
    return value


def _header_value(value: str) -> str:
    if not value.isascii() or not value.isprintable():
        raise InvalidValueError("is not a header value", expected="printable ASCII on one line")
    return value


def _no_http2(value: bool) -> bool:
    if value:
        raise InvalidValueError(
            "is not supported", expected="false", next_step="remove it; HTTP/1.1 is served"
        )
    return value


class HttpServerConfig(Section):
    http2: Annotated[Flag, AfterValidator(_no_http2)] = False
    headers: Mapping[
        Annotated[str, AfterValidator(_header_name)], Annotated[str, AfterValidator(_header_value)]
    ] = Field(default_factory=dict)


_BCRYPT: Final = re.compile(r"\$2[abxy]\$(0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}")
_SHA256: Final = re.compile(r"[0-9a-fA-F]{64}")


def _bcrypt_hash(value: object) -> Secret:
    if not isinstance(value, str) or not _BCRYPT.fullmatch(value):
        raise InvalidValueError(
            "is not a bcrypt hash",
            expected="a hash such as $2b$12$... of 60 characters",
            next_step="make one with: htpasswd -nBC 12 USER",
        )
    return Secret(value)


def _sha256_digest(value: object) -> Secret:
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise InvalidValueError(
            "is not a SHA-256 digest",
            expected="the 64 hexadecimal digits of the token's SHA-256",
            next_step="make one with: printf %s TOKEN | sha256sum",
        )
    return Secret(value.lower())


def _user(value: str) -> str:
    # A colon ends the user name in Basic credentials (RFC 7617, section 2).
    if not value or ":" in value:
        raise InvalidValueError("is not a user name", expected="text without a colon")
    return value


class WebConfig(Section):
    """The whole file. Without users and tokens everyone may read."""

    tls_server_config: TlsServerConfig | None = None
    http_server_config: HttpServerConfig = Field(default_factory=HttpServerConfig)
    basic_auth_users: Mapping[
        Annotated[str, AfterValidator(_user)], Annotated[Secret, PlainValidator(_bcrypt_hash)]
    ] = Field(default_factory=dict)
    bearer_tokens_sha256: Annotated[
        tuple[Annotated[Secret, PlainValidator(_sha256_digest)], ...], BeforeValidator(_texts)
    ] = ()


_SECTIONS: Final[dict[Path, type[BaseModel]]] = {
    (): WebConfig,
    ("tls_server_config",): TlsServerConfig,
    ("http_server_config",): HttpServerConfig,
}

_UNSUPPORTED: Final = {
    "cipher_suites": "OpenSSL's own choice is used",
    "curve_preferences": "OpenSSL's own choice is used",
    "prefer_server_cipher_suites": "OpenSSL's own choice is used",
    "cert": "write the certificate to a file and name it in cert_file",
    "key": "write the key to a file and name it in key_file",
    "client_ca": "write the certificate to a file and name it in client_ca_file",
    "rate_limit": "the number of connections is limited",
    "auth_excluded_paths": "/healthz and /readyz are always open",
}


def parse_web_config(
    value: object, name: str, line_of: Callable[[Path], int | None] = lambda _: None
) -> WebConfig:
    """*value* as loaded from YAML; *name* is the file's and *line_of* finds a path's line.

    Raises ConfigError with every problem. No value is quoted: it may be a secret.
    """
    try:
        return WebConfig.model_validate({} if value is None else value)
    except ValidationError as invalid:
        errors = invalid.errors(include_url=False, include_input=False)
    raise ConfigError(name, [_problem(error, line_of) for error in errors])


def _problem(error: ErrorDetails, line_of: Callable[[Path], int | None]) -> Problem:
    path = tuple(part for part in error["loc"] if part != "[key]")
    next_step: str | None
    if error["type"] == "extra_forbidden":
        section = _SECTIONS.get(path[:-1])
        next_step = _UNSUPPORTED.get(str(path[-1]))
        what = "is not supported" if next_step else "unknown key"
        expected = f"one of {', '.join(section.model_fields) if section else 'no key here'}"
    elif error["type"] == "missing":
        what, expected, next_step = "is missing", "a value for this key", None
    else:
        what, expected, next_step = reason_of(error)
    return Problem(render_path(path), what, expected, next_step, line_of(path))
