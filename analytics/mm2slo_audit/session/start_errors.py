"""Turns a failed start of Spark into one sentence (pure)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mm2slo_audit.session.connector_jars import air_gap_advice
from mm2slo_audit.session.spark_errors import find_spark_problem
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

_UNRESOLVED: Final = re.compile(r":: ([\w.\-]+#[\w.\-]+;[\w.\-]+): (?:not found|.*unresolved)")
_BAD_JAR: Final = ("unresolved dependency", "UNRESOLVED DEPENDENCIES")
_REASONS: Final = ("unresponsive", "Exception", "Error", "error:", "Could not", "refused", "cannot")
_SHOWN: Final = 3


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
    detail = "; ".join(dict.fromkeys(reasons[:_SHOWN])) or reason
    return UserError(f"Spark did not start with master {master}: {detail}")
