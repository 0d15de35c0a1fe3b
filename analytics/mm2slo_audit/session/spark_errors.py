"""Exceptions of Spark and its JVM as one sentence."""

from __future__ import annotations

from typing import Final

from mm2slo_audit.session.connector_jars import PACKAGES, TESTED_LINES

_MAX_LENGTH: Final = 400
_GONE: Final = (
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


def describe_spark_error(error: Exception) -> str:
    """The first line of the text of *error*, without a stack trace.

    The text of a Java exception is in the JVM: ask before the JVM is stopped.
    """
    from py4j.protocol import Py4JJavaError, Py4JNetworkError

    if isinstance(error, (Py4JNetworkError, ConnectionError, EOFError)):
        return _GONE
    try:
        if problem := find_spark_problem(str(error)):
            return problem
        text = str(error.java_exception if isinstance(error, Py4JJavaError) else error)
    except (Py4JNetworkError, OSError):
        return _GONE
    lines = [line.strip() for line in text.splitlines()]
    reason = next((line for line in lines if line and not line.startswith("at ")), "")
    return reason[:_MAX_LENGTH] + " ..." * (len(reason) > _MAX_LENGTH) or "no reason given"


def find_spark_problem(text: str) -> str | None:
    """A sentence if Spark's disk or jars are the cause in *text*, the text of an exception."""
    for marks, problem in _PROBLEMS.items():
        if any(mark in text for mark in marks):
            return problem
    return None
