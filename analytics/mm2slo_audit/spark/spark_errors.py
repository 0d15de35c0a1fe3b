"""Exceptions of Spark and its JVM, failed starts and failed reads, each as one sentence."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from mm2slo_audit.audit_ports import AuditEngineError
from mm2slo_audit.spark.spark_properties import PACKAGES, TESTED_LINES, air_gap_advice
from mm2slo_core.audit.audit_scope import NotAudited, NotAuditedReason
from mm2slo_core.user_errors import UserError

_MAX_LENGTH: Final = 400

_JVM_ENDED: Final = (
    "Spark's JVM ended: check its memory (audit.spark.driver_memory), the disk of its temporary"
    " files (spark.local.dir), and its last log lines"
)

_PROBLEMS: Final = {
    ("No space left on device", "Disk quota exceeded"): (
        "no space left on the disk of audit.directory or of Spark's temporary files"
        " (spark.local.dir)"
    ),
    ("ClassNotFoundException: org.apache.spark.sql.kafka010",): (
        f"Spark has no Kafka connector: run spark-submit with --packages {PACKAGES}, or with its"
        " jars (docs/audit-air-gap.md)"
    ),
    ("ClassNotFoundException", "NoClassDefFoundError", "NoSuchMethodError", "NoSuchFieldError",
     "AbstractMethodError", "IncompatibleClassChangeError", "UnsupportedClassVersionError"): (
        f"Spark's jars do not fit each other: expected Spark {TESTED_LINES} and the jars of"
        f" {PACKAGES}"
        " (docs/audit-air-gap.md)"
    ),
}  # fmt: skip


def spark_exceptions() -> tuple[type[Exception], ...]:
    """The exceptions that calls into Spark raise, also once its JVM has ended."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    return (PySparkException, Py4JError, ConnectionError, EOFError)


@contextmanager
def one_line_errors(action: str) -> Iterator[None]:
    """Raise exceptions of Spark and its JVM as AuditEngineError of one sentence."""
    try:
        yield
    except spark_exceptions() as error:
        raise AuditEngineError(f"{action} failed: {describe_spark_error(error)}") from None


def describe_spark_error(error: Exception) -> str:
    """The first line of the text of *error*, without a stack trace.

    The text of a Java exception is in the JVM: ask before the JVM is stopped.
    """
    from py4j.protocol import Py4JJavaError, Py4JNetworkError

    if isinstance(error, (Py4JNetworkError, ConnectionError, EOFError)):
        return _JVM_ENDED
    try:
        if problem := find_spark_problem(str(error)):
            return problem
        text = str(error.java_exception if isinstance(error, Py4JJavaError) else error)
    except (Py4JNetworkError, OSError):
        return _JVM_ENDED
    lines = [line.strip() for line in text.splitlines()]
    reason = next((line for line in lines if line and not line.startswith("at ")), "")
    return reason[:_MAX_LENGTH] + " ..." * (len(reason) > _MAX_LENGTH) or "no reason given"


def find_spark_problem(text: str) -> str | None:
    """A sentence if Spark's disk or jars are the cause in *text*, the text of an exception."""
    for marks, problem in _PROBLEMS.items():
        if any(mark in text for mark in marks):
            return problem
    return None


_UNRESOLVED: Final = re.compile(r":: ([\w.\-]+#[\w.\-]+;[\w.\-]+): (?:not found|.*unresolved)")
_BAD_JAR: Final = ("unresolved dependency", "UNRESOLVED DEPENDENCIES")
_REASONS: Final = ("unresponsive", "Exception", "Error", "error:", "Could not", "refused", "cannot")
_MAX_REASONS: Final = 3


def explain_start_failure(lines: Sequence[str], reason: str, master: str) -> UserError:
    """The error from the JVM's output *lines*; *reason*: the Python exception."""
    missing = sorted({match[1] for line in lines if (match := _UNRESOLVED.search(line))})
    if missing or any(mark in line for line in lines for mark in _BAD_JAR):
        named = ", ".join(missing) or "the Kafka connector"
        return UserError(
            f"Spark could not resolve {named}: check that a Maven repository is reachable (set"
            " DEFAULT_ARTIFACT_REPOSITORY to a mirror, or spark.jars.ivySettings in"
            f" audit.spark.conf to an Ivy settings file); {air_gap_advice()}"
        )
    if problem := find_spark_problem("\n".join([reason, *lines])):
        return UserError(f"Spark did not start with master {master}: {problem}")
    reasons = [line.strip() for line in lines if any(mark in line for mark in _REASONS)]
    detail = "; ".join(dict.fromkeys(reasons[:_MAX_REASONS])) or reason
    return UserError(f"Spark did not start with master {master}: {detail}")


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
    # KafkaRecordToRowConverter, with multiplyExact: Spark's timestamps are microseconds.
    "java.lang.ArithmeticException: long overflow": (
        NotAuditedReason.FAILED,
        "Spark's Kafka connector cannot read a record with a timestamp after the year 294247"
        " (nanoseconds instead of milliseconds?): `kafka-get-offsets --time 9223372036854776` with"
        " this topic on both clusters prints the offset of the first one; the topic can be audited"
        " once retention or kafka-delete-records has removed it",
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
