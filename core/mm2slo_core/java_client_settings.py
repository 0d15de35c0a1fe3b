"""Settings of librdkafka under their names in Kafka's Java client.

From librdkafka's CONFIGURATION.md and Kafka's `ConsumerConfig`: only names with the same meaning,
unit and values. Others (`ssl.cipher.suites` has other names of ciphers) have no equivalent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.secret import Secret

_SAME: Final = (
    "check.crcs", "client.dns.lookup", "client.id", "client.rack", "connections.max.idle.ms",
    "enable.metrics.push", "fetch.max.bytes", "fetch.min.bytes", "max.partition.fetch.bytes",
    "metadata.max.age.ms", "reconnect.backoff.max.ms", "reconnect.backoff.ms",
    "retry.backoff.max.ms", "retry.backoff.ms", "socket.connection.setup.timeout.ms",
)  # fmt: skip
_JAVA_NAMES: Final = {
    **{name: name for name in _SAME},
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "socket.timeout.ms": "request.timeout.ms",
}


def java_settings(client: Mapping[str, Secret]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The settings for Java, in plain text, and the names of those without an equivalent."""
    values = {name: value.reveal() for name, value in client.items()}
    # 0 is librdkafka's "unlimited" or "as the system", for which Java has other values.
    known = {name for name, value in values.items() if name in _JAVA_NAMES and value != "0"}
    named = {_JAVA_NAMES[name]: values[name] for name in values if name in known}
    return named, tuple(name for name in values if name not in known)
