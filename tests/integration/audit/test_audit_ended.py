"""An audit of the lab interrupted by a signal or killed while Spark reads leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from audit_scenario.audit_process import FAST_SPARK
from topic_reader import count_copies

from mm2slo_kafka.traffic import Load, produce
from mm2slo_lab.condition_wait import wait_for
from mm2slo_store import RunState, Store

if TYPE_CHECKING:
    from mm2slo_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("quiet-lab")]

RECORDS = 60_000
_TIMEOUT = 240.0
"""Takes 10 s on an idle machine."""


@pytest.fixture(scope="module")
def topic(lab: Lab) -> str:
    """A topic with enough records that reading takes a while on one core."""
    name = f"ended-{os.getpid()}"
    us = lab.cluster("us")
    us.admin.create_topic(name, 1)
    produce(us.librdkafka(), name, Load(RECORDS))
    wait_for(lambda: count_copies(lab, name) == RECORDS, f"{RECORDS} copies of {name}")
    return name


def processes_of(folder: Path) -> list[str]:
    """Command lines that name *folder*."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = each.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # the process has just exited
        if str(folder) in line:
            found.append(line)
    return found


def landed(folder: Path) -> list[Path]:
    return list((folder / "records").glob("flow=*/window=*/run=*"))


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.long),
        pytest.param(signal.SIGKILL, marks=pytest.mark.long),
    ],
)
def test_interrupted_audit_leaves_only_its_run_entry(
    lab: Lab, topic: str, tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "mm2slo.yaml").write_text(lab.config_yaml(), encoding="utf-8")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    # Java makes its own files in java.io.tmpdir, Spark in spark.local.dir.
    java = f"{FAST_SPARK['spark.driver.extraJavaOptions']} -Djava.io.tmpdir={scratch}"
    spark = {**FAST_SPARK, "spark.driver.extraJavaOptions": java, "spark.local.dir": str(scratch)}
    command = [
        *(sys.executable, "-m", "mm2slo_cli", "audit", "--config", str(tmp_path / "mm2slo.yaml")),
        *("--flow", "us->eu", "--topic", topic, "--since", "1h", "--sample", "100%"),
        *("--store", str(tmp_path / "store.db"), "--directory", str(tmp_path / "records")),
        *("--master", "local[1]"),
        *(part for each in spark.items() for part in ("--spark-conf", "=".join(each))),
    ]
    process = subprocess.Popen(
        command,
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(
            lambda: process.poll() is not None or bool(landed(tmp_path)),
            "a folder of records",
            _TIMEOUT,
        )
        assert process.poll() is None, process.communicate()[1]
        process.send_signal(number)
        output, errors = process.communicate(timeout=_TIMEOUT)
    finally:
        process.kill()
    killed = number == signal.SIGKILL
    assert process.returncode == (-number if killed else 128 + number), errors
    assert output == ""
    assert "Traceback" not in errors
    assert "py4j" not in errors
    wait_for(lambda: not processes_of(scratch), "its JVM to exit", _TIMEOUT)
    with Store.open(tmp_path / "store.db") as store:
        assert store.units() == ()
        (run,) = store.runs()
        assert run.state is (RunState.RUNNING if killed else RunState.FAILED)
        if not killed:
            assert run.verdict_line == f"interrupted by {number.name}"
    if not killed:
        assert errors.splitlines()[-1].startswith(f"interrupted by {number.name}: ")
        assert landed(tmp_path) == []
        assert [each.name for each in scratch.iterdir() if "hsperf" not in each.name] == []
