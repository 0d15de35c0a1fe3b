"""Interrupted and killed runs of `mm2slo audit`, as a process with fake ports."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from audit_runs.endless_run import UNIT
from audit_runs.fake_ports import CONFIG, ports_for
from store_specs.stored_rows import stored_directories

from mm2slo_audit.audit_options import AuditOptions, TimeSpan
from mm2slo_audit.audit_run import audit
from mm2slo_cli.audit import AuditOutput
from mm2slo_core.reporting.report_entry import utc_text
from mm2slo_core.topology import Flow
from mm2slo_store.audit_rows import RunState
from mm2slo_store.store import Store

SUPPORT = Path(__file__).parents[2] / "support"
WINDOW = UNIT.scope.window
OPTIONS = AuditOptions(span=TimeSpan(start=WINDOW.start, end=WINDOW.end))
YAML = """
clusters: {us: {bootstrap_servers: "us:9092"}, eu: {bootstrap_servers: "eu:9092"}}
flows: [{flow: us->eu}]
"""
MESSAGE = "interrupted by {}: an interrupted run stores no results"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with the result of the window, and the records of that run."""
    (tmp_path / "mm2slo.yaml").write_text(YAML, encoding="utf-8")
    with Store.open(tmp_path / "audit.db") as store:
        audit(CONFIG, OPTIONS, ports_for(store, tmp_path / "runs", UNIT))
    return tmp_path


def results(store: Store) -> tuple[object, ...]:
    """Everything that a run stores, except the run itself."""
    return store.units(), store.evidence(), stored_directories(store), store.completion(*_COMPLETED)


_COMPLETED = Flow("us", "eu"), UNIT.scope.target_topic


def runs(folder: Path) -> set[str]:
    return {each.name for each in (folder / "runs").iterdir()}


@pytest.fixture
def process(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """An audit of the same window that has started to read."""
    command = [
        *(sys.executable, "-m", "audit_runs.endless_run", "--config", "mm2slo.yaml"),
        *("--from", utc_text(WINDOW.start), "--to", utc_text(WINDOW.end)),
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
        line = started.stdout.readline()
        if line != "reading\n":
            started.kill()
            pytest.fail(f"unexpected output {line!r}: {started.communicate()[1]}")
        yield started
        started.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_audit_interrupted_prints_one_line_and_keeps_stored_results(
    folder: Path, process: subprocess.Popen[str], number: signal.Signals
) -> None:
    with Store.open(folder / "audit.db") as store:
        before, records = results(store), {run.header.id for run in store.runs(limit=9)}
        (started,) = store.runs(state=RunState.RUNNING)
        records -= {started.header.id}
        assert runs(folder) == records | {started.header.id}
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=30)
        assert process.returncode == 128 + number
        assert stdout == ""
        *logged, message = stderr.splitlines()
        assert message == MESSAGE.format(number.name)
        assert {json.loads(line)["level"] for line in logged} == {"INFO"}
        assert results(store) == before
        (failed,) = store.runs(state=RunState.FAILED)
        assert failed.header.id == started.header.id
        assert failed.verdict_line == f"interrupted by {number.name}"
        assert runs(folder) == records
        with store.lease("eu", UNIT.scope.target_topic, holder="another") as lease:
            assert lease.is_held


def test_audit_killed_keeps_stored_results_and_next_run_cleans_up(
    folder: Path, process: subprocess.Popen[str]
) -> None:
    with Store.open(folder / "audit.db") as store:
        before = results(store)
        (started,) = store.runs(state=RunState.RUNNING)
        process.kill()
        assert process.wait(30) == -signal.SIGKILL
        assert results(store) == before
        assert started.header.id in runs(folder)

    def after_lease_expiry() -> int:
        return time.time_ns() // 1_000_000 + 61_000

    with Store.open(folder / "audit.db", clock=after_lease_expiry) as store:
        report = audit(CONFIG, OPTIONS, ports_for(store, folder / "runs", UNIT))
        assert report.exit_code == 0
        (dead,) = store.runs(state=RunState.FAILED)
        assert dead.header.id == started.header.id
        assert runs(folder) == {report.header.id}
        assert len(store.units()) == 1


def test_follow_without_terminal_logs_one_line_per_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with Store.open(tmp_path / "audit.db") as store:
        report = audit(CONFIG, OPTIONS, ports_for(store, tmp_path / "runs", UNIT))
    with caplog.at_level("INFO", "mm2slo.audit"):
        AuditOutput(None, 600.0).publish(report)
    assert capsys.readouterr().out == ""
    (logged,) = caplog.records
    assert (logged.levelname, logged.__dict__["run_id"]) == ("INFO", report.header.id)
    assert logged.getMessage() == f"verdict: {report.conclusion.line}"
    AuditOutput(None, None).publish(report)
    assert capsys.readouterr().out.splitlines()[-1] == f"verdict: {report.conclusion.line}"
