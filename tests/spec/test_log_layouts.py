"""The shipped log configurations write lines that the parser reads, with Kafka 3 and Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from log_shipping import parse_log

from mm2slo_lab.java_lookup import find_java
from mm2slo_lab.kafka_jars import classpath

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
