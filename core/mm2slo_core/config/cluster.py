"""`clusters:`, how to reach each Kafka cluster."""

import re
from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from mm2slo_core.config.fields import Properties, Section
from mm2slo_core.config.refusal import Refusal
from mm2slo_core.security import Security

_SERVER: Final = re.compile(r"(?:\[[0-9A-Fa-f:.%\w]+\]|[^\s:,\[\]/]+):(?P<port>\d{1,5})")
_HIGHEST_PORT: Final = 65_535


def _bootstrap_servers(value: object) -> str:
    expected = 'host:port, or several separated by commas, as in "eu-1:9093,eu-2:9093"'
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        value = ",".join(value)
    if not isinstance(value, str):
        raise Refusal("is not text", expected=expected)
    servers = [part.strip() for part in value.split(",")]
    for server in servers:
        match = _SERVER.fullmatch(server)
        if match is None or not 0 < int(match["port"]) <= _HIGHEST_PORT:
            raise Refusal(
                f"has the server {server!r}",
                expected=expected,
                next_step="an IPv6 address stands in brackets, as in [::1]:9092",
            )
    return ",".join(servers)


class ClusterConfig(Section):
    """One Kafka cluster, under MirrorMaker 2's alias for it."""

    bootstrap_servers: Annotated[str, BeforeValidator(_bootstrap_servers)] = Field(
        description="Brokers to start from: `host:port`, comma-separated or a list."
    )
    security: Security = Field(
        default_factory=Security, description="Encryption and authentication."
    )
    client: Properties = Field(
        default_factory=dict,
        description="More librdkafka properties, passed on as they are; never shown.",
    )

    def librdkafka_properties(self) -> dict[str, str]:
        """Everything a librdkafka client needs to connect. Holds secrets in the clear."""
        return {
            "bootstrap.servers": self.bootstrap_servers,
            **self.security.librdkafka_properties(),
            **{name: value.reveal() for name, value in self.client.items()},
        }
