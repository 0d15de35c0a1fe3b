"""The recording thread: that it records, survives errors, and ends."""

import threading
import time

import pytest
from recorder_fakes import AVAILABILITY, RecordedHistory, exposition
from recorder_fakes.fake_exporter import FakeExporter

from mm2slo_report.recording.exporter_scraper import ScrapeTarget
from mm2slo_report.recording.recorder import Recorder, RecordingThread

TIMEOUT = 20.0


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def fast() -> int:
    """A clock on which a step lasts a second; the thread sleeps by the real one."""
    return now_ms() * 300


def reached(condition: threading.Event) -> bool:
    return condition.wait(TIMEOUT)


def test_recording_thread_records_until_it_is_stopped() -> None:
    stored = threading.Event()

    def on_step(steps: int) -> None:
        if steps > 1:
            stored.set()

    memory = RecordedHistory(on_step=on_step)
    with FakeExporter(body=exposition({AVAILABILITY: (1, 1, 0)})) as exporter:
        recorder = Recorder([ScrapeTarget.at(exporter.address)], memory, fast)
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

    recorder = Failing([], RecordedHistory(), fast)
    with RecordingThread(recorder, fast, interval=0.05):
        assert reached(again)
    assert "a recording round failed unexpectedly" in caplog.text


def test_hanging_exporter_delays_neither_others_nor_the_end() -> None:
    page = exposition({AVAILABILITY: (1, 1, 0)})
    with (
        FakeExporter(body=page, hold=threading.Event()) as hanging,
        FakeExporter(body=page) as exporter,
    ):
        targets = [ScrapeTarget.at(hanging.address), ScrapeTarget.at(exporter.address)]
        recorder = Recorder(targets, RecordedHistory(), now_ms, timeout=60)
        with RecordingThread(recorder, now_ms, interval=0.05):
            assert reached(exporter.answered)
        assert recorder.health.targets[0].failures == 0
