"""The canary process is started, started again when it dies, and ended on stop."""

from __future__ import annotations

import logging
import threading
import time
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from canary_specs import spec
from canary_specs.serving import die, echo

from mm2slo_exporter.canary.events import Restored
from mm2slo_exporter.canary.hints import Hint
from mm2slo_exporter.canary.supervisor import CanarySupervisor

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from mm2slo_exporter.canary.events import Event


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.01)


def test_events_come_in_their_order_hints_go_out_and_stop_ends_the_process() -> None:
    starts: list[int] = []
    supervisor = CanarySupervisor([spec()], on_start=lambda: starts.append(1), serve=echo)
    supervisor.hint({"us->eu": Hint(1)})  # before the start: nobody is there, and that is fine
    supervisor.start()
    found: list[Event] = []

    def drained(count: int) -> bool:
        found.extend(supervisor.drain())
        return len(found) >= count

    try:
        until(lambda: drained(1), "the first event")
        for floor in (5, 6, 7):
            supervisor.hint({"us->eu": Hint(floor, None)})
        until(lambda: drained(4), "the answers")
    finally:
        supervisor.stop()
    assert found == [Restored("us->eu", float(floor)) for floor in (0, 5, 6, 7)]
    assert (supervisor.starts, starts) == (1, [1])
    assert supervisor.drain() == []
    supervisor.hint({"us->eu": Hint(8)})  # after the end as well


def test_a_process_that_dies_is_started_again_and_nothing_it_told_is_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)
    starts: list[int] = []
    supervisor = CanarySupervisor(
        [spec()], on_start=lambda: starts.append(1), serve=die, restart_seconds=0.0
    )
    supervisor.start()
    try:
        until(lambda: supervisor.starts >= 2, "the second start")
        until(lambda: supervisor.starts >= 3, "the third start")
    finally:
        supervisor.stop()
    found = supervisor.drain()
    assert len(found) >= 2
    assert len(set(found)) == len(found)
    assert supervisor.starts == len(starts)
    assert caplog.records[0].getMessage() == (
        "canary process ended with exit code 3; starting it again"
    )


def test_only_the_supervising_thread_closes_the_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two closes of one descriptor may end a file that was opened in between."""
    closed_by: list[str] = []
    close = Connection.close

    def noted(connection: Connection) -> None:
        closed_by.append(threading.current_thread().name)
        close(connection)

    monkeypatch.setattr(Connection, "close", noted)
    supervisor = CanarySupervisor([spec()], serve=echo)
    supervisor.start()
    until(lambda: bool(supervisor.drain()), "the first event")
    supervisor.stop()
    assert closed_by == ["canary-supervisor"] * 2  # the child's end after its start, then ours
