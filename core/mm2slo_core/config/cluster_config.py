"""`clusters:`, the connections to the Kafka clusters."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from mm2slo_core.client_security import librdkafka_properties
from mm2slo_core.cluster_security import Security
from mm2slo_core.config.field_types import Properties, Section
from mm2slo_core.config.invalid_value import InvalidValueError
from mm2slo_core.java_values import read_servers, split_list


def _bootstrap_servers(value: object) -> str:
    expected = 'host:port, or several separated by commas, as in "eu-1:9093,eu-2:9093"'
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        value = ",".join(value)
    if not isinstance(value, str):
        raise InvalidValueError("is not text", expected=expected)
    servers = [each for each in split_list(value) if each]
    for server in servers or [value]:
        if read_servers(server) is None:
            raise InvalidValueError(
                f"contains the invalid server {server!r}",
                expected=expected,
                next_step="write IPv6 addresses in brackets, as in [::1]:9092",
            )
    return ",".join(each.rpartition("://")[2] for each in servers)


class ClusterConfig(Section):
    """One Kafka cluster, by its MirrorMaker 2 alias."""

    bootstrap_servers: Annotated[str, BeforeValidator(_bootstrap_servers)]
    """Bootstrap brokers: `host:port`, comma-separated or a list."""
    security: Security = Security()
    """Encryption and authentication."""
    client: Properties = Field(default_factory=dict)
    """Additional librdkafka properties, passed through unchanged; never shown."""

    def librdkafka_properties(self) -> dict[str, str]:
        """The connection properties of a librdkafka client, with secrets in plain text."""
        return {
            "bootstrap.servers": self.bootstrap_servers,
            **librdkafka_properties(self.security),
            **{name: value.reveal() for name, value in self.client.items()},
        }
