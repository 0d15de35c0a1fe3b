"""The audit continues after its JVM died."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[3] / "support"
PROGRAM = """
from audit_runs.fake_ports import CONFIG
from mm2slo_audit.spark.spark_engine import SparkEngineSource
from mm2slo_audit.spark.spark_properties import SparkOptions

options = SparkOptions(master="local[1]", driver_memory="512m")
with SparkEngineSource(CONFIG, options, "audit", long_lived=True) as source:
    first = source.get(1)
    assert source.get(1) is first
    process = first._spark.sparkContext._gateway.proc
    process.kill()
    process.wait()
    assert not first.is_alive
    second = source.get(1)
    print("counted", second is not first, second._spark.range(7).count())
"""


@pytest.mark.long
def test_spark_source_restarts_session_after_jvm_died(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SUPPORT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert "counted True 7" in found.stdout.splitlines(), found.stderr
    assert found.returncode == 0
