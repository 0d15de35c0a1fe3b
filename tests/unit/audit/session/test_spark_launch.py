"""A session that cannot be started."""

from subprocess import PIPE, Popen
from types import SimpleNamespace
from typing import Any

import pyspark
import pyspark.java_gateway
import pytest
from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]

from mm2slo_audit.spark.spark_errors import explain_start_failure
from mm2slo_audit.spark.spark_properties import SparkOptions
from mm2slo_audit.spark.spark_session import spark_session
from mm2slo_core.user_errors import UserError


class _JavaError(Py4JError):  # type: ignore[misc]  # it has no types
    """Its text is in the JVM."""

    def __init__(self, jvm: Popen[bytes]) -> None:
        super().__init__()
        self._jvm = jvm

    def __str__(self) -> str:
        if self._jvm.poll() is not None:
            raise Py4JNetworkError("the JVM has ended")
        return "All masters are unresponsive! Giving up.\n\tat org.apache.spark.SparkContext"


def test_spark_session_unreachable_master_raises_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jvm = Popen(["cat"], stdin=PIPE, stdout=PIPE)

    class Context:
        _active_spark_context = None

        def __init__(self, **_options: Any) -> None:
            raise _JavaError(jvm)

    def launch(*_arguments: Any, **_options: Any) -> SimpleNamespace:
        return SimpleNamespace(proc=jvm)

    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(pyspark, "SparkContext", Context)
    monkeypatch.setattr(pyspark.java_gateway, "launch_gateway", launch)
    options = SparkOptions(master="spark://127.0.0.1:1")
    with pytest.raises(UserError) as raised, spark_session(options):
        pass
    assert str(raised.value) == (
        "Spark did not start with master spark://127.0.0.1:1: All masters are unresponsive! Giving"
        " up."
    )
    assert raised.value.exit_code == 2
    assert raised.value.__suppress_context__
    assert jvm.poll() is not None
    assert jvm.stdout is not None
    jvm.stdout.close()


def test_start_failure_on_full_disk_names_the_disk() -> None:
    lines = (
        "ERROR SparkContext: Error initializing SparkContext.",
        "java.io.IOException: No space left on device",
    )
    assert str(explain_start_failure(lines, "no reason given", "local[2]")) == (
        "Spark did not start with master local[2]: no space left on the disk of audit.directory or"
        " of Spark's temporary files (spark.local.dir)"
    )
