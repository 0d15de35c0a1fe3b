"""TLS and access rules from a web configuration file, or TLS from certificate files.

Not imported by a service that has neither: it needs the models of the configuration.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from mm2slo_core.config.config_document import ConfigError, parse_document
from mm2slo_core.user_errors import UserError
from mm2slo_web.authenticator import Authenticator
from mm2slo_web.web_access import OPEN, ReloadedAccess, WebAccess
from mm2slo_web.web_config import (
    ClientAuthType,
    TlsServerConfig,
    TlsVersion,
    WebConfig,
    parse_web_config,
)


def web_config_file(path: Path) -> ReloadedAccess:
    """Access from a web configuration file."""
    newest: Authenticator | None = None

    def load() -> tuple[WebAccess, tuple[Path, ...]]:
        nonlocal newest
        config = _read_web_config(path)
        tls = config.tls_server_config
        users, tokens = config.basic_auth_users, config.bearer_tokens_sha256
        access = WebAccess(
            Authenticator(users, tokens, newest),
            server_context(tls, path.parent) if tls else None,
            tls.client_allowed_sans if tls else (),
            tuple(
                (name.lower().encode(), value.encode())
                for name, value in config.http_server_config.headers.items()
            ),
        )
        newest = access.authenticator
        return access, (path, *(tls_files(tls, path.parent) if tls else ()))

    return ReloadedAccess(load)


def certificate_files(tls: TlsServerConfig) -> ReloadedAccess:
    """TLS without authentication."""
    return ReloadedAccess(
        lambda: (WebAccess(OPEN.authenticator, server_context(tls, Path())), tls_files(tls, Path()))
    )


def _read_web_config(path: Path) -> WebConfig:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UserError(
            f"cannot read web configuration file {str(path)!r}: {error}; "
            "expected the file that exporter.web_config_file names"
        ) from error
    document = parse_document(text)
    if document.problems:
        raise ConfigError(str(path), document.problems)
    return parse_web_config(document.value, str(path), document.line_of)


_TLS_VERSIONS = {
    TlsVersion.TLS12: ssl.TLSVersion.TLSv1_2,
    TlsVersion.TLS13: ssl.TLSVersion.TLSv1_3,
}

_VERIFY_MODES = {
    ClientAuthType.NONE: ssl.CERT_NONE,
    ClientAuthType.IF_GIVEN: ssl.CERT_OPTIONAL,
    ClientAuthType.REQUIRED: ssl.CERT_REQUIRED,
}


def server_context(config: TlsServerConfig, folder: Path) -> ssl.SSLContext:
    """The context for *config*; relative paths start at *folder*, the configuration file's.

    Raises UserError when a file cannot be read or does not hold what it should.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _TLS_VERSIONS[config.min_version]
    context.maximum_version = _TLS_VERSIONS[config.max_version]
    context.set_alpn_protocols(["http/1.1"])
    cert_file, key_file = folder / config.cert_file, folder / config.key_file
    try:
        # The empty password makes an encrypted key an error instead of a question on the terminal.
        context.load_cert_chain(cert_file, key_file, password="")
    except (OSError, ValueError) as error:
        raise UserError(
            f"cannot use certificate {str(cert_file)!r} with key {str(key_file)!r}: {error}; "
            "expected a PEM certificate chain and its unencrypted PEM key"
        ) from error
    if config.client_ca_file is not None:
        ca_file = folder / config.client_ca_file
        try:
            context.load_verify_locations(ca_file)
        except (OSError, ValueError) as error:
            raise UserError(
                f"cannot use client_ca_file {str(ca_file)!r}: {error}; expected PEM certificates"
            ) from error
    context.verify_mode = _VERIFY_MODES[config.client_auth_type]
    return context


def tls_files(config: TlsServerConfig, folder: Path) -> tuple[Path, ...]:
    names = (config.cert_file, config.key_file, config.client_ca_file)
    return tuple(folder / name for name in names if name is not None)
