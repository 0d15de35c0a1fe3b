"""A recorder that is killed at any moment, again and again, neither loses nor invents events."""

from __future__ import annotations

import random
import signal
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from recorded import AVAILABILITY, exposition
from recorded.serving import Serving
from store_specs.other_process import start_module

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

from mm2slo_store import Store

KILLS = 50
PATIENCE = 60.0
FIRST = 1000


@dataclass
class Counting(Serving):
    """Counts seven events between two pages."""

    pages: int = 0

    def answer(self, handler: object) -> None:
        """The next page."""
        total = FIRST + 7 * self.pages
        self.pages += 1
        self.body = exposition({AVAILABILITY: (total - self.pages, total, 0)}, began=1.0)
        super().answer(handler)  # type: ignore[arg-type]


def start(address: str, path: Path) -> subprocess.Popen[str]:
    return start_module("recorded.child", address, str(path))


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def recorded(path: Path) -> bool:
    with Store.open(path) as store:
        return store.latest_minute() is not None


@pytest.mark.long
def test_a_recorder_that_is_killed_fifty_times_counts_every_event_once(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    dice = random.Random(6)  # noqa: S311 - moments, no secrets
    with Counting() as exporter:
        child = start(exporter.address, path)
        until(lambda: path.exists() and recorded(path))
        for _ in range(KILLS):
            time.sleep(dice.uniform(0, 0.5))
            child.kill()
            child.communicate()
            child = start(exporter.address, path)
            if dice.random() < 0.7:  # else it may die as it begins
                assert child.stdout is not None
                assert child.stdout.readline() == "ready\n"
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
        child.communicate(timeout=PATIENCE)
        child = start(exporter.address, path)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        served = exporter.pages
        until(lambda: exporter.pages > served + 5)
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=PATIENCE)
        assert child.returncode == 0
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
