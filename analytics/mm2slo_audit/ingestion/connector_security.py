"""How Spark's consumers reach a cluster: the Java form of its security."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from mm2slo_core.config.cluster_config import ClusterConfig

_TRUSTED_FILE: Final = "kafka.ssl.truststore.location"
_TRUSTED_TEXT: Final = "kafka.ssl.truststore.certificates"


def connector_options(cluster: ClusterConfig) -> dict[str, str]:
    """The connector's `kafka.*` options. Holds secrets in the clear.

    CA certificates go as text: executors may run where the driver's file is not. Raises UserError
    for a file that cannot be read.
    """
    options = cluster.security.java_properties("kafka.", read_text=_read)
    trusted = options.pop(_TRUSTED_FILE, None)
    if trusted is not None:
        options[_TRUSTED_TEXT] = _read(trusted)
    return {"kafka.bootstrap.servers": cluster.bootstrap_servers, **options}


def _read(path: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} cannot be read ({type(error).__name__}): expected a PEM file of"
            " clusters.<alias>.security.tls that this user can read"
        ) from None
