"""Processes of the lab: signals, readiness, exit with their parent."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mm2slo_lab.lab_topology import ProcessError
from mm2slo_lab.managed_process import ManagedProcess, ProcessHandle, ProcessSpec

PARENT = """
import sys, time
from pathlib import Path
from mm2slo_lab.managed_process import ManagedProcess, ProcessSpec
process = ManagedProcess(
    ProcessSpec("sleeper", ("sleep", "600"), Path(sys.argv[1])),
    outlives_parent=sys.argv[2] == "outlives",
)
process.start()
print(process.handle.pid, process.handle.started, flush=True)
time.sleep(600)
"""


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[ManagedProcess]:
    process = ManagedProcess(ProcessSpec("sleeper", ("sleep", "600"), tmp_path / "log"))
    yield process
    process.kill()


def becomes(condition: Callable[[], bool], timeout: float = 10.0) -> bool:
    end = time.monotonic() + timeout
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_process_starts_pauses_resumes_and_stops(sleeper: ManagedProcess) -> None:
    assert sleeper.handle is None
    assert sleeper.rss is None

    sleeper.start()
    assert sleeper.running
    assert (sleeper.rss or 0) > 0

    sleeper.pause()
    was_paused = sleeper.paused
    sleeper.resume()
    assert (was_paused, sleeper.paused) == (True, False)

    before = sleeper.exit_code
    sleeper.stop()
    assert (before, sleeper.exit_code) == (None, -signal.SIGTERM)
    assert not sleeper.running


def test_paused_process_can_be_stopped(sleeper: ManagedProcess) -> None:
    sleeper.start()
    sleeper.pause()

    sleeper.stop()

    assert not sleeper.running


def test_start_of_running_process_raises(sleeper: ManagedProcess) -> None:
    sleeper.start()
    with pytest.raises(ProcessError, match="sleeper is already running"):
        sleeper.start()


def test_pause_of_stopped_process_raises(sleeper: ManagedProcess) -> None:
    with pytest.raises(ProcessError, match="sleeper is not running: start it first"):
        sleeper.pause()


def test_early_exit_raises_with_last_log_lines(tmp_path: Path) -> None:
    command = ("sh", "-c", "for n in $(seq 20); do echo line $n; done; exit 3")
    process = ManagedProcess(ProcessSpec("us", command, tmp_path / "us.log"))
    process.start()

    with pytest.raises(ProcessError, match="us exited before it was serving") as caught:
        process.wait_until(lambda: False, "serving", timeout=10)

    assert process.exit_code == 3
    assert str(caught.value).splitlines()[2:] == [f"line {number}" for number in range(9, 21)]


def test_wait_timeout_raises_with_condition(sleeper: ManagedProcess) -> None:
    sleeper.start()
    with pytest.raises(ProcessError, match="sleeper is not serving after 0 s"):
        sleeper.wait_until(lambda: False, "serving", timeout=0.1)


def test_process_is_found_by_its_handle(sleeper: ManagedProcess, tmp_path: Path) -> None:
    sleeper.start()
    handle = sleeper.handle
    assert handle is not None

    assert ManagedProcess(sleeper.spec, handle=handle).running
    # A pid may be reused.
    later = ProcessHandle(handle.pid, (handle.started or 0) + 1)
    assert not ManagedProcess(sleeper.spec, handle=later).running
    assert not ManagedProcess(ProcessSpec("x", (), tmp_path / "x"), handle=None).running


def sleeps(pid: int) -> bool:
    """Whether the guard has exec'd the command."""
    return Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x00600\x00"


def test_process_outlives_the_thread_that_started_it(sleeper: ManagedProcess) -> None:
    def start() -> None:
        sleeper.start()
        handle = sleeper.handle
        assert handle is not None
        assert becomes(lambda: sleeps(handle.pid))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()

    # The kernel would send the signal when the thread ends.
    assert not becomes(lambda: not sleeper.running, timeout=0.5)


@pytest.mark.parametrize(
    ("mode", "when", "lives"),
    [
        ("guarded", "at once", False),
        ("guarded", "later", False),
        ("outlives", "later", True),
    ],
)
def test_process_of_killed_parent_exits_unless_it_outlives_it(
    tmp_path: Path, mode: str, when: str, *, lives: bool
) -> None:
    log = tmp_path / "log"
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(log), mode], stdout=subprocess.PIPE, text=True
    ) as parent:
        try:
            assert parent.stdout is not None
            pid, started = (int(text) for text in parent.stdout.readline().split())
            handle = ProcessHandle(pid, started)
            assert when == "at once" or becomes(lambda: sleeps(pid))
        finally:
            parent.kill()
    child = ManagedProcess(ProcessSpec("sleeper", (), log), handle=handle)
    ended = becomes(lambda: not child.running, timeout=1.0 if lives else 10.0)
    child.kill()

    assert ended is not lives
