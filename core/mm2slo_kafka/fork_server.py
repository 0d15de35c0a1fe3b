"""Starts worker processes that share the memory of one fork server.

Work that must not wait for this process's interpreter lock, or that may crash, runs in processes
of its own. A new interpreter with the Kafka client takes 17 MB, a child of a process that has
loaded both takes half. This process cannot fork: other threads' locks and librdkafka's threads do
not survive in a child. So one server without threads and clients, `fork_server_process`, forks on
request. `multiprocessing` has such a server too, with a resource tracker of 6 MB beside it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, BinaryIO, Final

_MODULE: Final = "mm2slo_kafka.fork_server_process"
_RESPONSE_SECONDS: Final = 10.0
"""The server starts, loads a worker's module and kills a worker in less than a second each."""


class ForkServer:
    """Starts workers. Thread-safe.

    The server starts with the first worker, and again after it died or did not respond, which
    ends its workers. It ends with this process, however that ends.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: _Server | None = None

    @property
    def pid(self) -> int | None:
        """The server's process id; None before the first worker."""
        return None if self._server is None else self._server.process.pid

    def start(
        self, serve: Callable[..., None], *arguments: object, capture_stderr: bool = False
    ) -> WorkerProcess:
        """Run *serve*, a function of a module, in a new process.

        It gets the worker's end of a pipe, and *arguments*, which are pickled. Ctrl-C, which
        reaches every process of a terminal, is blocked there: this process decides when a worker
        ends. Raises OSError if it cannot be started.
        """
        with self._lock:
            if self._server is None or self._server.process.poll() is not None:
                self._server = _Server()
            try:
                worker = WorkerProcess(self._server, serve, capture_stderr)
            except (EOFError, ConnectionError, TimeoutError):
                self._server.end()
                raise OSError("the fork server does not respond and is restarted") from None
        with contextlib.suppress(ConnectionError):  # has ended: the next use of the pipe shows it
            worker.connection.send(arguments)
        return worker


FORK_SERVER: Final = ForkServer()
"""The server of this process: the more workers it has, the more of them share its memory."""


@dataclass(frozen=True, slots=True)
class WorkerExit:
    """How a worker ended."""

    code: int | None
    """The negative number of a signal; None if the server ended, too."""
    last_line: str
    """Of its captured stderr."""

    def __str__(self) -> str:
        if self.code is None:
            return "its fork server"
        return signal.Signals(-self.code).name if self.code < 0 else f"exit code {self.code}"


class WorkerProcess:
    """A worker with this process's end of its pipe. Only `kill` is thread-safe."""

    def __init__(self, server: _Server, serve: Callable[..., None], capture_stderr: bool) -> None:
        """Raises EOFError, ConnectionError or TimeoutError if the server does not respond."""
        self._server = server
        self._exit: WorkerExit | None = None
        self.connection, worker_end = Pipe()
        self._control, server_end = Pipe()
        self._control_lock = threading.Lock()
        self._stderr: BinaryIO | None = None
        descriptors = [worker_end.fileno(), server_end.fileno()]
        with worker_end, server_end, contextlib.ExitStack() as opened:
            if capture_stderr:
                ours, theirs = os.pipe()
                self._stderr = os.fdopen(ours, "rb")
                opened.callback(os.close, theirs)
                descriptors.append(theirs)
            self._release = weakref.finalize(
                self, _release, self._control, self.connection, self._stderr
            )
            server.request(f"{serve.__module__}:{serve.__qualname__}", descriptors)
        started = _receive(self._control, _RESPONSE_SECONDS)
        if isinstance(started, str):
            raise OSError(started)
        self.pid: Final[int] = started

    def kill(self) -> None:
        """Kill it unless it has ended. The server does, which knows if the id is still its own."""
        with self._control_lock:
            _kill(self._control)

    def end(self, within: float = 0.0) -> WorkerExit:
        """Wait *within* so many seconds for its end, then kill it."""
        if self._exit is None:
            code = self._wait(within)
            output = b"" if self._stderr is None or code is None else self._stderr.read()
            lines = output.decode(errors="replace").strip().splitlines()
            self._exit = WorkerExit(code, lines[-1] if lines else "")
            with self._control_lock:
                self._release()
        return self._exit

    def _wait(self, seconds: float) -> int | None:
        code: int | None = None
        with contextlib.suppress(EOFError, ConnectionError):  # the server ended
            try:
                code = _receive(self._control, seconds)
            except TimeoutError:
                self.kill()
                try:
                    code = _receive(self._control, _RESPONSE_SECONDS)
                except TimeoutError:
                    self._server.end()
        return code


class _Server:
    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair()
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited
        try:
            with theirs:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", _MODULE, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    # Workers import from the same places as this process.
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        self.end = weakref.finalize(self, _end_server, self.process, self._requests)

    def request(self, serve: str, descriptors: list[int]) -> None:
        socket.send_fds(self._requests, [serve.encode()], descriptors)


def _end_server(process: subprocess.Popen[bytes], requests: socket.socket) -> None:
    process.kill()  # neither it nor its workers, which the kernel kills, have a state to save
    process.wait()
    requests.close()


def _receive(control: Connection[Any, Any], seconds: float) -> Any:
    if not control.poll(seconds):
        raise TimeoutError
    return control.recv()


def _kill(control: Connection[Any, Any]) -> None:
    with contextlib.suppress(OSError):
        control.send("kill")


def _release(
    control: Connection[Any, Any], *others: Connection[Any, Any] | BinaryIO | None
) -> None:
    _kill(control)
    for each in (control, *others):
        if each is not None:
            each.close()
