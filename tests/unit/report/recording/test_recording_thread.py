"""The recording thread: when it wakes, that it survives errors, and that it ends."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorder_fakes import AVAILABILITY, RecordedHistory, exposition
from recorder_fakes.fake_exporter import FakeExporter

from mm2slo_core.reporting.minute_counts import MINUTE_MS
from mm2slo_report.recording.recorder import Recorder
from mm2slo_report.recording.recording_thread import RecordingThread, next_wake
from mm2slo_report.recording.scraper import Target

TIMEOUT = 20.0


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
def test_next_wake_is_the_next_interval_or_minute(now: int, interval: int, wake: int) -> None:
    assert next_wake(now, interval) == wake


@given(st.integers(0, 10**13), st.integers(1, 10**6))
def test_next_wake_never_skips_an_interval_or_minute(now: int, interval: int) -> None:
    wake = next_wake(now, interval)
    assert now < wake <= now + min(interval, MINUTE_MS)
    assert wake % interval == 0 or wake % MINUTE_MS == 0


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def fast() -> int:
    """A clock on which a minute is a sixth of a second; the thread sleeps by the real one."""
    return now_ms() * 360


def reached(condition: threading.Event) -> bool:
    return condition.wait(TIMEOUT)


def test_recording_thread_records_until_it_is_stopped() -> None:
    stored = threading.Event()

    def on_minute(minutes: int) -> None:
        if minutes > 2:
            stored.set()

    memory = RecordedHistory(on_minute=on_minute)
    with FakeExporter(body=exposition({AVAILABILITY: (1, 1, 0)})) as exporter:
        recorder = Recorder([Target.at(exporter.address)], memory, fast, keep=1e6)
        with RecordingThread(recorder, fast, interval=0.05) as thread:
            assert reached(stored)
            assert thread.is_alive
        assert not thread.is_alive


def test_recording_thread_survives_unexpected_errors(
    caplog: pytest.LogCaptureFixture,
) -> None:
    again = threading.Event()
    rounds: list[int] = []

    class Failing(Recorder):
        def run_once(self) -> None:
            rounds.append(1)
            if len(rounds) > 2:
                again.set()
            raise RuntimeError("unexpected")

    recorder = Failing([], RecordedHistory(), fast, keep=1e6)
    with RecordingThread(recorder, fast, interval=0.05):
        assert reached(again)
    assert "a recording round failed unexpectedly" in caplog.text


def test_hanging_exporter_delays_neither_others_nor_the_end() -> None:
    page = exposition({AVAILABILITY: (1, 1, 0)})
    with (
        FakeExporter(body=page, hold=threading.Event()) as hanging,
        FakeExporter(body=page) as exporter,
    ):
        targets = [Target.at(hanging.address), Target.at(exporter.address)]
        recorder = Recorder(targets, RecordedHistory(), now_ms, keep=1e6, timeout=60)
        with RecordingThread(recorder, now_ms, interval=0.05):
            assert reached(exporter.answered)
        assert recorder.health.targets[0].failures == 0
