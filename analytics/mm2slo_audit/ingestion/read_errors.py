"""What Spark said when Kafka could not be read, in a sentence (pure)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mm2slo_core.audit.audit_scope import NotAudited, NotAuditedReason

if TYPE_CHECKING:
    from collections.abc import Mapping

_CAUSES: Final[Mapping[str, tuple[NotAuditedReason, str]]] = {
    "TopicAuthorizationException": (
        NotAuditedReason.AUTHORIZATION,
        "Spark's user may not read the topic: grant it Describe and Read (docs/permissions.md)",
    ),
    "GroupAuthorizationException": (
        NotAuditedReason.AUTHORIZATION,
        "Spark's user may not use the group: grant it Read on groups that start with spark-kafka-",
    ),
    "SaslAuthenticationException": (
        NotAuditedReason.AUTHORIZATION,
        "the login of Spark's user was refused: check sasl of this cluster",
    ),
    "SslAuthenticationException": (
        NotAuditedReason.UNREACHABLE,
        "the TLS handshake failed: check tls of this cluster",
    ),
    "UnknownTopicOrPartitionException": (
        NotAuditedReason.FAILED,
        "the topic was deleted while it was read",
    ),
    "common.errors.TimeoutException": (
        NotAuditedReason.UNREACHABLE,
        "the brokers do not answer the executors: check that each executor can reach them",
    ),
}
_EXCEPTION: Final = re.compile(
    r"(?:Caused by: )?((?:\w+\.)+\w*(?:Exception|Error)): ([^\n]{1,200})"
)
NO_CONNECTOR: Final = ("KAFKA_DATA_SOURCE_NOT_ENABLED", "Failed to find data source: kafka")


def explain_read_error(topic: str, said: str) -> NotAudited:
    """A topic that could not be read, by the text of Spark's exception."""
    for name, (reason, detail) in _CAUSES.items():
        if name in said:
            return NotAudited(topic, reason, detail)
    return NotAudited(topic, NotAuditedReason.FAILED, f"reading it failed: {root_cause(said)}")


def root_cause(said: str) -> str:
    """The innermost exception of a Java stack trace in one line."""
    found = _EXCEPTION.findall(said)
    if not found:
        return said.strip().partition("\n")[0][:200] or "Spark gave no reason"
    name, text = found[-1]
    return f"{name.rpartition('.')[2]}: {text.strip()}"
