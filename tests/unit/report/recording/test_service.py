"""The recording thread: when it wakes, that it survives, and that it ends."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import AVAILABILITY, Recorded, exposition
from recorded.serving import Serving

from mm2slo_core.reporting.history import MINUTE_MS
from mm2slo_report.recording.recorder import Recorder
from mm2slo_report.recording.scraping import Target
from mm2slo_report.recording.service import RecordingThread, next_wake

PATIENCE = 20.0


@pytest.mark.parametrize(
    ("now", "interval", "wake"),
    [
        (0, 15_000, 15_000),
        (14_999, 15_000, 15_000),
        (45_001, 15_000, 60_000),
        (56_000, 7000, 60_000),
        (60_000, 7000, 63_000),
    ],
)
def test_wakes_at_even_times_and_as_a_minute_ends(now: int, interval: int, wake: int) -> None:
    assert next_wake(now, interval) == wake


@given(st.integers(0, 10**13), st.integers(1, 10**6))
def test_never_sleeps_past_either(now: int, interval: int) -> None:
    wake = next_wake(now, interval)
    assert now < wake <= now + min(interval, MINUTE_MS)
    assert wake % interval == 0 or wake % MINUTE_MS == 0


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def fast() -> int:
    """A clock on which a minute is a sixth of a second; the thread sleeps by the real one."""
    return now_ms() * 360


def reached(condition: threading.Event) -> bool:
    return condition.wait(PATIENCE)


def test_records_until_it_is_left_and_ends_then() -> None:
    stored = threading.Event()

    def told(minutes: int) -> None:
        if minutes > 2:
            stored.set()

    memory = Recorded(told=told)
    with Serving(body=exposition({AVAILABILITY: (1, 1, 0)})) as exporter:
        recorder = Recorder([Target.at(exporter.address)], memory, fast, keep=1e6)
        with RecordingThread(recorder, fast, interval=0.05) as thread:
            assert reached(stored)
            assert thread.alive
        assert not thread.alive


def test_a_round_that_fails_in_an_unforeseen_way_is_not_the_last(
    caplog: pytest.LogCaptureFixture,
) -> None:
    again = threading.Event()
    rounds: list[int] = []

    class Failing(Recorder):
        def run_once(self) -> None:
            rounds.append(1)
            if len(rounds) > 2:
                again.set()
            raise RuntimeError("unforeseen")

    recorder = Failing([], Recorded(), fast, keep=1e6)
    with RecordingThread(recorder, fast, interval=0.05):
        assert reached(again)
    assert "a round of recording failed in an unforeseen way" in caplog.text


def test_an_exporter_that_hangs_neither_holds_the_others_nor_the_end() -> None:
    page = exposition({AVAILABILITY: (1, 1, 0)})
    with Serving(body=page, hold=threading.Event()) as hanging, Serving(body=page) as exporter:
        targets = [Target.at(hanging.address), Target.at(exporter.address)]
        recorder = Recorder(targets, Recorded(), now_ms, keep=1e6, timeout=60)
        with RecordingThread(recorder, now_ms, interval=0.05):
            assert reached(exporter.answered)
        assert recorder.health.targets[0].failures == 0
