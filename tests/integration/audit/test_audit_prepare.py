"""`mm2slo audit prepare`: its output, and its effect on later sessions."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("quiet-lab")]

SESSION = """
from pathlib import Path
from mm2slo_audit.spark.spark_properties import SparkOptions
from mm2slo_audit.spark.spark_session import spark_session
with spark_session(SparkOptions(master="local[1]")) as spark:
    pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    print(Path(f"/proc/{pid}/maps").read_text().count(".jsa"), spark.range(5).count())
"""


def run(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "XDG_CACHE_HOME": str(cache), "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )


def test_session_after_prepare_maps_class_archive(tmp_path: Path) -> None:
    before = run(tmp_path, "-c", SESSION).stdout.split()
    prepared = run(tmp_path, "-m", "mm2slo_cli", "audit", "prepare")
    spark, tested, self_test, archived = prepared.stdout.splitlines()
    assert spark.startswith(f"Spark {pyspark.__version__} runs on ")
    assert tested == "tested with Kafka connectors: Spark 4.0.x with 4.0.0, 4.2.x with 4.2.0"
    assert self_test == ("self-test passed: the audit found the lost and the duplicate record")
    (archive,) = (tmp_path / "mm2slo").iterdir()
    assert archived.startswith(f"class archive: {archive} (")
    after = run(tmp_path, "-c", SESSION).stdout.split()
    # Java always maps its own archive.
    assert int(after[0]) > int(before[0]) >= 1
    assert before[1] == after[1] == "5"


def test_prepare_with_remote_master_exits_with_2(tmp_path: Path) -> None:
    config = tmp_path / "mm2slo.yaml"
    config.write_text(
        "clusters:\n"
        "  us: {bootstrap_servers: '127.0.0.1:1'}\n"
        "  eu: {bootstrap_servers: '127.0.0.1:2'}\n"
        "flows: [{flow: us->eu}]\n"
        "audit: {spark: {master: 'spark://127.0.0.1:7077'}}\n"
    )
    with pytest.raises(subprocess.CalledProcessError) as refused:
        run(tmp_path, "-m", "mm2slo_cli", "audit", "prepare", "--config", str(config))
    assert refused.value.returncode == 2
    errors = " ".join(refused.value.stderr.split())
    assert "the master is spark://127.0.0.1:7077; prepare supports only local masters" in errors
