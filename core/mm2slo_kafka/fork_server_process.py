"""The fork server: `python -m mm2slo_kafka.fork_server_process FD`.

It serves requests on the socket with that file descriptor until the peer closes it and all workers
have ended. It never starts a thread or makes a Kafka client: neither survives a fork.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from types import ModuleType
from typing import Any, Final, TypeAlias

_ORPHANED_SECONDS: Final = 15
"""After the parent was killed. Workers end with their pipe, unless they hang."""
# prctl(2) of Linux. Elsewhere, workers have the server's name, and end with their pipe if it dies.
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NAME: Final = 15
_prctl: Final = getattr(ctypes.CDLL(None), "prctl", lambda *_: 0)

_Job: TypeAlias = Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Worker:
    pid: int
    control: Connection[Any, Any]
    alive: int
    """Read end of a pipe that only the worker can write to: it ends with the worker."""


class _ForkServer:
    def __init__(self, requests: socket.socket) -> None:
        self._pid = os.getpid()
        self._requests = requests
        self._workers: set[_Worker] = set()
        self._selector = selectors.PollSelector()  # has no file descriptor to inherit
        self._selector.register(requests, selectors.EVENT_READ, self._take_request)

    def run(self) -> _Job | None:
        """Serve requests. Returns in each worker, with its job, and at the end of the server."""
        while self._selector.get_map():
            for key, _events in self._selector.select():
                job: _Job | None = key.data()
                if job is not None:
                    return job
        return None

    def _take_request(self) -> _Job | None:
        message, descriptors, *_ = socket.recv_fds(self._requests, 1024, 3)
        if not message:
            self._selector.unregister(self._requests)
            signal.alarm(_ORPHANED_SECONDS)  # ends this process, and with it all workers
            return None
        serve = message.decode()
        with contextlib.suppress(Exception):  # the worker fails in the same way
            _find(serve)
        connection, control_descriptor, *stderr = descriptors
        control: Connection[Any, Any] = Connection(control_descriptor)
        alive, held_by_worker = os.pipe()
        gc.freeze()
        try:
            pid = os.fork()
        except OSError as error:
            os.close(alive)
            _send(control, f"the fork server cannot fork: {error}")
        else:
            if pid == 0:
                os.close(alive)
                control.close()
                self._become_worker(stderr)
                _prctl(_PR_SET_NAME, serve.partition(":")[2].encode())  # for ps and top
                return partial(_run, serve, connection)
            self._add(_Worker(pid, control, alive))
        for descriptor in (connection, held_by_worker, *stderr):
            os.close(descriptor)
        return None

    def _become_worker(self, stderr: list[int]) -> None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != self._pid:
            os._exit(1)  # the server ended before that
        self._requests.close()
        for worker in self._workers:
            worker.control.close()
            os.close(worker.alive)
        for descriptor in stderr:
            os.dup2(descriptor, sys.stderr.fileno())
            os.close(descriptor)
        gc.enable()

    def _add(self, worker: _Worker) -> None:
        self._workers.add(worker)
        self._selector.register(worker.alive, selectors.EVENT_READ, partial(self._reap, worker))
        self._selector.register(worker.control, selectors.EVENT_READ, partial(self._kill, worker))
        _send(worker.control, worker.pid)

    def _kill(self, worker: _Worker) -> None:
        if worker not in self._workers:
            return  # reaped a moment ago: its process id may be reused
        try:
            worker.control.recv()
        except (EOFError, OSError):
            self._selector.unregister(worker.control)  # the parent has ended
        else:
            os.kill(worker.pid, signal.SIGKILL)

    def _reap(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        _pid, status = os.waitpid(worker.pid, 0)
        if worker.control in self._selector.get_map():
            self._selector.unregister(worker.control)
        self._selector.unregister(worker.alive)
        os.close(worker.alive)
        _send(worker.control, os.waitstatus_to_exitcode(status))
        worker.control.close()


def _send(control: Connection[Any, Any], message: int | str) -> None:
    with contextlib.suppress(OSError):  # the parent has ended
        control.send(message)


def _find(serve: str) -> Any:
    module, _, name = serve.partition(":")
    return getattr(importlib.import_module(module), name)


def _run(serve: str, descriptor: int) -> None:
    with Connection(descriptor) as connection:
        try:
            arguments = connection.recv()
        except EOFError:
            return  # the parent has ended
        _find(serve)(connection, *arguments)


class _DeferredModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


def _import_kafka_client() -> None:
    """Load confluent_kafka without asyncio, 5 MB with ssl, which its asyncio clients load then.

    importlib.util.LazyLoader would load it: an import statement reads an attribute of the module.
    """
    sys.modules["asyncio"] = _DeferredModule("asyncio")
    importlib.import_module("confluent_kafka")
    del sys.modules["asyncio"]


def main(descriptor: int) -> None:
    _import_kafka_client()
    # A collection would touch, and so copy, what workers share; they collect their own objects.
    gc.disable()
    with socket.socket(fileno=descriptor) as requests:
        job = _ForkServer(requests).run()
    if job is not None:
        job()


if __name__ == "__main__":
    main(int(sys.argv[1]))
