"""Repeated runs of `--follow`."""

from pathlib import Path

import pytest
from audit_runs.fake_ports import CONFIG, Clock, fakes_of, ports_for
from generated_units import Faults, generate

from mm2slo_audit.audit_options import AuditOptions, TimeSpan
from mm2slo_audit.audit_ports import RunReport
from mm2slo_audit.audit_run import follow
from mm2slo_core.user_errors import UserError
from mm2slo_store.store import Store

CLEAN = Faults(
    lost=0, altered=0, moved=0, duplicate=0, extra=0, out_of_order=0, identical=0, replays=(),
    expired=0, unauditable=0, tail=0,
)  # fmt: skip


class Ended(BaseException):
    """Simulates the signal that ends the loop."""


def test_follow_continues_where_complete_and_retries_after_error(
    tmp_path: Path,
) -> None:
    unit = generate(4, partitions=1, size=200, faults=CLEAN)
    clock = Clock(unit.scope.window.end)
    reports: list[RunReport] = []
    waits: list[float] = []
    with Store.open(tmp_path / "audit.db") as store:
        ports = ports_for(store, tmp_path / "runs", unit, clock=clock)
        scopes, _, progress = fakes_of(ports)

        def wait(seconds: float) -> None:
            waits.append(seconds)
            clock.now += 60_000
            scopes.error = UserError("eu does not answer") if len(waits) == 1 else None
            if len(waits) == 3:
                raise Ended

        with pytest.raises(Ended):
            follow(
                CONFIG,
                AuditOptions(span=TimeSpan(start=unit.scope.window.start)),
                ports,
                every=60.0,
                on_report=reports.append,
                wait=wait,
            )
    first, failed, third = scopes.windows
    assert first == unit.scope.window
    assert failed.start == third.start == first.end
    assert third.end == first.end + 120_000
    assert len(reports) == 2
    assert waits == [60.0, 60.0, 60.0]
    assert "run failed, next run in 60 s: eu does not answer" in progress.messages


def test_follow_error_of_first_run_is_raised(tmp_path: Path) -> None:
    unit = generate(4, partitions=1, size=200, faults=CLEAN)
    with Store.open(tmp_path / "audit.db") as store:
        ports = ports_for(store, tmp_path / "runs", unit)
        scopes, _, _ = fakes_of(ports)
        scopes.error = UserError("no topic 'ordres'")
        with pytest.raises(UserError, match="ordres"):
            follow(
                CONFIG,
                AuditOptions(),
                ports,
                every=1.0,
                on_report=lambda _: None,
                wait=lambda _: None,
            )
