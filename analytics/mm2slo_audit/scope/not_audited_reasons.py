"""Maps Kafka errors to reasons why a topic is not audited (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.audit.audit_scope import NotAudited, NotAuditedReason
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.topology import Flow

_REASONS: Final[Mapping[ErrorKind, NotAuditedReason]] = {
    ErrorKind.AUTHORIZATION: NotAuditedReason.AUTHORIZATION,
    ErrorKind.AUTHENTICATION: NotAuditedReason.AUTHORIZATION,
    ErrorKind.UNREACHABLE: NotAuditedReason.UNREACHABLE,
    ErrorKind.TIMEOUT: NotAuditedReason.UNREACHABLE,
    ErrorKind.TLS: NotAuditedReason.UNREACHABLE,
}


def reason_for_error(kind: ErrorKind) -> NotAuditedReason:
    return _REASONS.get(kind, NotAuditedReason.FAILED)


def not_audited_after(topic: str, error: Exception, flows: tuple[Flow, ...]) -> NotAudited:
    """A topic of *flows* that is not audited because of *error*."""
    if isinstance(error, KafkaOperationError):
        return NotAudited(topic, reason_for_error(error.kind), str(error), flows)
    if isinstance(error, TimeoutError):
        return NotAudited(topic, NotAuditedReason.UNREACHABLE, str(error), flows)
    return NotAudited(topic, NotAuditedReason.FAILED, str(error), flows)
