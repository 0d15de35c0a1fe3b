"""A recorder that is repeatedly killed at any moment neither loses nor duplicates events."""

import random
import signal
import sqlite3
import subprocess
import threading
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from recorder_fakes import AVAILABILITY, NOON, exposition
from recorder_fakes.fake_exporter import FakeExporter
from store_specs.store_process import start_module

from mm2slo_core.objectives.exclusion import Span
from mm2slo_store.store import Store

KILLS = 50
TIMEOUT = 60.0
FIRST = 1000


@dataclass
class CountingExporter(FakeExporter):
    """Counts seven events between two pages."""

    pages: int = 0
    requested: threading.Condition = field(default_factory=threading.Condition)

    def respond(self, handler: object) -> None:
        """Serve the next page."""
        with self.requested:
            total = FIRST + 7 * self.pages
            self.pages += 1
            self.requested.notify_all()
        self.body = exposition({AVAILABILITY: (total - self.pages, total, 0)}, started=1.0)
        super().respond(handler)  # type: ignore[arg-type]

    def reaches(self, pages: int) -> bool:
        """Wait until so many pages were requested; the last one may not be served yet."""
        with self.requested:
            return self.requested.wait_for(lambda: self.pages >= pages, TIMEOUT)


def start(exporter: CountingExporter, path: Path, *killed_at: str) -> subprocess.Popen[str]:
    return start_module(
        "recorder_fakes.recorder_process",
        exporter.address,
        str(path),
        str(exporter.pages),
        *killed_at,
    )


def record_until_sigterm(exporter: CountingExporter, path: Path, pages: int) -> None:
    child = start(exporter, path)
    assert exporter.reaches(exporter.pages + pages)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=TIMEOUT)
    assert child.returncode == 0


@pytest.mark.long
def test_recorder_killed_fifty_times_counts_every_event_once(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    dice = random.Random(6)
    with CountingExporter() as exporter:
        record_until_sigterm(exporter, path, pages=2)
        for _ in range(KILLS):
            if dice.random() < 0.5:
                # Anywhere between two pages; with none of them, as it starts.
                child = start(exporter, path)
                assert exporter.reaches(exporter.pages + dice.randint(0, 40))
                child.kill()
            else:
                # In the middle of a transaction.
                child = start(exporter, path, str(dice.randint(1, 200)))
            child.communicate(timeout=TIMEOUT)
            assert child.returncode == -signal.SIGKILL
        record_until_sigterm(exporter, path, pages=6)
        served = exporter.pages
    with Store.open(path) as store:
        (state,) = store.recorder_states()
        (counts,) = store.span_counts([AVAILABILITY], [Span(0, 2 * NOON)])[AVAILABILITY]
    pages = counts.total / 7 + 1
    assert pages in (served - 1, served), "the last may have come too late to be counted"
    assert state.raw.total == FIRST + counts.total
    assert counts.bad == pages - 1
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
