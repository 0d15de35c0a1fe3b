"""Audit queries on every back-end: tests over the fixture `back_end`."""

from dataclasses import replace

import pytest

from mm2slo_core.audit.audit_scope import NotAuditedReason, Window
from mm2slo_core.audit.unit_outcome import PartitionOutcome, UnitOutcome, Verdict
from mm2slo_core.topology import Flow
from mm2slo_store.audit_rows import RunPlace, RunState, UnitKey
from store_specs.back_end import BackEnd
from store_specs.sample_results import (
    AP_EU,
    ORDERS,
    US_EU,
    evidence,
    header,
    judged,
    orders_outcome,
    run_of,
    unjudged,
)

FIRST = Window(0, 100)
SECOND = Window(100, 200)
BOTH = (US_EU, AP_EU)


class AuditQueryContract:
    """Units, runs, evidence, completion, and open records."""

    def test_units_filters_by_window_and_run(self, back_end: BackEnd) -> None:
        outcome = orders_outcome(FIRST, topic="us.only")
        lone = replace(outcome, scope=replace(outcome.scope, flows=outcome.scope.flows[:1]))
        with back_end.open() as store:
            store.publish(run_of("r1", judged(orders_outcome(FIRST)), judged(lone)))
            store.publish(run_of("r2", judged(orders_outcome(SECOND))))

            def topics(**wanted: object) -> list[tuple[str, str]]:
                found = store.units(**wanted)  # type: ignore[arg-type]
                return [(unit.run_id, unit.key.target_topic) for unit in found]

            assert topics(run_id="r2") == [("r2", ORDERS)]
            assert topics(overlapping=Window(99, 100)) == [("r1", ORDERS), ("r1", "us.only")]
            assert topics(overlapping=Window(100, 101)) == [("r2", ORDERS)]
            assert [each.flow for each in store.units()[0].flows] == [US_EU, AP_EU]
            assert [run.header.id for run in store.runs(flow=US_EU)] == ["r2", "r1"]
            assert store.runs(flow=Flow("eu", "us")) == ()
            # Labels are case-sensitive, and parts of labels do not match.
            assert store.runs(flow=Flow("US", "eu")) == store.runs(flow=Flow("s", "e")) == ()

    def test_runs_are_paged_and_counted(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            for number in range(5):
                window = Window(100 * number, 100 * number + 100)
                # Two start at the same moment: their ids order them.
                started = 1_000 + number // 2
                run = run_of(f"r{number}", judged(orders_outcome(window)), started_at=started)
                store.publish(run)
            failed = header("r9", Window(500, 600), 9_000)
            store.announce(failed)
            store.fail(failed, "no Spark")
            seen, place = [], None
            while page := store.runs(after=place, limit=2):
                seen += [each.header.id for each in page]
                place = RunPlace(page[-1].header.started_at, page[-1].header.id)
            assert seen == ["r9", "r4", "r3", "r2", "r1", "r0"]
            # The place of a deleted run is still valid.
            behind = store.runs(flow=US_EU, after=RunPlace(1_001, "r2x"), limit=1)
            assert [each.header.id for each in behind] == ["r2"]
            assert store.count_runs() == {
                RunState.RUNNING: 0, RunState.FINISHED: 5, RunState.FAILED: 1,
            }  # fmt: skip
            assert sum(store.count_runs(flow=Flow("eu", "us")).values()) == 0
            newest = store.newest_finished([Flow("eu", "us"), US_EU])
            assert {flow: run.header.id for flow, run in newest.items()} == {US_EU: "r4"}
            found = store.runs_by_id(["r0", "r9", "r3", "nope"])
            assert [each.header.id for each in found] == ["r9", "r3", "r0"]
            assert store.runs_by_id([]) == ()

    def test_evidence_contains_its_unit_and_flow(self, back_end: BackEnd) -> None:
        found = [
            evidence(Verdict.LOST, 4),
            evidence(Verdict.OVERDUE, 8, flow=1),
            evidence(Verdict.LOST, 2),
        ]
        with back_end.open() as store:
            store.publish(run_of("r1", judged(orders_outcome(FIRST, found=found))))
            lost = store.evidence(verdicts={Verdict.LOST})
            assert [each.evidence for each in lost] == [found[2], found[0]]
            assert {each.flow for each in lost} == {US_EU}
            assert [each.place for each in lost] == [(0, "r1", 0, 1), (0, "r1", 0, 2)]
            (overdue,) = store.evidence(run_id="r1", verdicts=[Verdict.OVERDUE])
            assert (overdue.flow, overdue.target_topic) == (AP_EU, ORDERS)
            assert len(store.evidence()) == 5
            assert len(store.evidence(limit=2)) == 2
            for number, each in enumerate(store.evidence(), 1):
                assert store.evidence(after=each.place, limit=2) == store.evidence()[number:][:2]
            assert store.evidence(run_id="r2") == ()
            assert store.count_evidence("r1") == {
                0: {Verdict.LOST: 2, Verdict.OVERDUE: 1, Verdict.ALTERED: 1, Verdict.REPLAY: 1}
            }
            assert store.count_evidence("r2") == {}

    def test_completion_ends_at_the_first_open_record(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            assert store.completion(US_EU, ORDERS) is None

            def after(run_id: str, window: Window, oldest_open: int | None) -> tuple[int, int, str]:
                outcome = orders_outcome(window, oldest_open=oldest_open)
                store.publish(run_of(run_id, judged(outcome)))
                found = store.completion(US_EU, ORDERS)
                assert found is not None
                return found.start, found.up_to, found.run_id

            assert after("r1", FIRST, 90) == (0, 90, "r1")
            assert after("r2", Window(90, 200), None) == (0, 200, "r2")
            assert after("r3", Window(300, 400), None) == (0, 200, "r2")
            assert after("r4", Window(50, 200), 60) == (0, 60, "r4")
            other = store.completion(AP_EU, ORDERS)
            assert other is not None
            assert other.up_to == 60
            assert store.completion(AP_EU, "other") is None

    def test_completion_restarts_where_earlier_records_are_gone(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            store.publish(run_of("r1", judged(orders_outcome(FIRST))))
            later = orders_outcome(Window(500, 600))
            store.publish(run_of("r2", judged(later, restarts=True)))
            found = store.completion(US_EU, ORDERS)
        assert found is not None
        assert (found.start, found.up_to, found.updated_at) == (500, 600, 10_000)

    @pytest.mark.parametrize(
        ("reason", "expected"),
        [
            (NotAuditedReason.EMPTY, (0, 200)),
            (NotAuditedReason.EXPIRED, (200, 200)),
            (NotAuditedReason.UNREACHABLE, (0, 90)),
        ],
    )
    def test_completion_advances_over_empty_and_expired_windows(
        self, back_end: BackEnd, reason: NotAuditedReason, expected: tuple[int, int]
    ) -> None:
        with back_end.open() as store:
            store.publish(run_of("r1", judged(orders_outcome(FIRST, oldest_open=90))))
            leased = unjudged(Window(90, 200))
            idle = replace(leased, not_audited=replace(leased.not_audited, reason=reason))
            other = replace(idle, not_audited=replace(idle.not_audited, target_topic="other"))
            store.publish(run_of("r2", idle, other))
            found = store.completion(US_EU, ORDERS)
            assert found is not None
            assert (found.start, found.up_to) == expected
            assert store.completion(US_EU, "other") is None

    def test_open_scopes_returns_units_with_missed_records(self, back_end: BackEnd) -> None:
        def counted(window: Window, topic: str = ORDERS, **counts: int) -> UnitOutcome:
            found = {Verdict(name): count for name, count in counts.items()}
            partitions = (PartitionOutcome(0, 0, found),)
            return orders_outcome(window, topic=topic, partitions=partitions)

        late = counted(FIRST, matched=5, late=9)
        first = replace(late, scope=replace(late.scope, earlier=(replace(late.scope, index=0),)))
        units = [
            first,
            counted(SECOND, matched=5, pending=1),
            counted(Window(200, 300), overdue=1_200),
            counted(FIRST, "other", lost=5),
        ]
        key = UnitKey.named(ORDERS, BOTH)
        with back_end.open() as store:
            store.publish(run_of("r1", *map(judged, units)))
            every = Window(0, 10_000)
            early, open_ = store.open_scopes(key, every)
            assert (early.window, open_.window) == (FIRST, Window(200, 300))
            assert early.flows == first.scope.flows
            assert [each.partitions for each in early.earlier] == [first.scope.partitions]
            assert store.open_scopes(key, FIRST) == (early,)
            assert len(store.open_scopes(UnitKey.named(ORDERS, (US_EU,)), every)) == 2
            assert store.open_scopes(UnitKey.named(ORDERS, (Flow("us", "ap"),)), every) == ()
