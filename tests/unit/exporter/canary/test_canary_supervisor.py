"""The canary process is started, restarted when it ends, and stopped."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import pytest
from canary_specs import die, echo, run_with_failing_sender, spec

from mm2slo_exporter.canary.canary_messages import CanaryEvent, LedgerState, RestoreFinished
from mm2slo_exporter.canary.canary_supervisor import CanarySupervisor
from mm2slo_exporter.supervised_thread import Loop
from mm2slo_kafka.fork_server import FORK_SERVER, WorkerProcess


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"timed out waiting for {what}"
        time.sleep(0.01)


def test_supervisor_passes_events_and_ledger_states_until_stopped() -> None:
    starts: list[int] = []
    supervisor = CanarySupervisor(
        [spec()], on_failure=print, on_start=lambda: starts.append(1), serve=echo
    )
    supervisor.send_ledger_states({"us->eu": LedgerState(1)})  # before the start: ignored
    supervisor.start()
    found: list[CanaryEvent] = []

    def drained(count: int) -> bool:
        found.extend(supervisor.events.take())
        return len(found) >= count

    try:
        until(lambda: drained(1), "the first event")
        for floor in (5, 6, 7):
            supervisor.send_ledger_states({"us->eu": LedgerState(floor, None)})
        until(lambda: drained(4), "the answers")
    finally:
        supervisor.stop()
    assert found == [RestoreFinished("us->eu", float(floor)) for floor in (0, 5, 6, 7)]
    assert (supervisor.starts, starts) == (1, [1])
    assert supervisor.events.take() == []
    supervisor.send_ledger_states({"us->eu": LedgerState(8)})  # after the end: ignored


def test_canary_process_that_ends_is_restarted_without_losing_events(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)
    starts: list[int] = []
    failures: list[Loop] = []
    supervisor = CanarySupervisor(
        [spec()],
        on_failure=failures.append,
        on_start=lambda: starts.append(1),
        serve=die,
        restart_seconds=0.0,
    )
    supervisor.start()
    try:
        until(lambda: supervisor.starts >= 2, "the second start")
        until(lambda: supervisor.starts >= 3, "the third start")
    finally:
        supervisor.stop()
    found = supervisor.events.take()
    assert len(found) >= 2
    assert len(set(found)) == len(found)
    assert supervisor.starts == len(starts)
    assert failures[:2] == [Loop.CANARY, Loop.CANARY]
    assert caplog.records[0].getMessage() == (
        "canary process ended with exit code 3; restarting it"
    )


def test_canary_process_is_restarted_after_its_fork_server_ended_or_failed(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.ERROR)
    failures: list[Loop] = []
    supervisor = CanarySupervisor(
        [spec()], on_failure=failures.append, serve=echo, restart_seconds=0.0
    )
    supervisor.start()
    start, attempts = FORK_SERVER.start, iter([OSError("no more processes")])

    def fail_once(*arguments: Any) -> WorkerProcess:
        for error in attempts:
            raise error
        return start(*arguments)

    try:
        until(lambda: bool(supervisor.events.take()), "the first event")
        monkeypatch.setattr(FORK_SERVER, "start", fail_once)
        assert FORK_SERVER.pid is not None
        os.kill(FORK_SERVER.pid, signal.SIGKILL)
        until(lambda: bool(supervisor.events.take()), "an event of the new process")
    finally:
        supervisor.stop()
    assert [each.getMessage() for each in caplog.records] == [
        "canary process ended with its fork server; restarting it",
        "canary process could not be started: no more processes; restarting it",
    ]
    assert failures == [Loop.CANARY, Loop.CANARY]


def test_changed_specs_replace_the_canary_process_without_a_failure() -> None:
    failures: list[Loop] = []
    supervisor = CanarySupervisor([spec()], on_failure=failures.append, serve=echo)
    supervisor.start()
    found: list[CanaryEvent] = []

    def drained(count: int) -> bool:
        found.extend(supervisor.events.take())
        return len(found) >= count

    try:
        until(lambda: drained(1), "the first event")
        supervisor.change([spec(flow="eu->us")])
        until(lambda: drained(2), "the event of the new process")
    finally:
        supervisor.stop()
    assert [each.flow for each in found] == ["us->eu", "eu->us"]
    assert (supervisor.starts, failures) == (2, [])


def test_canary_process_with_failing_thread_ends_and_is_restarted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)
    clients = {"bootstrap.servers": "127.0.0.1:1"}
    supervisor = CanarySupervisor(
        [spec(source_client=clients, target_client=clients)],
        on_failure=print,
        serve=run_with_failing_sender,
        restart_seconds=0.0,
    )
    supervisor.start()
    try:
        until(lambda: supervisor.starts >= 2, "the second start")
    finally:
        supervisor.stop()
    assert caplog.records[0].getMessage() == (
        "canary process ended with exit code 1; restarting it"
    )


def test_pipe_is_closed_by_supervising_thread_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second close of a descriptor could close a file that reuses it."""
    closed_by: list[str] = []
    close = Connection.close

    def noted(connection: Connection) -> None:
        closed_by.append(threading.current_thread().name)
        close(connection)

    monkeypatch.setattr(Connection, "close", noted)
    supervisor = CanarySupervisor([spec()], on_failure=print, serve=echo)
    supervisor.start()
    until(lambda: bool(supervisor.events.take()), "the first event")
    supervisor.stop()
    assert set(closed_by) == {"canary"}
