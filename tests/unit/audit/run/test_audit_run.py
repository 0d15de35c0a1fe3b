"""An audit run with fake ports: what it stores, replaces, deletes and rejects."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from audit_runs.fake_ports import CONFIG, Clock, fakes_of, ports_for
from fault_injection import Found
from generated_units import Faults, Generated, generate
from reference_audit import judge
from store_specs.stored_rows import stored_outcome

from mm2slo_audit.audit_options import AuditOptions, TimeSpan
from mm2slo_audit.audit_ports import AuditEngineError, AuditPorts, RunReport
from mm2slo_audit.audit_run import audit
from mm2slo_audit.run_progress import RunStage
from mm2slo_core.audit.audit_scope import NotAudited, NotAuditedReason
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.reporting.report_entry import utc_text
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_store.audit_rows import AuditRun, Published, RunState
from mm2slo_store.store import Store

US_EU = Flow("us", "eu")
SMALL = Faults(
    lost=5, altered=5, moved=5, duplicate=5, extra=5, out_of_order=5, identical=5, replays=(4,),
    expired=0, unauditable=0, tail=40,
)  # fmt: skip
CLEAN = Faults(
    lost=0, altered=0, moved=0, duplicate=0, extra=0, out_of_order=0, identical=0, replays=(),
    expired=0, unauditable=0, tail=0,
)  # fmt: skip


@pytest.fixture(scope="module")
def faulty() -> Generated:
    return generate(3, partitions=2, size=600, faults=SMALL)


@pytest.fixture(scope="module")
def clean() -> Generated:
    unit = generate(4, partitions=2, size=300, faults=CLEAN)
    return replace(unit, scope=replace(unit.scope, target_topic="us.clean"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "audit.db") as opened:
        yield opened


def options(unit: Generated, **changes: object) -> AuditOptions:
    window = unit.scope.window
    return replace(AuditOptions(span=TimeSpan(start=window.start, end=window.end)), **changes)  # type: ignore[arg-type]


def run(unit: Generated, ports: AuditPorts) -> RunReport:
    return audit(CONFIG, options(unit), ports)


def kept(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()} if folder.exists() else set()


def test_audit_census_finds_and_stores_true_verdicts(
    store: Store, tmp_path: Path, faulty: Generated
) -> None:
    ports = ports_for(store, tmp_path / "runs", faulty)
    report = run(faulty, ports)
    assert report.exit_code == 1
    (unit,) = report.units
    assert unit.outcome.counts[Verdict.LOST] == faulty.counts[Verdict.LOST] == 10
    assert unit.outcome == judge(faulty.records, faulty.polls, faulty.scope, Sample(1.0))
    stored = stored_outcome(store, report.header.id, 0)
    assert stored.counts == unit.outcome.counts
    (kept_run,) = store.runs()
    assert kept_run.state is RunState.FINISHED
    assert kept_run.exit_code == 1
    assert kept_run.verdict_line == report.conclusion.line
    assert kept(tmp_path / "runs") == {report.header.id}
    _, engine, progress = fakes_of(ports)
    assert engine.requested_records == [len(faulty.records)]
    assert progress.stages == list(RunStage)
    assert progress.records == progress.expected == len(faulty.records)


def test_audit_clean_window_exits_zero_and_is_complete_up_to_end(
    store: Store, tmp_path: Path, clean: Generated
) -> None:
    report = run(clean, ports_for(store, tmp_path / "runs", clean))
    assert report.exit_code == 0
    assert report.conclusion.complete_up_to == clean.scope.window.end
    completion = store.completion(US_EU, "us.clean")
    assert completion is not None
    assert completion.up_to == clean.scope.window.end


def test_audit_same_window_again_replaces_result(
    store: Store, tmp_path: Path, faulty: Generated
) -> None:
    first = run(faulty, ports_for(store, tmp_path / "runs", faulty))
    evidence = [each.evidence for each in store.evidence(run_id=first.header.id)]
    second = run(faulty, ports_for(store, tmp_path / "runs", faulty))
    assert [each.header.id for each in store.runs()] == [second.header.id]
    assert len(store.units()) == 1
    assert [each.evidence for each in store.evidence()] == evidence
    assert kept(tmp_path / "runs") == {second.header.id}


def test_audit_lost_record_found_later_is_late(
    store: Store, tmp_path: Path, faulty: Generated
) -> None:
    run(faulty, ports_for(store, tmp_path / "runs", faulty))
    arrived = _with_all_lost_records(faulty)
    report = run(faulty, ports_for(store, tmp_path / "runs", arrived))
    counts = report.units[0].outcome.counts
    assert counts.get(Verdict.LOST, 0) == 0
    assert counts[Verdict.LATE] == faulty.counts[Verdict.LOST]
    assert counts[Verdict.MATCHED] == faulty.counts[Verdict.MATCHED]
    third = run(faulty, ports_for(store, tmp_path / "runs", arrived))
    assert third.units[0].outcome.counts[Verdict.LATE] == faulty.counts[Verdict.LOST]


def _with_all_lost_records(unit: Generated) -> Generated:
    """*unit* with copies of all lost records at the end of the target."""
    lost = unit.truth.places[Verdict.LOST]
    ends = {each.partition: each.end for each in unit.scope.partitions}
    added = []
    for record in unit.records:
        if Found(record.side, record.partition, record.offset) in lost:
            copy = replace(record, side=Side.TARGET, offset=ends[record.partition])
            added.append(copy)
            ends[record.partition] += 1
    scope = replace(
        unit.scope,
        partitions=tuple(replace(each, end=ends[each.partition]) for each in unit.scope.partitions),
    )
    return replace(unit, scope=scope, records=(*unit.records, *added))


def test_audit_killed_run_keeps_store_and_next_run_deletes_records(
    store: Store, tmp_path: Path, clean: Generated
) -> None:
    first = run(clean, ports_for(store, tmp_path / "runs", clean))
    before = (store.units(), store.evidence(), store.completion(US_EU, "us.clean"))
    killed = ports_for(store, tmp_path / "runs", clean)
    _, engine, _ = fakes_of(killed)

    class Killed(BaseException):
        """Simulates SIGKILL: no cleanup runs after it."""

    left = tmp_path / "runs" / "left"

    def kill() -> None:
        # A killed process leaves its folder and a run in state running, but no lease.
        (folder,) = [each for each in (tmp_path / "runs").iterdir() if each.name != first.header.id]
        folder.rename(left)
        raise Killed

    engine.on_land = kill
    with pytest.raises(Killed):
        run(clean, killed)
    (dead,) = store.runs(state=RunState.FAILED)
    left.rename(tmp_path / "runs" / dead.header.id)
    assert (store.units(), store.evidence(), store.completion(US_EU, "us.clean")) == before
    third = run(clean, ports_for(store, tmp_path / "runs", clean))
    assert kept(tmp_path / "runs") == {third.header.id}


def test_audit_failed_run_stores_reason_and_deletes_records(
    store: Store, tmp_path: Path, clean: Generated
) -> None:
    ports = ports_for(store, tmp_path / "runs", clean)
    _, engine, _ = fakes_of(ports)
    engine.broken = frozenset({"us.clean"})
    with pytest.raises(AuditEngineError, match="the disk is full"):
        run(clean, ports)
    (failed,) = store.runs()
    assert failed.state is RunState.FAILED
    assert failed.verdict_line is not None
    assert "the disk is full" in failed.verdict_line
    assert store.units() == ()
    assert kept(tmp_path / "runs") == set()


def test_audit_topic_that_cannot_be_judged_does_not_fail_others(
    store: Store, tmp_path: Path, clean: Generated, faulty: Generated
) -> None:
    ports = ports_for(store, tmp_path / "runs", clean, faulty)
    _, engine, _ = fakes_of(ports)
    engine.broken = frozenset({"us.generated"})
    report = run(clean, ports)
    assert [unit.outcome.scope.target_topic for unit in report.units] == ["us.clean"]
    (failed,) = report.not_audited
    assert failed.reason is NotAuditedReason.FAILED
    assert failed.flows == (US_EU,)
    assert report.exit_code == 0


def test_audit_unreadable_topic_is_not_audited(
    store: Store, tmp_path: Path, clean: Generated, faulty: Generated
) -> None:
    ports = ports_for(store, tmp_path / "runs", clean, faulty)
    _, engine, _ = fakes_of(ports)
    engine.unreadable = {"us.generated": "the topic was deleted while it was read"}
    report = run(clean, ports)
    assert [each.target_topic for each in report.not_audited] == ["us.generated"]
    assert "1 topic not audited" in report.conclusion.line


def test_audit_topic_leased_by_another_run_is_skipped(
    store: Store, tmp_path: Path, clean: Generated, faulty: Generated
) -> None:
    with store.lease("eu", "us.generated", holder="another-run"):
        report = run(clean, ports_for(store, tmp_path / "runs", clean, faulty))
    assert [unit.outcome.scope.target_topic for unit in report.units] == ["us.clean"]
    (held,) = report.not_audited
    assert held.reason is NotAuditedReason.LEASED
    assert "another-run" in held.detail


def test_audit_waits_for_the_lease_of_a_killed_run(tmp_path: Path, clean: Generated) -> None:
    clock = Clock(1_000_000)
    with Store.open(tmp_path / "audit.db", clock=clock) as store:
        store.acquire("eu", "us.clean", holder="killed", ttl_ms=60_000)
        clock.now += 20_000
        waits: list[float] = []

        def sleep(seconds: float) -> None:
            waits.append(seconds)
            clock.now += round(seconds * 1000)

        ports = replace(ports_for(store, tmp_path / "runs", clean), sleep=sleep)
        *_, progress = fakes_of(ports)
        report = audit(CONFIG, options(clean, wait=True), ports)
        assert (report.not_audited, waits) == ((), [40.0])
        assert progress.messages[0].startswith(
            "waiting 40 s for a lease: us.clean is being audited"
        )


def test_audit_does_not_wait_for_a_run_that_renews_its_lease(
    tmp_path: Path, clean: Generated
) -> None:
    clock = Clock(1_000_000)
    with Store.open(tmp_path / "audit.db", clock=clock) as store:
        store.acquire("eu", "us.clean", holder="living", ttl_ms=60_000)

        def sleep(seconds: float) -> None:
            store.renew("eu", "us.clean", holder="living")
            clock.now += round(seconds * 1000) - 1
            store.renew("eu", "us.clean", holder="living")

        ports = replace(ports_for(store, tmp_path / "runs", clean), sleep=sleep)
        report = audit(CONFIG, options(clean, wait=True), ports)
        assert [each.reason for each in report.not_audited] == [NotAuditedReason.LEASED]


def test_audit_releases_leases(store: Store, tmp_path: Path, clean: Generated) -> None:
    run(clean, ports_for(store, tmp_path / "runs", clean))
    with store.lease("eu", "us.clean", holder="another-run") as lease:
        assert lease.is_held


def test_audit_without_scopes_exits_two_and_starts_no_engine(
    store: Store, tmp_path: Path, clean: Generated
) -> None:
    ports = ports_for(store, tmp_path / "runs", clean)
    scopes, engine, _ = fakes_of(ports)
    scopes.units = ()
    reason = NotAuditedReason.TARGET_MISSING
    missing = NotAudited("us.clean", reason, "there is no us.clean on eu", (US_EU,))
    scopes.unscoped = (missing,)
    engine.problem = AssertionError("not needed")
    report = run(clean, ports)
    assert report.exit_code == 2
    assert "nothing could be audited: 1 topic target_missing" in report.conclusion.line
    (unit,) = store.units()
    assert unit.not_audited == replace(missing, flows=())
    assert unit.key.flows == (US_EU,)


@pytest.mark.parametrize("problem", ["no such topic", "us is away"])
def test_audit_cluster_error_leaves_store_unchanged(
    store: Store, tmp_path: Path, clean: Generated, problem: str
) -> None:
    ports = ports_for(store, tmp_path / "runs", clean)
    scopes, _, _ = fakes_of(ports)
    scopes.error = UserError(problem)
    with pytest.raises(UserError, match=problem):
        run(clean, ports)
    assert store.runs() == ()


def test_audit_engine_start_error_leaves_store_unchanged(
    store: Store, tmp_path: Path, clean: Generated
) -> None:
    ports = ports_for(store, tmp_path / "runs", clean)
    _, engine, _ = fakes_of(ports)
    engine.problem = UserError("Spark needs Java 17 or newer")
    with pytest.raises(UserError, match="Java 17"):
        run(clean, ports)
    assert store.runs() == ()
    assert kept(tmp_path / "runs") == set()


def test_audit_incremental_run_starts_where_last_was_complete(
    store: Store, tmp_path: Path, clean: Generated
) -> None:
    clock = Clock(clean.scope.window.end)
    ports = ports_for(store, tmp_path / "runs", clean, clock=clock)
    scopes, _, _ = fakes_of(ports)
    audit(CONFIG, AuditOptions(), ports)
    assert scopes.windows[0].end - scopes.windows[0].start == 3_600_000
    clock.now += 60_000
    audit(CONFIG, AuditOptions(), ports)
    assert scopes.windows[1].start == scopes.windows[0].end
    assert scopes.windows[1].end == clock.now


def test_audit_incremental_run_starts_at_oldest_open_record(
    store: Store, tmp_path: Path, faulty: Generated
) -> None:
    clock = Clock(faulty.scope.window.end)
    ports = ports_for(store, tmp_path / "runs", faulty, clock=clock)
    scopes, _, _ = fakes_of(ports)
    report = audit(CONFIG, AuditOptions(), ports)
    clock.now += 60_000
    audit(CONFIG, AuditOptions(), ports)
    assert scopes.windows[1].start == report.units[0].outcome.oldest_open
    assert scopes.windows[1].start < faulty.scope.window.end


def test_audit_incremental_run_ignores_expired_topic(
    store: Store, tmp_path: Path, faulty: Generated
) -> None:
    clock = Clock(faulty.scope.window.end)
    ports = ports_for(store, tmp_path / "runs", faulty, clock=clock)
    scopes, _, _ = fakes_of(ports)
    first = audit(CONFIG, AuditOptions(), ports)
    scopes.units = ()
    gone = NotAudited("us.generated", NotAuditedReason.EXPIRED, "all are younger", (US_EU,))
    scopes.unscoped = (gone,)
    clock.now += 60_000
    second = audit(CONFIG, AuditOptions(), ports)
    assert second.header.window.start == first.units[0].outcome.oldest_open
    assert second.exit_code == 2
    assert "nothing could be audited: 1 topic expired" in second.conclusion.line
    until = utc_text(second.header.window.start // 1000 * 1000)
    assert second.conclusion.line.endswith(f"complete up to {until}")
    clock.now += 60_000
    third = audit(CONFIG, AuditOptions(), ports)
    assert third.header.window.start == second.header.window.end


def test_audit_incremental_run_ignores_deleted_topic(
    store: Store, tmp_path: Path, clean: Generated, faulty: Generated
) -> None:
    clock = Clock(faulty.scope.window.end)
    ports = ports_for(store, tmp_path / "runs", clean, faulty, clock=clock)
    scopes, _, _ = fakes_of(ports)
    first = audit(CONFIG, AuditOptions(), ports)
    clock.now += 60_000
    second = audit(CONFIG, AuditOptions(), ports)
    assert second.header.window.start == first.conclusion.complete_up_to
    assert second.header.window.start < first.header.window.end
    scopes.units = (clean,)
    clock.now += 60_000
    third = audit(CONFIG, AuditOptions(), ports)
    assert third.header.window.start == second.header.window.end
    # If the topic returns, everything not audited yet is audited.
    scopes.units = (clean, faulty)
    clock.now += 60_000
    assert audit(CONFIG, AuditOptions(), ports).header.window.start == second.header.window.start


def test_audit_incremental_run_of_one_topic_starts_where_it_was_complete(
    store: Store, tmp_path: Path, clean: Generated, faulty: Generated
) -> None:
    clock = Clock(faulty.scope.window.end)
    ports = ports_for(store, tmp_path / "runs", clean, faulty, clock=clock)
    first = audit(CONFIG, AuditOptions(), ports)
    assert first.conclusion.complete_up_to is not None
    assert first.conclusion.complete_up_to < first.header.window.end
    clock.now += 60_000
    alone = audit(CONFIG, AuditOptions(topics=("us.clean",)), ports)
    assert [unit.outcome.scope.target_topic for unit in alone.units] == ["us.clean"]
    assert alone.header.window.start == first.header.window.end


def test_audit_requested_window_expired_raises_error(
    store: Store, tmp_path: Path, clean: Generated
) -> None:
    ports = ports_for(store, tmp_path / "runs", clean)
    scopes, _, _ = fakes_of(ports)
    scopes.units = ()
    gone = NotAudited("us.clean", NotAuditedReason.EXPIRED, "all are younger", (US_EU,))
    scopes.unscoped = (gone,)
    with pytest.raises(UserError, match=r"no records left in the window from .*: all are younger"):
        run(clean, ports)
    assert store.runs() == ()


def test_audit_interrupt_after_publish_keeps_result(
    store: Store, tmp_path: Path, clean: Generated, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = Store.publish

    def interrupted(self: Store, run: AuditRun) -> Published:
        publish(self, run)
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "publish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(clean, ports_for(store, tmp_path / "runs", clean))
    (kept_run,) = store.runs()
    assert kept_run.state is RunState.FINISHED
    assert kept(tmp_path / "runs") == {kept_run.header.id}


def test_audit_unknown_flow_raises_error_before_reading(
    store: Store, tmp_path: Path, clean: Generated
) -> None:
    ports = ports_for(store, tmp_path / "runs", clean)
    scopes, engine, _ = fakes_of(ports)
    with pytest.raises(UserError, match=r"'us->apac' is not a configured flow"):
        audit(CONFIG, options(clean, flows=("us->apac",)), ports)
    assert scopes.windows == []
    assert engine.requested_records == []


def test_audit_sample_has_bounds_as_sentences(
    store: Store, tmp_path: Path, clean: Generated
) -> None:
    ports = ports_for(store, tmp_path / "runs", clean)
    report = audit(CONFIG, options(clean, sample=Sample(0.5)), ports)
    loss, *_ = report.units[0].bounds
    judged = report.units[0].outcome.counts[Verdict.MATCHED]
    assert 200 < judged < 400
    assert loss.lower == 0.0
    assert loss.upper == pytest.approx(1 - 0.025 ** (1 / judged))
    assert loss.sentence.startswith("loss is 0% (95 %: 0% to ")
