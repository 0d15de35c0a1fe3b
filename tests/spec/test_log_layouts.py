"""The shipped log configurations write lines that the parser reads, with Kafka 3 and Spark."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pyspark
import pytest
from kafka_jvm import running_jvm
from log_shipping import parse_log

from mm2slo_lab import kafka_runtime
from mm2slo_lab.kafka_runtime import classpath, find_java
from mm2slo_lab.lab_topology import Artifact

pytestmark = pytest.mark.xdist_group("spark")

LOGGING = Path(__file__).parents[2] / "deploy/logging"
SPARK = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
log = spark._jvm.org.apache.logging.log4j.LogManager.getLogger("a.Audit")
log.error('say "yes"\\n\\tplease', spark._jvm.java.lang.IllegalStateException("secret: hunter2"))
spark.stop()
"""


@pytest.mark.long
def test_spark_template_writes_json_lines_with_the_fields_of_other_services() -> None:
    options = (
        f"-Dlog4j2.configurationFile={(LOGGING / 'spark-log4j2.properties').as_uri()}"
        f" -Dmm2slo.log.template={LOGGING / 'spark-log4j2-template.json'} -Dmm2slo.run_id=r1"
    )
    arguments = f'--driver-java-options "{options}" pyspark-shell'
    run = subprocess.run(
        (sys.executable, "-c", SPARK),
        env={"PATH": "/usr/bin:/bin", "PYSPARK_SUBMIT_ARGS": arguments, **java_home()},
        capture_output=True,
        check=True,
        timeout=300,
    )

    events = [event.fields for event in parse_log(run.stderr) if event.time is not None]
    (error,) = (fields for fields in events if fields["logger"] == "a.Audit")

    assert {fields["service"] for fields in events} == {"repl-analytics"}
    assert {fields["run_id"] for fields in events} == {"r1"}
    assert error["message"] == 'say "yes"\n\tplease'
    assert error["level"] == "ERROR"
    assert error["error.type"] == "java.lang.IllegalStateException"
    assert error["error.message"] == "secret: [redacted]"
    assert str(error["error.stack_trace"]).startswith("java.lang.IllegalStateException: secret: [r")


def java_home() -> dict[str, str]:
    return {"JAVA_HOME": str(Path(find_java(17)).resolve().parents[1])}


def log4j(version: str, folder: Path) -> str:
    """A class path, by the Ivy of PySpark as for Kafka's jars."""
    names = ("log4j-core", "log4j-layout-template-json")
    modules = [Artifact("org.apache.logging.log4j", name, version) for name in names]
    modules.append(
        Artifact("com.fasterxml.jackson.dataformat", "jackson-dataformat-yaml", "2.18.6")
    )
    (folder / "ivy.xml").write_text(kafka_runtime.render_ivy_module(modules), encoding="utf-8")
    settings = os.environ.get("MM2SLO_IVY_SETTINGS")
    (jar,) = Path(pyspark.__file__).parent.glob("jars/ivy-*.jar")
    command = kafka_runtime.render_ivy_command(
        java=find_java(17), ivy_jar=jar, module=folder / "ivy.xml", cache=folder / "cache",
        target=folder / "jars", settings=Path(settings) if settings else None,
    )  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return os.pathsep.join(map(str, folder.glob("jars/*.jar")))


@pytest.mark.long
@pytest.mark.parametrize("version", ["2.24.3", "2.25.3"])  # of Kafka 4.0 and Spark 4; of Kafka 4.1
@pytest.mark.parametrize("config", ["connect-log4j2-json.yaml", "spark-log4j2.properties"])
def test_times_of_log4j_2_configurations_are_those_of_the_clock(
    config: str, version: str, tmp_path: Path
) -> None:
    file = tmp_path / "mm2.log"
    options = (
        f"-Dlog4j2.configurationFile={(LOGGING / config).as_uri()}", f"-Dmm2slo.log.file={file}",
        f"-Dmm2slo.log.template={LOGGING / 'spark-log4j2-template.json'}",
        "-Duser.timezone=Asia/Kolkata",
    )  # fmt: skip
    with (
        file.open("a", encoding="utf-8") as output,
        running_jvm(log4j(version, tmp_path), options, output) as jvm,
    ):
        logger = jvm.org.apache.logging.log4j.LogManager.getLogger("clock")
        logger.error("first")
        while time.time() % 1 < 0.5:
            """Milliseconds in place of microseconds are less wrong early in a second."""
        before = time.time()
        logger.error("second")
        after = time.time()

    (logged,) = (e.time for e in parse_log(file.read_bytes()) if e.fields["message"] == "second")

    assert logged is not None
    assert before - 0.001 <= logged <= after  # a layout cuts what is below a millisecond


@pytest.mark.long
def test_text_pattern_of_kafka_3_has_utc_time_thread_and_logger(tmp_path: Path) -> None:
    file, properties = tmp_path / "mm2.log", tmp_path / "mm2.properties"
    properties.write_text("clusters = a\n", encoding="ascii")
    config = LOGGING / "connect-log4j-text.properties"
    subprocess.run(
        (
            find_java(11), f"-Dlog4j.configuration={config.as_uri()}", f"-Dmm2slo.log.file={file}",
            "-Duser.timezone=Asia/Kolkata", "-cp", classpath("3.9.x"),
            "org.apache.kafka.connect.mirror.MirrorMaker", str(properties),
        ),
        capture_output=True, check=False, timeout=300,
    )  # fmt: skip

    events = parse_log(file.read_bytes())
    failed = events[-1].fields

    assert len(events) > 100
    assert {event.fields["thread"] for event in events} == {"main"}
    assert failed["message"] == "Stopping due to error"
    assert failed["level"] == "ERROR"
    assert failed["logger"] == "org.apache.kafka.connect.mirror.MirrorMaker"
    assert failed["error.message"] == "No source->target replication flows."
    assert str(failed["timestamp"]).endswith("Z")
    # The local time differs by five and a half hours.
    assert events[-1].time == pytest.approx(file.stat().st_mtime, abs=3_600)
