"""Workers are forked by a server of their own, and end with it, with their parent or by order."""

import gc
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
import worker_functions
from process_figures import children, threads

from mm2slo_kafka import fork_server, fork_server_process
from mm2slo_kafka.fork_server import ForkServer, WorkerProcess
from mm2slo_lab.managed_process import wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def server() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    if server._server is not None:
        server._server.end()


def pid_of(server: ForkServer) -> int:
    assert server.pid is not None
    return server.pid


def is_running(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def answers(worker: WorkerProcess, message: object) -> bool:
    worker.connection.send(message)
    return bool(worker.connection.recv() == message)


def test_worker_gets_arguments_and_ends_with_its_pipe(server: ForkServer) -> None:
    worker = server.start(worker_functions.echo, "eu", {"sasl.password": "s3cret"})
    assert worker.connection.recv() == ("eu", {"sasl.password": "s3cret"})
    assert answers(worker, 7)
    for pid in (pid_of(server), worker.pid):
        for file in ("cmdline", "environ"):
            assert b"s3cret" not in Path(f"/proc/{pid}/{file}").read_bytes()
    worker.connection.close()
    assert str(worker.end(60)) == "exit code 0"
    assert str(worker.end()) == "exit code 0"


def test_worker_is_named_after_its_function(server: ForkServer) -> None:
    worker = server.start(worker_functions.echo)
    worker.connection.recv()
    assert Path(f"/proc/{worker.pid}/comm").read_text() == "echo\n"
    worker.end()


def test_workers_share_kafka_client_without_asyncio_until_it_is_used(server: ForkServer) -> None:
    worker = server.start(worker_functions.use_asyncio)
    assert worker.connection.recv() == ({"confluent_kafka"}, {"confluent_kafka", "asyncio"})
    assert str(worker.end(60)) == "exit code 0"


def test_worker_with_exception_ends_with_its_last_line(server: ForkServer) -> None:
    ended = server.start(worker_functions.raise_error, capture_stderr=True).end(60)
    assert (ended.code, ended.last_line) == (1, "ValueError: unexpected")


def test_worker_of_missing_module_ends_with_its_last_line(server: ForkServer) -> None:
    def serve() -> None: ...

    serve.__module__ = "no_such_module"
    ended = server.start(serve, capture_stderr=True).end(60)
    assert (ended.code, ended.last_line) == (
        1,
        "ModuleNotFoundError: No module named 'no_such_module'",
    )


@pytest.mark.parametrize("end", [WorkerProcess.kill, lambda worker: os.kill(worker.pid, 9)])
def test_killed_worker_leaves_the_others(
    server: ForkServer, end: Callable[[WorkerProcess], None]
) -> None:
    first, second = (server.start(worker_functions.echo, name) for name in ("us", "eu"))
    end(first)
    assert str(first.end(60)) == "SIGKILL"
    assert second.connection.recv() == ("eu",)
    assert answers(second, 7)
    assert children(pid_of(server)) == [second.pid]
    first.kill()  # without effect
    assert answers(second, 8)


def test_hanging_worker_is_killed(server: ForkServer) -> None:
    worker = server.start(worker_functions.hang)
    worker.connection.recv()
    worker.connection.close()
    assert str(worker.end(0.1)) == "SIGKILL"
    assert not is_running(worker.pid)


def test_forgotten_worker_is_killed(server: ForkServer) -> None:
    worker = server.start(worker_functions.hang)
    pid = worker.connection.recv()
    del worker
    wait_for(lambda: not is_running(pid), "its end")


def test_killed_server_ends_its_workers_and_is_restarted(server: ForkServer) -> None:
    worker = server.start(worker_functions.hang)
    worker.connection.recv()
    killed = pid_of(server)
    os.kill(killed, signal.SIGKILL)
    assert str(worker.end(60)) == "its fork server"
    wait_for(lambda: not is_running(worker.pid), "the end of the worker")
    assert server.start(worker_functions.echo, 1).connection.recv() == (1,)
    assert pid_of(server) != killed
    assert not Path(f"/proc/{killed}").exists()


def test_stopped_server_is_killed_with_its_workers_and_restarted(
    server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (server.start(worker_functions.hang) for _ in range(2))
    monkeypatch.setattr(fork_server, "_RESPONSE_SECONDS", 0.2)
    os.kill(pid_of(server), signal.SIGSTOP)
    assert str(first.end()) == "its fork server"
    assert str(second.end(60)) == "its fork server"
    wait_for(lambda: not is_running(first.pid), "the end of the first worker")
    monkeypatch.undo()
    assert server.start(worker_functions.echo, 1).connection.recv() == (1,)
    monkeypatch.setattr(fork_server, "_RESPONSE_SECONDS", 0.2)
    os.kill(pid_of(server), signal.SIGSTOP)
    with pytest.raises(OSError, match="the fork server does not respond and is restarted"):
        server.start(worker_functions.echo)
    monkeypatch.undo()
    assert server.start(worker_functions.echo, 2).connection.recv() == (2,)


def test_many_workers_leave_no_files_threads_or_processes(server: ForkServer) -> None:
    def run(number: int) -> str:
        worker = server.start(worker_functions.echo, number, capture_stderr=number % 2 == 0)
        assert worker.connection.recv() == (number,)
        # The pipe, the one that shows its end, and the standard streams.
        assert files(worker.pid) == 5
        return str(worker.end())

    run(0)
    before = files(os.getpid())
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(run, range(40))) == {"SIGKILL"}
    # Clients that earlier tests left may open a socket for a moment, or close one.
    wait_for(lambda: files(os.getpid()) <= before, "the end of its files here")
    assert children(pid_of(server)) == []
    # The standard streams and the requests.
    wait_for(lambda: files(pid_of(server)) == 4, "the end of its files")
    assert threads(pid_of(server)).total() == 1


def test_failed_fork_is_raised_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    class Server:
        def request(self, serve: str, descriptors: list[int]) -> None:
            ours, theirs = socket.socketpair()
            with ours, theirs:
                socket.send_fds(ours, [serve.encode()], descriptors)
                fork_server_process._ForkServer(theirs)._take_request()

    monkeypatch.setattr(os, "fork", fail)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    before = files(os.getpid())
    with pytest.raises(OSError, match=r"cannot fork: .* Resource temporarily unavailable"):
        WorkerProcess(cast(Any, Server()), worker_functions.echo, capture_stderr=True)
    gc.collect()
    assert files(os.getpid()) <= before


def test_ctrl_c_is_blocked_in_workers_only(server: ForkServer) -> None:
    worker = server.start(worker_functions.echo, 1)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    os.kill(pid_of(server), signal.SIGINT)
    os.kill(worker.pid, signal.SIGINT)
    assert worker.connection.recv() == (1,)
    assert answers(worker, 7)


_PARENT = """
import sys, time
import worker_functions
from mm2slo_kafka import fork_server
fork_server._MODULE = sys.argv[1]
workers = [fork_server.FORK_SERVER.start(getattr(worker_functions, name)) for name in sys.argv[2:]]
for worker in workers:
    worker.connection.recv()
print(fork_server.FORK_SERVER.pid, *(worker.pid for worker in workers), flush=True)
sys.stdin.read()
"""


def start_parent(module: str, *functions: str) -> tuple[subprocess.Popen[str], list[int]]:
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, module, *functions],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert parent.stdout is not None
    return parent, [int(pid) for pid in parent.stdout.readline().split()]


@pytest.mark.parametrize(
    ("module", "functions"),
    [
        ("mm2slo_kafka.fork_server_process", ["echo", "echo"]),
        ("worker_functions", ["echo", "hang"]),  # it does not wait long for workers that hang
    ],
)
def test_server_and_workers_end_after_their_parent_was_killed(
    module: str, functions: list[str]
) -> None:
    parent, pids = start_parent(module, *functions)
    assert len(pids) == 3
    with parent:
        parent.kill()
    wait_for(lambda: not any(map(is_running, pids)), "the end of all")


def test_server_and_workers_end_with_their_parent() -> None:
    parent, pids = start_parent("mm2slo_kafka.fork_server_process", "echo", "hang")
    parent.communicate("")
    assert parent.returncode == 0
    wait_for(lambda: not any(map(is_running, pids)), "the end of all")
