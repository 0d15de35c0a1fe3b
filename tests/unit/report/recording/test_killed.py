"""A recorder that is killed at any moment, again and again, neither loses nor invents events."""

from __future__ import annotations

import random
import signal
import sqlite3
import threading
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from recorded import AVAILABILITY, exposition
from recorded.serving import Serving
from store_specs.other_process import start_module

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

from mm2slo_store import Store

KILLS = 50
PATIENCE = 60.0
FIRST = 1000


@dataclass
class Counting(Serving):
    """Counts seven events between two pages."""

    pages: int = 0
    asked_for: threading.Condition = field(default_factory=threading.Condition)

    def answer(self, handler: object) -> None:
        """The next page."""
        with self.asked_for:
            total = FIRST + 7 * self.pages
            self.pages += 1
            self.asked_for.notify_all()
        self.body = exposition({AVAILABILITY: (total - self.pages, total, 0)}, started=1.0)
        super().answer(handler)  # type: ignore[arg-type]

    def reaches(self, pages: int) -> bool:
        """Once so many pages were asked for, the last of which may not be answered yet."""
        with self.asked_for:
            return self.asked_for.wait_for(lambda: self.pages >= pages, PATIENCE)


def start(exporter: Counting, path: Path, *dies_at: str) -> subprocess.Popen[str]:
    return start_module("recorded.child", exporter.address, str(path), *dies_at)


def record_until_told_to_end(exporter: Counting, path: Path, pages: int) -> None:
    child = start(exporter, path)
    assert exporter.reaches(exporter.pages + pages)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=PATIENCE)
    assert child.returncode == 0


@pytest.mark.long
def test_a_recorder_that_is_killed_fifty_times_counts_every_event_once(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    dice = random.Random(6)
    with Counting() as exporter:
        record_until_told_to_end(exporter, path, pages=2)
        for _ in range(KILLS):
            if dice.random() < 0.5:
                # Anywhere between two pages; with none of them, as it starts.
                child = start(exporter, path)
                assert exporter.reaches(exporter.pages + dice.randint(0, 40))
                child.kill()
            else:
                # In the middle of a transaction.
                child = start(exporter, path, str(dice.randint(1, 200)))
            child.communicate(timeout=PATIENCE)
            assert child.returncode == -signal.SIGKILL
        record_until_told_to_end(exporter, path, pages=6)
        served = exporter.pages
    with Store.open(path) as store:
        (state,) = store.recorder_states()
        tally = store.latest_tallies()[AVAILABILITY]
    pages = tally.total / 7 + 1
    assert pages in (served - 1, served), "the last may have come too late to be counted"
    assert state.raw.total == FIRST + tally.total
    assert tally.total - tally.good == pages - 1
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
