"""Turns Spark's exceptions about reading Kafka into one sentence (pure)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mm2slo_core.audit.audit_scope import NotAudited, NotAuditedReason

if TYPE_CHECKING:
    from collections.abc import Mapping

_CAUSES: Final[Mapping[str, tuple[NotAuditedReason, str]]] = {
    "TopicAuthorizationException": (
        NotAuditedReason.AUTHORIZATION,
        "Spark's user is not authorized to read the topic: grant it Describe and Read"
        " (docs/permissions.md)",
    ),
    "GroupAuthorizationException": (
        NotAuditedReason.AUTHORIZATION,
        "Spark's user is not authorized to use the group: grant it Read on groups with the prefix"
        " spark-kafka-",
    ),
    "SaslAuthenticationException": (
        NotAuditedReason.AUTHORIZATION,
        "authentication of Spark's user failed: check sasl of this cluster",
    ),
    "SslAuthenticationException": (
        NotAuditedReason.UNREACHABLE,
        "the TLS handshake failed: check tls of this cluster",
    ),
    "PBES2 SecretKeyFactory": (
        NotAuditedReason.UNREACHABLE,
        "Java cannot decrypt the private key of this cluster's tls: give a key without a password,"
        " or one of `openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES`",
    ),
    "UnknownTopicOrPartitionException": (
        NotAuditedReason.FAILED,
        "the topic was deleted while it was read",
    ),
    "common.errors.TimeoutException": (
        NotAuditedReason.UNREACHABLE,
        "the brokers do not respond to the executors: check that each executor can reach them",
    ),
}
_EXCEPTION: Final = re.compile(
    r"(?:Caused by: )?((?:\w+\.)+\w*(?:Exception|Error)): ([^\n]{1,200})"
)


def explain_read_error(topic: str, message: str) -> NotAudited:
    """Why a topic could not be read, from the text of Spark's exception."""
    for name, (reason, detail) in _CAUSES.items():
        if name in message:
            return NotAudited(topic, reason, detail)
    return NotAudited(
        topic, NotAuditedReason.FAILED, f"reading it failed: {extract_root_cause(message)}"
    )


def extract_root_cause(message: str) -> str:
    """The innermost exception of a Java stack trace in one line."""
    found = _EXCEPTION.findall(message)
    if not found:
        return message.strip().partition("\n")[0][:200] or "Spark gave no reason"
    name, text = found[-1]
    return f"{name.rpartition('.')[2]}: {text.strip()}"
