"""A run against its ports: what it stores, replaces, leaves behind and refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from audit_runs import CONFIG, Clock, ports_for, started
from fault_injection import Found
from generated_units import Faults, Generated, generate

from mm2slo_audit.run import AuditOptions, Ports, RunReport, Span, audit
from mm2slo_audit.run.engine_error import AuditEngineError
from mm2slo_audit.run.run_progress import Stage
from mm2slo_core.audit.audit_scope import NotAudited, NotAuditedReason
from mm2slo_core.audit.record_sample import Sample
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.audit.reference import judge
from mm2slo_core.timeline_record import Side
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_store import RunState, Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mm2slo_store import AuditRun, Published

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
    return replace(AuditOptions(span=Span(start=window.start, end=window.end)), **changes)  # type: ignore[arg-type]


def run(unit: Generated, ports: Ports) -> RunReport:
    return audit(CONFIG, options(unit), ports)


def kept(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()} if folder.exists() else set()


def test_a_census_finds_what_the_truth_says_and_stores_it(
    store: Store, tmp_path: Path, faulty: Generated
) -> None:
    ports = ports_for(store, tmp_path / "runs", faulty)
    report = run(faulty, ports)
    assert report.exit_code == 1
    (unit,) = report.units
    assert unit.outcome.counts[Verdict.LOST] == faulty.counts[Verdict.LOST] == 10
    assert unit.outcome == judge(faulty.records, faulty.polls, faulty.scope, Sample(1.0))
    stored = store.outcome(report.run_id, 0)
    assert stored.counts == unit.outcome.counts
    (kept_run,) = store.runs()
    assert kept_run.state is RunState.FINISHED
    assert kept_run.exit_code == 1
    assert kept_run.verdict_line == report.conclusion.line
    assert kept(tmp_path / "runs") == {report.run_id}
    _, engine, heard = started(ports)
    assert engine.asked_for == [len(faulty.records)]
    assert heard.stages == list(Stage)
    assert heard.records == heard.expected == len(faulty.records)


def test_a_clean_window_exits_with_zero_and_is_complete_up_to_its_end(
    store: Store, tmp_path: Path, clean: Generated
) -> None:
    report = run(clean, ports_for(store, tmp_path / "runs", clean))
    assert report.exit_code == 0
    assert report.conclusion.complete_up_to == clean.scope.window.end
    completion = store.completion(US_EU, "us.clean")
    assert completion is not None
    assert completion.up_to == clean.scope.window.end


def test_running_a_window_again_replaces_it(
    store: Store, tmp_path: Path, faulty: Generated
) -> None:
    first = run(faulty, ports_for(store, tmp_path / "runs", faulty))
    evidence = [each.evidence for each in store.evidence(run_id=first.run_id)]
    second = run(faulty, ports_for(store, tmp_path / "runs", faulty))
    assert [each.header.id for each in store.runs()] == [second.run_id]
    assert len(store.units()) == 1
    assert [each.evidence for each in store.evidence()] == evidence
    assert kept(tmp_path / "runs") == {second.run_id}


def test_what_was_lost_and_is_there_now_is_late(
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
    """The target has a copy of every lost record now, at its end."""
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


def test_a_run_that_is_killed_leaves_the_store_as_it_was_and_the_next_one_cleans_up(
    store: Store, tmp_path: Path, clean: Generated
) -> None:
    first = run(clean, ports_for(store, tmp_path / "runs", clean))
    before = (store.units(), store.evidence(), store.completion(US_EU, "us.clean"))
    killed = ports_for(store, tmp_path / "runs", clean)
    _, engine, _ = started(killed)

    class Killed(BaseException):
        """As a SIGKILL: nothing of ours runs after it."""

    left = tmp_path / "runs" / "left"

    def kill() -> None:
        # What a dead process leaves: its folder, a run that says it is running, no lease.
        (folder,) = [each for each in (tmp_path / "runs").iterdir() if each.name != first.run_id]
        folder.rename(left)
        raise Killed

    engine.on_land = kill
    with pytest.raises(Killed):
        run(clean, killed)
    (dead,) = store.runs(state=RunState.FAILED)
    left.rename(tmp_path / "runs" / dead.header.id)
    assert (store.units(), store.evidence(), store.completion(US_EU, "us.clean")) == before
    third = run(clean, ports_for(store, tmp_path / "runs", clean))
    assert kept(tmp_path / "runs") == {third.run_id}


def test_a_run_that_fails_says_why_and_leaves_no_records(
    store: Store, tmp_path: Path, clean: Generated
) -> None:
    ports = ports_for(store, tmp_path / "runs", clean)
    _, engine, _ = started(ports)
    engine.broken = frozenset({0})
    with pytest.raises(AuditEngineError, match="the disk is full"):
        run(clean, ports)
    (failed,) = store.runs()
    assert failed.state is RunState.FAILED
    assert failed.verdict_line is not None
    assert "the disk is full" in failed.verdict_line
    assert store.units() == ()
    assert kept(tmp_path / "runs") == set()


def test_one_topic_that_cannot_be_judged_takes_no_other_with_it(
    store: Store, tmp_path: Path, clean: Generated, faulty: Generated
) -> None:
    ports = ports_for(store, tmp_path / "runs", clean, faulty)
    _, engine, _ = started(ports)
    engine.broken = frozenset({1})
    report = run(clean, ports)
    assert [unit.outcome.scope.target_topic for unit in report.units] == ["us.clean"]
    (failed,) = report.not_audited
    assert failed.reason is NotAuditedReason.FAILED
    assert failed.flows == (US_EU,)
    assert report.exit_code == 0


def test_a_topic_that_cannot_be_read_is_not_audited(
    store: Store, tmp_path: Path, clean: Generated, faulty: Generated
) -> None:
    ports = ports_for(store, tmp_path / "runs", clean, faulty)
    _, engine, _ = started(ports)
    engine.unreadable = {1: "the topic was deleted while it was read"}
    report = run(clean, ports)
    assert [each.target_topic for each in report.not_audited] == ["us.generated"]
    assert "1 topic not audited" in report.conclusion.line


def test_a_topic_that_another_run_holds_is_leased_and_the_others_are_judged(
    store: Store, tmp_path: Path, clean: Generated, faulty: Generated
) -> None:
    with store.lease("eu", "us.generated", holder="another-run"):
        report = run(clean, ports_for(store, tmp_path / "runs", clean, faulty))
    assert [unit.outcome.scope.target_topic for unit in report.units] == ["us.clean"]
    (held,) = report.not_audited
    assert held.reason is NotAuditedReason.LEASED
    assert "another-run" in held.detail


def test_leases_are_given_back(store: Store, tmp_path: Path, clean: Generated) -> None:
    run(clean, ports_for(store, tmp_path / "runs", clean))
    with store.lease("eu", "us.clean", holder="another-run") as lease:
        assert lease.held


def test_nothing_to_judge_exits_with_two_and_needs_no_engine(
    store: Store, tmp_path: Path, clean: Generated
) -> None:
    ports = ports_for(store, tmp_path / "runs", clean)
    scopes, engine, _ = started(ports)
    scopes.units = ()
    reason = NotAuditedReason.TARGET_MISSING
    missing = NotAudited("us.clean", reason, "there is no us.clean on eu", (US_EU,))
    scopes.unscoped = (missing,)
    engine.problem = AssertionError("not needed")
    report = run(clean, ports)
    assert report.exit_code == 2
    assert "nothing could be judged: 1 topic target_missing" in report.conclusion.line
    (unit,) = store.units()
    assert unit.not_audited == replace(missing, flows=())
    assert unit.key.flows == (US_EU,)


@pytest.mark.parametrize("problem", ["no such topic", "us is away"])
def test_a_refusal_of_the_clusters_leaves_the_store_as_it_was(
    store: Store, tmp_path: Path, clean: Generated, problem: str
) -> None:
    ports = ports_for(store, tmp_path / "runs", clean)
    scopes, _, _ = started(ports)
    scopes.error = UserError(problem)
    with pytest.raises(UserError, match=problem):
        run(clean, ports)
    assert store.runs() == ()


def test_a_spark_that_does_not_start_leaves_the_store_as_it_was(
    store: Store, tmp_path: Path, clean: Generated
) -> None:
    ports = ports_for(store, tmp_path / "runs", clean)
    _, engine, _ = started(ports)
    engine.problem = UserError("Spark needs Java 17 or newer")
    with pytest.raises(UserError, match="Java 17"):
        run(clean, ports)
    assert store.runs() == ()
    assert kept(tmp_path / "runs") == set()


def test_an_incremental_run_goes_on_where_the_last_one_was_complete(
    store: Store, tmp_path: Path, clean: Generated
) -> None:
    clock = Clock(clean.scope.window.end)
    ports = ports_for(store, tmp_path / "runs", clean, clock=clock)
    scopes, _, _ = started(ports)
    audit(CONFIG, AuditOptions(), ports)
    assert scopes.windows[0].end - scopes.windows[0].start == 3_600_000
    clock.now += 60_000
    audit(CONFIG, AuditOptions(), ports)
    assert scopes.windows[1].start == scopes.windows[0].end
    assert scopes.windows[1].end == clock.now


def test_a_stopped_flow_is_audited_again_from_its_oldest_open_record(
    store: Store, tmp_path: Path, faulty: Generated
) -> None:
    clock = Clock(faulty.scope.window.end)
    ports = ports_for(store, tmp_path / "runs", faulty, clock=clock)
    scopes, _, _ = started(ports)
    report = audit(CONFIG, AuditOptions(), ports)
    clock.now += 60_000
    audit(CONFIG, AuditOptions(), ports)
    assert scopes.windows[1].start == report.units[0].outcome.oldest_open
    assert scopes.windows[1].start < faulty.scope.window.end


def test_a_topic_at_rest_whose_records_are_gone_holds_no_incremental_run_back(
    store: Store, tmp_path: Path, faulty: Generated
) -> None:
    clock = Clock(faulty.scope.window.end)
    ports = ports_for(store, tmp_path / "runs", faulty, clock=clock)
    scopes, _, _ = started(ports)
    first = audit(CONFIG, AuditOptions(), ports)
    scopes.units = ()
    gone = NotAudited("us.generated", NotAuditedReason.EXPIRED, "all are younger", (US_EU,))
    scopes.unscoped = (gone,)
    clock.now += 60_000
    second = audit(CONFIG, AuditOptions(), ports)
    assert second.window.start == first.units[0].outcome.oldest_open
    assert second.exit_code == 2
    assert "nothing could be judged: 1 topic expired" in second.conclusion.line
    clock.now += 60_000
    third = audit(CONFIG, AuditOptions(), ports)
    assert third.window.start == second.window.end


def test_a_topic_that_is_there_no_more_holds_no_incremental_run_back(
    store: Store, tmp_path: Path, clean: Generated, faulty: Generated
) -> None:
    clock = Clock(faulty.scope.window.end)
    ports = ports_for(store, tmp_path / "runs", clean, faulty, clock=clock)
    scopes, _, _ = started(ports)
    first = audit(CONFIG, AuditOptions(), ports)
    clock.now += 60_000
    second = audit(CONFIG, AuditOptions(), ports)
    assert second.window.start == first.conclusion.complete_up_to
    assert second.window.start < first.window.end
    scopes.units = (clean,)
    clock.now += 60_000
    third = audit(CONFIG, AuditOptions(), ports)
    assert third.window.start == second.window.end
    # Should it be back, all that was not audited is.
    scopes.units = (clean, faulty)
    clock.now += 60_000
    assert audit(CONFIG, AuditOptions(), ports).window.start == second.window.start


def test_an_incremental_run_of_one_topic_goes_on_where_that_was_complete(
    store: Store, tmp_path: Path, clean: Generated, faulty: Generated
) -> None:
    clock = Clock(faulty.scope.window.end)
    ports = ports_for(store, tmp_path / "runs", clean, faulty, clock=clock)
    first = audit(CONFIG, AuditOptions(), ports)
    assert first.conclusion.complete_up_to is not None
    assert first.conclusion.complete_up_to < first.window.end
    clock.now += 60_000
    alone = audit(CONFIG, AuditOptions(topics=("us.clean",)), ports)
    assert [unit.outcome.scope.target_topic for unit in alone.units] == ["us.clean"]
    assert alone.window.start == first.window.end


def test_a_window_that_was_asked_for_and_is_gone_is_refused(
    store: Store, tmp_path: Path, clean: Generated
) -> None:
    ports = ports_for(store, tmp_path / "runs", clean)
    scopes, _, _ = started(ports)
    scopes.units = ()
    gone = NotAudited("us.clean", NotAuditedReason.EXPIRED, "all are younger", (US_EU,))
    scopes.unscoped = (gone,)
    with pytest.raises(UserError, match=r"nothing of the window from .* is left: all are younger"):
        run(clean, ports)
    assert store.runs() == ()


def test_a_signal_after_all_is_stored_takes_nothing_back(
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


def test_a_flow_that_is_not_configured_is_refused_before_anything_is_asked(
    store: Store, tmp_path: Path, clean: Generated
) -> None:
    ports = ports_for(store, tmp_path / "runs", clean)
    scopes, engine, _ = started(ports)
    with pytest.raises(UserError, match=r"'us->apac' is not a configured flow"):
        audit(CONFIG, options(clean, flows=("us->apac",)), ports)
    assert scopes.windows == []
    assert engine.asked_for == []


def test_a_sample_states_its_bounds_in_words(
    store: Store, tmp_path: Path, clean: Generated
) -> None:
    ports = ports_for(store, tmp_path / "runs", clean)
    report = audit(CONFIG, options(clean, sample=Sample(0.5)), ports)
    loss, *_ = report.units[0].bounds
    judged = report.units[0].outcome.counts[Verdict.MATCHED]
    assert 200 < judged < 400
    assert loss.lower == 0.0
    assert loss.upper == pytest.approx(1 - 0.025 ** (1 / judged))
    assert loss.words.startswith("loss is below ")
    assert "with 95 % confidence" in loss.words
