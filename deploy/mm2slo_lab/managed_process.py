"""A process of the lab, started by this program or by an earlier `mm2slo lab up`.

Its TCP ports are free ones on the loopback address, below the ephemeral range: a restarted broker
must find its port free. A port stays reserved for the process that was given it.
"""

import fcntl
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from mm2slo_core.local_environment import cache_folder
from mm2slo_lab import process_guard
from mm2slo_lab.lab_topology import LabError, ProcessError

_POLL = 0.05
_TAIL = 12
_SIGNAL_TIMEOUT = 10.0
_PAGE = os.sysconf("SC_PAGE_SIZE")

# The guard's signal depends on the thread that starts the process: this one never ends early.
_SPAWNER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lab-spawner")


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """Command and log file of a process."""

    name: str
    command: tuple[str, ...]
    log_file: Path


@dataclass(frozen=True, slots=True)
class ProcessHandle:
    """Identifies a process; `started` distinguishes it from a later one with the same pid.

    `started` is field 22 of /proc/<pid>/stat, in clock ticks since boot (proc(5)); None without
    /proc.
    """

    pid: int
    started: int | None


PATIENCE: Final = 180.0
"""Seconds; a machine that stalls is no failure."""


class ManagedProcess:
    """Starts, signals and watches one process.

    It is killed when this program exits, unless *outlives_parent*.
    """

    def __init__(
        self,
        spec: ProcessSpec,
        *,
        outlives_parent: bool = False,
        handle: ProcessHandle | None = None,
    ) -> None:
        self.spec = spec
        self._outlives_parent = outlives_parent
        self._handle = handle
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def handle(self) -> ProcessHandle | None:
        """Handle of the running process, or None."""
        return self._handle if self.running else None

    @property
    def running(self) -> bool:
        """Whether the process exists, including a paused one."""
        if self._handle is None:
            return False
        if self._child is not None:
            return self._child.poll() is None
        status = _status(self._handle.pid)
        return (
            status is not None
            and status[0] != "Z"  # exited, not yet reaped by init
            and self._handle.started in (None, status[1])
        )

    @property
    def paused(self) -> bool:
        """Whether the process is stopped by SIGSTOP."""
        status = None if self._handle is None or not self.running else _status(self._handle.pid)
        return status is not None and status[0] in "Tt"

    @property
    def rss(self) -> int | None:
        """Resident memory in bytes; None if it is not running or without /proc."""
        if self._handle is None or not self.running:
            return None
        try:
            statm = Path(f"/proc/{self._handle.pid}/statm").read_text(encoding="ascii")
        except OSError:
            return None
        return int(statm.split()[1]) * _PAGE

    @property
    def exit_code(self) -> int | None:
        """Exit code, negative for a signal; None while it runs, or of another program's process."""
        return None if self._child is None else self._child.poll()

    def start(self) -> None:
        """Start the process in its own process group.

        Raises ProcessError when it is already running or cannot be started.
        """
        if self.running:
            raise ProcessError(f"{self.spec.name} is already running")
        self.spec.log_file.parent.mkdir(parents=True, exist_ok=True)
        try:
            if self._outlives_parent:
                self._child, pid = None, self._spawn_detached()
            else:
                self._child = _SPAWNER.submit(self._spawn_guarded).result()
                pid = self._child.pid
        except OSError as error:
            raise ProcessError(f"{self.spec.name} could not be started: {error}") from error
        status = _status(pid)
        self._handle = ProcessHandle(pid, None if status is None else status[1])

    def _spawn_guarded(self) -> subprocess.Popen[bytes]:
        guarded = (sys.executable, "-I", "-S", process_guard.__file__, str(os.getpid()))
        with self.spec.log_file.open("ab") as log:
            return subprocess.Popen(
                (*guarded, *self.spec.command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _spawn_detached(self) -> int:
        # Popen would warn when it is garbage-collected before the process exits.
        with self.spec.log_file.open("ab") as log, Path(os.devnull).open("rb") as nothing:
            return os.posix_spawnp(
                self.spec.command[0],
                self.spec.command,
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, nothing.fileno(), 0),
                    (os.POSIX_SPAWN_DUP2, log.fileno(), 1),
                    (os.POSIX_SPAWN_DUP2, log.fileno(), 2),
                ],
                setsid=True,
            )

    def stop(self, timeout: float = 30.0) -> None:
        """Send SIGTERM, and SIGKILL if it is still running after *timeout* seconds."""
        if not self.running:
            return
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)
        if not self._has_exited(timeout):
            self.kill()

    def kill(self) -> None:
        """Send SIGKILL."""
        if self.running:
            self._signal(signal.SIGKILL)
            if not self._has_exited(_SIGNAL_TIMEOUT):
                raise ProcessError(
                    f"{self.spec.name} is still running {_SIGNAL_TIMEOUT:.0f} s after SIGKILL"
                )

    def pause(self) -> None:
        """Send SIGSTOP and wait until the process is paused."""
        self._require_running()
        self._signal(signal.SIGSTOP)
        self.wait_until(lambda: self.paused, "paused", _SIGNAL_TIMEOUT)

    def resume(self) -> None:
        """Send SIGCONT and wait until the process is resumed."""
        self._require_running()
        self._signal(signal.SIGCONT)
        self.wait_until(lambda: not self.paused, "resumed", _SIGNAL_TIMEOUT)

    def wait_until(self, ready: Callable[[], bool], what: str, timeout: float = PATIENCE) -> float:
        """Wait until *ready*; returns the seconds it took.

        Raises ProcessError with the last lines of the log when the process exits or *timeout*
        passes.
        """
        start = time.monotonic()
        while not ready():
            if not self.running:
                raise ProcessError(f"{self.spec.name} exited before it was {what}.\n{self.tail()}")
            if time.monotonic() - start > timeout:
                raise ProcessError(
                    f"{self.spec.name} is not {what} after {timeout:.0f} s.\n{self.tail()}"
                )
            time.sleep(_POLL)
        return time.monotonic() - start

    def tail(self) -> str:
        """Return the last lines of the log."""
        try:
            text = self.spec.log_file.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            return f"(log not readable: {error})"
        return f"Last lines of {self.spec.log_file}:\n" + "\n".join(text.splitlines()[-_TAIL:])

    def _require_running(self) -> None:
        if not self.running:
            raise ProcessError(f"{self.spec.name} is not running: start it first")

    def _signal(self, number: signal.Signals) -> None:
        if self._handle is not None and self.running:
            os.kill(self._handle.pid, number)

    def _has_exited(self, timeout: float) -> bool:
        end = time.monotonic() + timeout
        while self.running:
            if time.monotonic() > end:
                return False
            time.sleep(_POLL)
        return True


class LabProcess:
    """A broker, MirrorMaker 2 or a Connect worker: one process that may be started again."""

    process: ManagedProcess

    @property
    def running(self) -> bool:
        """Whether the process exists, including a paused one."""
        return self.process.running

    def stop(self) -> None:
        """Stop cleanly: MirrorMaker 2 flushes offsets, so that no record is replicated twice."""
        self.process.stop()

    def kill(self) -> None:
        """Send SIGKILL: records since the last offset flush are replicated twice."""
        self.process.kill()

    def pause(self) -> None:
        """Send SIGSTOP: connections stay open without responses."""
        self.process.pause()

    def resume(self) -> None:
        """Send SIGCONT."""
        self.process.resume()


def _status(pid: int) -> tuple[str, int] | None:
    """Return the state letter and start time of *pid*; None if it does not exist."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in parentheses may contain spaces: count fields after it.
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[19])


HOST = "127.0.0.1"
FIRST, LAST = 20_000, 31_999  # ephemeral: Linux 32768-60999, macOS 49152-65535
_ATTEMPTS = 500
_reserved: set[int] = set()


def free_ports(count: int) -> tuple[int, ...]:
    """Return *count* different free ports. Raises LabError when they cannot be found."""
    chosen: list[int] = []
    with ExitStack() as held:
        for port in random.sample(range(FIRST, LAST + 1), _ATTEMPTS):
            if len(chosen) == count:
                return tuple(chosen)
            probe = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            if _reserve(port):
                chosen.append(port)
    raise LabError(
        f"{count} free ports not found on {HOST} in {_ATTEMPTS} attempts from {FIRST} to {LAST}"
    )


def _reserve(port: int) -> bool:
    """Lock the byte at *port* of a file that all labs of this user share, until the process ends.

    Byte-range locks do not conflict within a process, so its own ports are in a set.
    """
    if port in _reserved:
        return False
    try:
        fcntl.lockf(_lock_file(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    _reserved.add(port)
    return True


@cache
def _lock_file() -> int:
    """Descriptor that stays open: closing any descriptor of the file would release the locks."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    return os.open(cache_folder() / "ports.lock", os.O_RDWR | os.O_CREAT)


def accepts(port: int, timeout: float = 0.5) -> bool:
    """Whether a connection to *port* on loopback is accepted."""
    try:
        with socket.create_connection((HOST, port), timeout=timeout):
            return True
    except OSError:
        return False


def request_json(url: str, method: str = "GET", content: object = None) -> Any:
    """Send *content* as JSON; returns the JSON response, or None if it is empty."""
    body = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(
        url, data=body, headers={"Content-Type": "application/json"}, method=method
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        text = response.read()
    return json.loads(text) if text.strip() else None


def wait_for(
    condition: Callable[[], bool], what: str, timeout: float = PATIENCE, poll: float = 0.1
) -> float:
    """Wait until *condition*; returns the seconds it took. Raises LabError after *timeout*."""
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > timeout:
            raise LabError(f"timed out after {timeout:.0f} s waiting for {what}")
        time.sleep(poll)
    return time.monotonic() - start
