"""Connection and security options of Spark's Kafka consumers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from mm2slo_core.config.cluster_config import ClusterConfig

_TRUSTED_FILE: Final = "kafka.ssl.truststore.location"
_TRUSTED_TEXT: Final = "kafka.ssl.truststore.certificates"


def connector_options(cluster: ClusterConfig) -> dict[str, str]:
    """The connector's `kafka.*` options; contains secrets in clear text.

    CA certificates are passed as text, since executors may not have the driver's files. Raises
    UserError for a file that cannot be read.
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
