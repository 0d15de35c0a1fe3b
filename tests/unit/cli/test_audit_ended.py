"""`mm2slo audit` that is told to end, or killed, in the middle: a real process over fakes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from audit_runs import CONFIG, ports_for
from audit_runs.endless import UNIT

from mm2slo_audit.run import AuditOptions, Span, audit
from mm2slo_audit.run.span import utc
from mm2slo_core.topology import Flow
from mm2slo_store import RunState, Store

if TYPE_CHECKING:
    from collections.abc import Iterator

SUPPORT = Path(__file__).parents[2] / "support"
WINDOW = UNIT.scope.window
OPTIONS = AuditOptions(span=Span(start=WINDOW.start, end=WINDOW.end))
YAML = """
clusters: {us: {bootstrap_servers: "us:9092"}, eu: {bootstrap_servers: "eu:9092"}}
flows: [{flow: us->eu}]
"""
STORED = "told to end by {}: a run that does not come to its end stores no result"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with the result of the window, and the records of that run."""
    (tmp_path / "mm2slo.yaml").write_text(YAML, encoding="utf-8")
    with Store.open(tmp_path / "audit.db") as store:
        audit(CONFIG, OPTIONS, ports_for(store, tmp_path / "runs", UNIT))
    return tmp_path


def results(store: Store) -> tuple[object, ...]:
    """All that a run stores, but for itself."""
    return store.units(), store.evidence(), store.directories(), store.completion(*_COMPLETED)


_COMPLETED = Flow("us", "eu"), UNIT.scope.target_topic


def runs(folder: Path) -> set[str]:
    return {each.name for each in (folder / "runs").iterdir()}


@pytest.fixture
def process(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """An audit of the same window, which has announced itself and reads."""
    command = [
        *(sys.executable, "-m", "audit_runs.endless", "--config", "mm2slo.yaml"),
        *("--from", utc(WINDOW.start), "--to", utc(WINDOW.end)),
        *("--store", "audit.db", "--directory", "runs"),
    ]
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SUPPORT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as started:
        assert started.stdout is not None
        said = started.stdout.readline()
        if said != "reading\n":
            started.kill()
            pytest.fail(f"it said {said!r}: {started.communicate()[1]}")
        yield started
        started.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_with_one_sentence_and_leaves_the_store_as_it_was(
    folder: Path, process: subprocess.Popen[str], number: signal.Signals
) -> None:
    with Store.open(folder / "audit.db") as store:
        before, records = results(store), {run.header.id for run in store.runs(limit=9)}
        (started,) = store.runs(state=RunState.RUNNING)
        records -= {started.header.id}
        assert runs(folder) == records | {started.header.id}
        process.send_signal(number)
        said, told = process.communicate(timeout=30)
        assert process.returncode == 128 + number
        assert said == ""
        *logged, sentence = told.splitlines()
        assert sentence == STORED.format(number.name)
        assert {json.loads(line)["level"] for line in logged} == {"info"}
        assert results(store) == before
        (failed,) = store.runs(state=RunState.FAILED)
        assert failed.header.id == started.header.id
        assert failed.verdict_line == f"told to end by {number.name}"
        assert runs(folder) == records
        with store.lease("eu", UNIT.scope.target_topic, holder="another") as lease:
            assert lease.held


def test_a_killed_run_leaves_the_store_as_it_was_and_the_next_one_cleans_up(
    folder: Path, process: subprocess.Popen[str]
) -> None:
    with Store.open(folder / "audit.db") as store:
        before = results(store)
        (started,) = store.runs(state=RunState.RUNNING)
        process.kill()
        assert process.wait(30) == -signal.SIGKILL
        assert results(store) == before
        assert started.header.id in runs(folder)

    def once_its_lease_has_ended() -> int:
        return time.time_ns() // 1_000_000 + 61_000

    with Store.open(folder / "audit.db", clock=once_its_lease_has_ended) as store:
        report = audit(CONFIG, OPTIONS, ports_for(store, folder / "runs", UNIT))
        assert report.exit_code == 0
        (dead,) = store.runs(state=RunState.FAILED)
        assert dead.header.id == started.header.id
        assert runs(folder) == {report.run_id}
        assert len(store.units()) == 1
