"""An audit of the lab that is told to end, or killed, while Spark reads: nothing stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from audited.auditing import QUICK
from reading import copied

from mm2slo_kafka.traffic import Load, produce
from mm2slo_lab.waiting import wait_for
from mm2slo_store import RunState, Store

if TYPE_CHECKING:
    from mm2slo_lab import Lab

pytestmark = pytest.mark.lab

RECORDS = 60_000
_PATIENCE = 240.0
"""Seconds for what takes ten on a machine that does nothing else."""


@pytest.fixture(scope="module")
def topic(lab: Lab) -> str:
    """Enough records that reading them takes a while on one slow core."""
    name = f"ended-{os.getpid()}"
    us = lab.cluster("us")
    us.admin.create_topic(name, 1)
    produce(us.librdkafka(), name, Load(RECORDS))
    wait_for(lambda: copied(lab, name) == RECORDS, f"{RECORDS} copies of {name}")
    return name


def processes_of(folder: Path) -> list[str]:
    """Command lines that name *folder*."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = each.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has just ended
        if str(folder) in line:
            found.append(line)
    return found


def landed(folder: Path) -> list[Path]:
    return list((folder / "records").glob("flow=*/window=*/run=*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_ends_early_leaves_nothing_but_a_note(
    lab: Lab, topic: str, tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "mm2slo.yaml").write_text(lab.config_yaml(), encoding="utf-8")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    # Java makes its own files in java.io.tmpdir, Spark in spark.local.dir.
    java = f"{QUICK['spark.driver.extraJavaOptions']} -Djava.io.tmpdir={scratch}"
    spark = {**QUICK, "spark.driver.extraJavaOptions": java, "spark.local.dir": str(scratch)}
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
            _PATIENCE,
        )
        assert process.poll() is None, process.communicate()[1]
        process.send_signal(number)
        said, told = process.communicate(timeout=_PATIENCE)
    finally:
        process.kill()
    killed = number == signal.SIGKILL
    assert process.returncode == (-number if killed else 128 + number), told
    assert said == ""
    assert "Traceback" not in told
    assert "py4j" not in told
    wait_for(lambda: not processes_of(scratch), "the end of its JVM", _PATIENCE)
    with Store.open(tmp_path / "store.db") as store:
        assert store.units() == ()
        (run,) = store.runs()
        assert run.state is (RunState.RUNNING if killed else RunState.FAILED)
        if not killed:
            assert run.verdict_line == f"told to end by {number.name}"
    if not killed:
        assert told.splitlines()[-1].startswith(f"told to end by {number.name}: ")
        assert landed(tmp_path) == []
        assert [each.name for each in scratch.iterdir() if "hsperf" not in each.name] == []
