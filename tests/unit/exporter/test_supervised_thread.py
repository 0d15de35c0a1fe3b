"""A loop that fails is counted, logged and restarted; one that returns has ended."""

import logging
import threading
from collections.abc import Callable

import pytest

from mm2slo_exporter.supervised_thread import Loop, SupervisedThread


def supervised(
    run: Callable[[], None], failures: list[Loop], stopping: threading.Event, backoff: float = 0.0
) -> SupervisedThread:
    return SupervisedThread(
        Loop.PROBES,
        "us->eu",
        run,
        stopping,
        failures.append,
        first_backoff=backoff,
    )


def test_failing_loop_is_counted_logged_and_restarted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    runs: list[str] = []
    failures: list[Loop] = []
    ended = threading.Event()

    def run() -> None:
        runs.append(threading.current_thread().name)
        if len(runs) < 3:
            raise ValueError("unexpected")
        ended.set()

    thread = supervised(run, failures, threading.Event())
    thread.start()
    assert ended.wait(60)
    thread.join(60)
    assert runs == ["probes-us->eu"] * 3
    assert failures == [Loop.PROBES] * 2
    assert [each.exc_info is not None for each in caplog.records] == [True, True]
    assert "loop probes-us->eu failed; restarting it in 0 s" in caplog.text


def test_stop_ends_the_pause_before_a_restart() -> None:
    stopping, failed = threading.Event(), threading.Event()
    runs: list[int] = []

    def run() -> None:
        runs.append(1)
        failed.set()
        raise ValueError("unexpected")

    thread = supervised(run, [], stopping, backoff=3600.0)
    thread.start()
    assert failed.wait(60)
    stopping.set()
    thread.join(60)
    assert "probes-us->eu" not in {each.name for each in threading.enumerate()}
    assert runs == [1]
