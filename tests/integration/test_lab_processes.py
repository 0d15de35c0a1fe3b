"""A lab leaves no processes, and a detached lab is found again."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mm2slo_cli.lab import lab_app
from mm2slo_core.user_errors import UserError

pytestmark = pytest.mark.lab
RUN = CliRunner()
PARENT = """
import sys, time
from mm2slo_lab.running_lab import Lab
with Lab.start() as lab:
    print(*(process.handle.pid for process in lab.processes.values()), lab.runtime.root, flush=True)
    if sys.argv[1] == "wait":
        time.sleep(600)
"""


def processes_of(root: str) -> list[int]:
    """Pids of processes whose command line contains *root*."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and root.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def start_parent(mode: str) -> tuple[subprocess.Popen[str], set[int], str]:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, mode], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    *pids, root = parent.stdout.readline().split()
    return parent, {int(pid) for pid in pids}, root


@pytest.mark.long
def test_lab_stop_leaves_no_process() -> None:
    parent, pids, root = start_parent("end")
    with parent:
        assert len(pids) == 3
        assert parent.wait(timeout=60) == 0

    assert processes_of(root) == []
    assert not Path(root).exists()


@pytest.mark.long
def test_killed_parent_leaves_no_process() -> None:
    parent, pids, root = start_parent("wait")
    with parent:
        assert set(processes_of(root)) == pids
        assert len(pids) == 3
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()

    end = time.monotonic() + 10
    while processes_of(root) and time.monotonic() < end:
        time.sleep(0.05)
    assert processes_of(root) == []


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    # 80 columns, whatever the terminal of the test run has.
    monkeypatch.setenv("COLUMNS", "80")
    yield tmp_path
    RUN.invoke(lab_app, ["down"])


def lab(*arguments: str) -> str:
    result = RUN.invoke(lab_app, arguments)
    if result.exception is not None:
        raise result.exception
    return result.output


@pytest.mark.long
def test_detached_lab_is_found_changed_and_stopped(state: Path) -> None:
    text = lab("up")
    assert "the lab is running" in text
    assert (state / "mm2slo" / "lab" / "data" / "mm2slo.yaml").is_file()

    with pytest.raises(UserError, match=r"a lab is already running \(us, eu, mm2\)"):
        lab("up")

    arguments = ("--cluster", "us", "--topic", "orders", "--count", "500", "--partitions", "4")
    assert "produced 500 records to orders on us" in lab("produce", *arguments)

    lab("fault", "pause-mm2")
    assert found()["mm2"] == "paused"
    lab("fault", "resume-mm2")
    lab("fault", "kill-mm2")
    lab("fault", "stop-cluster", "eu")
    assert found() == {"us": "running", "eu": "stopped", "mm2": "stopped"}
    hint = "eu is not running: start it with `mm2slo lab fault start-cluster eu`"
    with pytest.raises(UserError, match=hint):
        lab("fault", "delete-records", "--cluster", "eu", "--topic", "t", "--before", "1")
    with pytest.raises(UserError, match=r"topic 'nothing' does not exist"):
        lab("fault", "delete-records", "--cluster", "us", "--topic", "nothing", "--before", "1")
    lab("fault", "start-cluster", "eu")
    lab("fault", "start-mm2")
    assert found() == {"us": "running", "eu": "running", "mm2": "running"}

    lines = lab("status").splitlines()
    assert all(len(line) <= 80 for line in lines if "/" not in line)

    assert lab("down") == "stopped us, eu, mm2\n"
    assert processes_of(str(state)) == []
    with pytest.raises(UserError, match="no lab is running"):
        lab("status")


def found() -> dict[str, str]:
    summary = json.loads(lab("status", "--json"))
    return {name: process["state"] for name, process in summary["processes"].items()}
