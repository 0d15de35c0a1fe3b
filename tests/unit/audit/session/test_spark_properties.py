"""Spark's properties and start errors, without starting it."""

import re
from pathlib import Path

import pytest

from mm2slo_audit.spark.spark_errors import explain_start_failure
from mm2slo_audit.spark.spark_properties import (
    LOG_CONFIG,
    SparkOptions,
    connector_properties,
    default_driver_memory,
    installed_connector,
    is_needed_at_launch,
    spark_properties,
)
from mm2slo_audit.spark.spark_session import spark_session
from mm2slo_core.config.flow_config import SparkConfig
from mm2slo_core.config.secret import Secret
from mm2slo_core.user_errors import UserError

JARS = installed_connector().jars


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


def test_spark_properties_local_master_uses_loopback_and_eight_partitions_per_core(
    ivy: str,
) -> None:
    found = spark_properties(SparkOptions(master="local[3]", ivy_dir=ivy))
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


V2 = {"self/cgroup": "0::/system.slice/audit.service"}
V1 = {"self/cgroup": "9:memory:/x\n4:cpu,cpuacct:/docker/1"}


@pytest.mark.parametrize(
    ("cores", "files", "master", "partitions"),
    [
        (1, {}, "local[2]", "8"),
        (2, {**V2, "cpu.max": "max 100000"}, "local[3]", "16"),
        (64, {}, "local[68]", "512"),
        (64, {**V2, "cpu.max": "150000 100000"}, "local[3]", "16"),
        (64, {**V2, "system.slice/audit.service/cpu.max": "300000 100000"}, "local[4]", "24"),
        (
            64,
            {
                **V2,
                "system.slice/cpu.max": "50000 100000",
                "system.slice/audit.service/cpu.max": "max 1",
            },
            "local[2]",
            "8",
        ),
        (
            64,
            {**V1, "cpu/cpu.cfs_quota_us": "200000", "cpu/cpu.cfs_period_us": "100000"},
            "local[3]",
            "16",
        ),
        (
            4,
            {**V1, "cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"},
            "local[6]",
            "32",
        ),
    ],
)
def test_spark_properties_all_cores_runs_more_tasks_than_usable_cores(
    *,
    ivy: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cores: int,
    files: dict[str, str],
    master: str,
    partitions: str,
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(cores)))
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    for root in ("_PROC", "_CGROUPS"):
        monkeypatch.setattr(f"{spark_properties.__module__}.{root}", tmp_path)
    found = spark_properties(SparkOptions(ivy_dir=ivy))
    assert found["spark.master"] == master
    assert found["spark.sql.shuffle.partitions"] == partitions
    # What the user chose stays.
    chosen = spark_properties(SparkOptions(master="local[2]", ivy_dir=ivy))
    assert chosen["spark.master"] == "local[2]"


def test_spark_properties_cluster_master_keeps_cluster_defaults(ivy: str) -> None:
    found = spark_properties(SparkOptions(master="spark://head:7077", ivy_dir=ivy))
    assert not {"spark.sql.shuffle.partitions", "spark.driver.host"} & found.keys()
    assert "ParallelGC" not in found["spark.driver.extraJavaOptions"]
    here = spark_properties(SparkOptions(master="spark://127.0.0.1:7077", ivy_dir=ivy))
    assert here["spark.driver.host"] == "127.0.0.1"
    assert "spark.sql.shuffle.partitions" not in here


def test_spark_properties_user_values_override_and_java_options_append(ivy: str) -> None:
    more = {"spark.sql.shuffle.partitions": "7", "spark.driver.extraJavaOptions": "-Dx=1"}
    found = spark_properties(SparkOptions(master="local[2]", ivy_dir=ivy, conf=more))
    assert found["spark.sql.shuffle.partitions"] == "7"
    assert found["spark.driver.extraJavaOptions"].endswith("-XX:+UseParallelGC -Dx=1")


def test_is_needed_at_launch_excludes_possible_secrets() -> None:
    assert is_needed_at_launch("spark.master")
    assert is_needed_at_launch("spark.jars.packages")
    assert is_needed_at_launch("spark.driver.memory")
    assert not is_needed_at_launch("spark.hadoop.fs.s3a.secret.key")


def test_spark_options_from_config() -> None:
    config = SparkConfig(
        master="yarn", driver_memory="2g", jars="j", ivy_dir="i",
        conf={"spark.hadoop.k": Secret("v")},
    )  # fmt: skip
    options = SparkOptions.from_config(config)
    assert options == SparkOptions(
        master="yarn", conf={"spark.hadoop.k": "v"}, jars="j", ivy_dir="i", driver_memory="2g"
    )
    assert "'v'" not in repr(options)


def test_default_driver_memory_is_between_one_and_four_gib() -> None:
    match = re.fullmatch(r"(\d+)m", default_driver_memory())
    assert match is not None
    assert 1024 <= int(match[1]) <= 4096


def test_connector_properties_use_cached_jars(tmp_path: Path) -> None:
    options = SparkOptions(ivy_dir=str(tmp_path))
    asked = connector_properties(options)
    assert asked["spark.jars.packages"] == installed_connector().coordinates
    assert asked["spark.jars.ivy"] == str(tmp_path)
    assert "hadoop-client-runtime" in asked["spark.jars.excludes"]
    paths = with_jars(tmp_path / "jars")
    assert connector_properties(options) == {"spark.jars": ",".join(paths)}


def test_line_of_spark_without_tested_connector_is_refused_unless_its_jars_are_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.version.__version__", "4.1.1")
    with pytest.raises(UserError, match=r"4\.1\.1 is installed.*4\.0\.x or 4\.2\.x.*--jars"):
        connector_properties(SparkOptions(ivy_dir=str(tmp_path)))
    with pytest.raises(UserError, match=r"does not contain spark-sql-kafka"):
        connector_properties(SparkOptions(jars=str(tmp_path)))
    paths = with_jars(tmp_path)
    assert connector_properties(SparkOptions(jars=str(tmp_path))) == {
        "spark.jars": ",".join(sorted(paths))
    }


def test_connector_properties_missing_user_jar_raises_error(tmp_path: Path) -> None:
    paths = with_jars(tmp_path)
    assert connector_properties(SparkOptions(jars=str(tmp_path))) == {
        "spark.jars": ",".join(sorted(paths))
    }
    (tmp_path / JARS[2]).unlink()
    with pytest.raises(UserError) as raised:
        connector_properties(SparkOptions(jars=str(tmp_path)))
    assert str(raised.value).startswith(f"{tmp_path} does not contain kafka-clients-*.jar: ")
    assert "docs/audit-air-gap.md" in str(raised.value)


IVY_OUTPUT = """\
:: problems summary ::
\t\tmodule not found: org.apache.spark#spark-token-provider-kafka-0-10_2.13;4.0.0
\t\t\t::          UNRESOLVED DEPENDENCIES         ::
\t\t:: org.apache.spark#spark-token-provider-kafka-0-10_2.13;4.0.0: not found
\t\t:: org.apache.kafka#kafka-clients;3.9.0: several problems occurred, unresolved dependency
Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: ...]
"""


def test_explain_start_failure_unresolved_jars_gives_air_gap_advice() -> None:
    message = str(
        explain_start_failure(IVY_OUTPUT.splitlines(), "[JAVA_GATEWAY_EXITED]", "local[2]")
    )
    assert message.startswith(
        "Spark could not resolve org.apache.kafka#kafka-clients;3.9.0,"
        " org.apache.spark#spark-token-provider-kafka-0-10_2.13;4.0.0: "
    )
    assert "audit.spark.jars" in message


def test_explain_start_failure_shows_spark_error() -> None:
    output = ["WARN something", "Error: Could not find or load main class X", "at a.b(C.java)"]
    message = str(explain_start_failure(output, "[JAVA_GATEWAY_EXITED]", "local[2]"))
    assert message == (
        "Spark did not start with master local[2]: Error: Could not find or load main class X"
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
    with pytest.raises(UserError) as raised, spark_session(SparkOptions()):
        pass
    return str(raised.value)


def test_spark_session_old_java_raises_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = java_of_version(tmp_path, "11.0.22")
    message = start_with(monkeypatch, JAVA_HOME=str(tmp_path))
    assert message.startswith(f"Spark needs Java 17 or newer; {java} is version 11: install ")


def test_spark_session_without_java_raises_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = start_with(monkeypatch, JAVA_HOME=str(tmp_path))
    assert f"found none in JAVA_HOME ({tmp_path})" in message


def test_spark_session_other_spark_home_raises_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = start_with(monkeypatch, SPARK_HOME=str(tmp_path))
    assert message.startswith(
        f"SPARK_HOME is {tmp_path}; expected the Spark of the pyspark package "
    )
