"""How Spark is set up, without starting it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from mm2slo_audit.session import SparkOptions, spark_session
from mm2slo_audit.session.connector_jars import CONNECTOR, connector_properties
from mm2slo_audit.session.spark_options import default_driver_memory
from mm2slo_audit.session.spark_properties import LOG_CONFIG, is_needed_at_launch, settings
from mm2slo_audit.session.start_errors import explain_start_failure
from mm2slo_core.config.audit_config import SparkConfig
from mm2slo_core.secret import Secret
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

JARS = (
    "org.apache.spark_spark-sql-kafka-0-10_2.13-4.0.0.jar",
    "org.apache.spark_spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
    "org.apache.kafka_kafka-clients-3.9.0.jar",
    "org.apache.commons_commons-pool2-2.12.0.jar",
)


@pytest.fixture
def ivy(tmp_path: Path) -> str:
    """An empty Ivy folder."""
    return str(tmp_path)


def with_jars(folder: Path, *left_out: str) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    for name in JARS:
        if name not in left_out:
            (folder / name).touch()
    return [str(folder / name) for name in JARS]


def test_a_local_session_has_eight_partitions_per_core_and_stays_on_the_loopback(ivy: str) -> None:
    found = settings(SparkOptions(master="local[3]", ivy_dir=ivy))
    assert found["spark.sql.shuffle.partitions"] == "24"
    assert found["spark.driver.host"] == found["spark.driver.bindAddress"] == "127.0.0.1"
    assert found["spark.ui.enabled"] == "false"
    assert found["spark.sql.session.timeZone"] == "UTC"
    assert found["spark.sql.parquet.outputTimestampType"] == "TIMESTAMP_MICROS"
    assert found["spark.sql.objectHashAggregate.sortBased.fallbackThreshold"] == "1000000"
    assert found["spark.driver.extraJavaOptions"] == (
        f"-Dlog4j2.configurationFile={LOG_CONFIG.as_uri()} -XX:+UseParallelGC"
    )
    assert LOG_CONFIG.is_file()


def test_a_cluster_decides_about_partitions_and_addresses_itself(ivy: str) -> None:
    found = settings(SparkOptions(master="spark://head:7077", ivy_dir=ivy))
    assert not {"spark.sql.shuffle.partitions", "spark.driver.host"} & found.keys()
    assert "ParallelGC" not in found["spark.driver.extraJavaOptions"]
    here = settings(SparkOptions(master="spark://127.0.0.1:7077", ivy_dir=ivy))
    assert here["spark.driver.host"] == "127.0.0.1"
    assert "spark.sql.shuffle.partitions" not in here


def test_properties_of_the_user_win_and_java_options_add_up(ivy: str) -> None:
    more = {"spark.sql.shuffle.partitions": "7", "spark.driver.extraJavaOptions": "-Dx=1"}
    found = settings(SparkOptions(master="local[2]", ivy_dir=ivy, conf=more))
    assert found["spark.sql.shuffle.partitions"] == "7"
    assert found["spark.driver.extraJavaOptions"].endswith("-XX:+UseParallelGC -Dx=1")


def test_what_may_be_secret_is_on_no_command_line() -> None:
    assert is_needed_at_launch("spark.master")
    assert is_needed_at_launch("spark.jars.packages")
    assert is_needed_at_launch("spark.driver.memory")
    assert not is_needed_at_launch("spark.hadoop.fs.s3a.secret.key")


def test_options_follow_the_configuration() -> None:
    config = SparkConfig(
        master="yarn", driver_memory="2g", jars="j", ivy_dir="i",
        conf={"spark.hadoop.k": Secret("v")},
    )  # fmt: skip
    options = SparkOptions.from_config(config)
    assert options == SparkOptions(
        master="yarn", conf={"spark.hadoop.k": "v"}, jars="j", ivy_dir="i", driver_memory="2g"
    )
    assert "'v'" not in repr(options)


def test_the_default_heap_is_between_one_and_four_gigabytes() -> None:
    match = re.fullmatch(r"(\d+)m", default_driver_memory())
    assert match is not None
    assert 1024 <= int(match[1]) <= 4096


def test_jars_that_were_resolved_before_are_taken_from_disk(tmp_path: Path) -> None:
    options = SparkOptions(ivy_dir=str(tmp_path))
    asked = connector_properties(options)
    assert asked["spark.jars.packages"] == CONNECTOR
    assert asked["spark.jars.ivy"] == str(tmp_path)
    assert "hadoop-client-runtime" in asked["spark.jars.excludes"]
    paths = with_jars(tmp_path / "jars")
    assert connector_properties(options) == {"spark.jars": ",".join(paths)}


def test_jars_of_the_user_are_complete_or_named(tmp_path: Path) -> None:
    paths = with_jars(tmp_path)
    assert connector_properties(SparkOptions(jars=str(tmp_path))) == {
        "spark.jars": ",".join(sorted(paths))
    }
    (tmp_path / JARS[2]).unlink()
    with pytest.raises(UserError) as refused:
        connector_properties(SparkOptions(jars=str(tmp_path)))
    assert str(refused.value).startswith(f"{tmp_path} does not hold kafka-clients-*.jar: ")
    assert "docs/audit-air-gap.md" in str(refused.value)


IVY_SAID = """\
:: problems summary ::
\t\tmodule not found: org.apache.spark#spark-token-provider-kafka-0-10_2.13;4.0.0
\t\t\t::          UNRESOLVED DEPENDENCIES         ::
\t\t:: org.apache.spark#spark-token-provider-kafka-0-10_2.13;4.0.0: not found
\t\t:: org.apache.kafka#kafka-clients;3.9.0: several problems occurred, unresolved dependency
Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: ...]
"""


def test_jars_that_cannot_be_had_are_named_with_the_way_without_a_repository() -> None:
    told = str(explain_start_failure(IVY_SAID.splitlines(), "[JAVA_GATEWAY_EXITED]", "local[2]"))
    assert told.startswith(
        "Spark could not resolve org.apache.kafka#kafka-clients;3.9.0,"
        " org.apache.spark#spark-token-provider-kafka-0-10_2.13;4.0.0: "
    )
    assert "audit.spark.jars" in told


def test_any_other_failure_is_told_in_sparks_words() -> None:
    said = ["WARN something", "Error: Could not find or load main class X", "at a.b(C.java)"]
    told = str(explain_start_failure(said, "[JAVA_GATEWAY_EXITED]", "local[2]"))
    assert told == (
        "Spark did not start with the master local[2]: Error: Could not find or load main class X"
    )
    assert str(explain_start_failure([], "the reason", "yarn")).endswith("master yarn: the reason")


def java_of_version(folder: Path, version: str) -> str:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", encoding="ascii")
    java.chmod(0o755)
    return str(java)


def start_with(monkeypatch: pytest.MonkeyPatch, **environment: str) -> str:
    for name in ("SPARK_HOME", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError) as refused, spark_session(SparkOptions()):
        pass
    return str(refused.value)


def test_a_java_that_is_too_old_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = java_of_version(tmp_path, "11.0.22")
    told = start_with(monkeypatch, JAVA_HOME=str(tmp_path))
    assert told.startswith(f"Spark needs Java 17 or newer, and {java} is version 11: install ")


def test_no_java_at_all_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = start_with(monkeypatch, JAVA_HOME=str(tmp_path))
    assert f"there is none in JAVA_HOME ({tmp_path})" in told


def test_another_spark_in_the_environment_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = start_with(monkeypatch, SPARK_HOME=str(tmp_path))
    assert told.startswith(f"SPARK_HOME is {tmp_path}, and the audit needs the Spark of its own ")
