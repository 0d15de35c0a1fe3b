"""Audits of the lab that end early: by a signal, a full disk, wrong jars."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from audit_scenario.audit_process import FAST_SPARK
from topic_reader import count_copies

from mm2slo_audit.spark.spark_properties import SparkOptions, connector_properties
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab
from mm2slo_store.audit_rows import RunState
from mm2slo_store.store import Store

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("quiet-lab")]

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


def audit_command(topic: str, folder: Path) -> list[str]:
    # Java makes its own files in java.io.tmpdir, Spark in spark.local.dir.
    scratch = folder / "scratch"
    java = f"{FAST_SPARK['spark.driver.extraJavaOptions']} -Djava.io.tmpdir={scratch}"
    spark = {**FAST_SPARK, "spark.driver.extraJavaOptions": java, "spark.local.dir": str(scratch)}
    return [
        *(sys.executable, "-m", "mm2slo_cli", "audit", "--config", str(folder / "mm2slo.yaml")),
        *("--flow", "us->eu", "--topic", topic, "--since", "1h", "--sample", "100%"),
        *("--store", str(folder / "store.db"), "--directory", str(folder / "records")),
        *("--master", "local[1]"),
        *(part for each in spark.items() for part in ("--spark-conf", "=".join(each))),
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_audit_leaves_only_its_run_entry(
    lab: Lab, topic: str, tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "mm2slo.yaml").write_text(lab.config_yaml(), encoding="utf-8")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen(
        audit_command(topic, tmp_path),
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


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ("disk", "no space left on the disk of audit.directory"),
        ("kafka-clients", "Spark's jars do not fit"),
        ("sql-kafka", "Spark has no Kafka connector"),
    ],
)
def test_audit_with_full_disk_or_wrong_jars_is_one_sentence_and_exit_code_2(
    lab: Lab, topic: str, tmp_path: Path, wrong: str, expected: str
) -> None:
    (tmp_path / "mm2slo.yaml").write_text(lab.config_yaml(), encoding="utf-8")
    for name in ("scratch", "records", "jars"):
        (tmp_path / name).mkdir()
    command = audit_command(topic, tmp_path)
    if wrong == "disk":
        mount = 'mount -t tmpfs -o size=64k tmpfs "$0" && exec "$@"'
        unshare = ("unshare", "--map-root-user", "--mount", "sh", "-c", mount)
        command = [*unshare, str(tmp_path / "records"), *command]
        if subprocess.run([*unshare, str(tmp_path / "records"), "true"], check=False).returncode:
            pytest.skip("this user may not mount a file system of its own")
    else:
        for each in connector_properties(SparkOptions())["spark.jars"].split(","):
            shutil.copy(each, tmp_path / "jars")
        (jar,) = (tmp_path / "jars").glob(f"*{wrong}*")
        jar.write_bytes(b"")
        command += ["--jars", str(tmp_path / "jars")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    assert run.returncode == 2, run.stderr
    assert "Traceback" not in run.stderr
    assert f"reading failed: {expected}" in " ".join(run.stderr.splitlines()[-1].split())
    with Store.open(tmp_path / "store.db") as store:
        (failed,) = store.runs()
        assert failed.state is RunState.FAILED
    assert landed(tmp_path) == []
