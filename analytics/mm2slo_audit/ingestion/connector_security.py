"""Connection and security options of Spark's Kafka consumers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mm2slo_core.client_security import java_properties
from mm2slo_core.java_client_settings import java_settings
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from mm2slo_core.config.cluster_config import ClusterConfig


def connector_options(cluster: ClusterConfig) -> dict[str, str]:
    """Settings of the connector's consumers; contains secrets in clear text.

    Certificates are passed as text, since executors may not have the driver's files. Raises
    UserError for a file that cannot be read and for what Java clients cannot do.
    """
    settings, _unknown = java_settings(cluster.client)
    try:
        security = java_properties(cluster.security.inlined(_read))
    except ValueError as error:
        raise UserError(str(error)) from None
    return {"bootstrap.servers": cluster.bootstrap_servers, **settings, **security}


def _read(path: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} cannot be read ({type(error).__name__}): expected a PEM file of"
            " clusters.<alias>.security that this user can read"
        ) from None
