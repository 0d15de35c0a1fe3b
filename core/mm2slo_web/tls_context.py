"""Server-side TLS from a web configuration."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from mm2slo_core.user_errors import UserError
from mm2slo_web.web_config import ClientAuthType, TlsVersion

if TYPE_CHECKING:
    from pathlib import Path

    from mm2slo_web.web_config import TlsServerConfig

_VERSIONS = {
    TlsVersion.TLS12: ssl.TLSVersion.TLSv1_2,
    TlsVersion.TLS13: ssl.TLSVersion.TLSv1_3,
}
_VERIFY = {
    ClientAuthType.NONE: ssl.CERT_NONE,
    ClientAuthType.IF_GIVEN: ssl.CERT_OPTIONAL,
    ClientAuthType.REQUIRED: ssl.CERT_REQUIRED,
}


def server_context(config: TlsServerConfig, folder: Path) -> ssl.SSLContext:
    """The context for *config*; relative paths start at *folder*, the configuration file's.

    Raises UserError when a file cannot be read or does not hold what it should.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[config.min_version]
    context.maximum_version = _VERSIONS[config.max_version]
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
    context.verify_mode = _VERIFY[config.client_auth_type]
    return context


def tls_files(config: TlsServerConfig, folder: Path) -> tuple[Path, ...]:
    """The files that *config* names."""
    names = (config.cert_file, config.key_file, config.client_ca_file)
    return tuple(folder / name for name in names if name is not None)
