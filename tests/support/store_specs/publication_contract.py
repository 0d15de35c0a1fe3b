"""Publication of runs on every back-end: tests over the fixture `back_end`."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.unit_outcome import UnitOutcome, Verdict
from mm2slo_core.user_errors import UserError
from mm2slo_store.audit_rows import RunState, UnitKey
from mm2slo_store.store_schema import REVISION
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
from store_specs.stored_rows import stored_directories, stored_outcome

FIRST = Window(0, 100)
SECOND = Window(100, 200)


class PublicationContract:
    """Publishing replaces units as a whole."""

    def test_publish_stores_every_figure_of_an_outcome(self, back_end: BackEnd) -> None:
        lost = evidence(Verdict.LOST, 3, timestamp=1_700_000_000_000, key_hash=-(1 << 63))
        given = orders_outcome(FIRST, found=(lost,), oldest_open=60, order_judged=False)
        with back_end.open() as store:
            store.publish(run_of("r1", judged(given, "/runs/r1/orders")))
            (unit,) = store.units()
            back = stored_outcome(store, "r1", unit.unit)
        assert back.scope == replace(
            given.scope, identity=replace(given.scope.identity, ignored_headers=("span", "trace"))
        )
        assert back.counts == given.counts
        assert sorted(back.partitions, key=repr) == sorted(given.partitions, key=repr)
        assert sorted(back.evidence, key=repr) == sorted(given.evidence, key=repr)
        assert (back.affinity, back.replays) == (given.affinity, given.replays)
        assert (back.oldest_open, back.order_judged) == (60, False)
        assert unit.counts == {
            Verdict.MATCHED: 5_000_000_001,
            Verdict.LOST: 2,
            Verdict.EXTRA: 6,
        }
        assert (unit.source_bytes, unit.without_bracket) == ((1 << 40) + 9, 11)
        assert unit.end_to_end.cells == {(None, 40): 3, (0, 1): 7}
        assert (unit.end_to_end.negative, unit.end_to_end.total_upper_ms) == (4, 9_000)
        assert unit.key == UnitKey("eu", ORDERS, (AP_EU, US_EU))
        assert [(each.flow, each.source_topic) for each in unit.flows] == [
            (US_EU, "orders"),
            (AP_EU, "orders-ap"),
        ]
        assert unit.affinity == given.affinity
        assert unit.bounds[0].upper == 3e-4
        assert unit.not_audited is None

    def test_publish_stores_the_run(self, back_end: BackEnd) -> None:
        given = run_of("r1", judged(orders_outcome(FIRST)))
        with back_end.open() as store:
            store.publish(given)
            run = store.run("r1")
            with pytest.raises(UserError, match="has no run r2"):
                store.run("r2")
        assert run.header == replace(given.header, flows=(AP_EU, US_EU))
        assert (run.state, run.finished_at, run.exit_code) == (RunState.FINISHED, 1_500, 1)
        assert run.verdict_line == given.verdict_line
        assert (run.complete_up_to, run.superseded_units) == (100, 0)

    def test_a_topic_that_was_not_audited_comes_back_with_its_reason(
        self, back_end: BackEnd
    ) -> None:
        with back_end.open() as store:
            store.publish(run_of("r1", unjudged(FIRST)))
            (unit,) = store.units(judged=False)
            assert store.units(judged=True) == ()
        assert unit.not_audited is not None
        assert (unit.not_audited.reason.value, unit.not_audited.detail) == (
            "leased",
            "held by a run elsewhere",
        )
        assert [each.flow for each in unit.flows] == [AP_EU, US_EU]

    def test_a_window_published_again_has_the_same_rows_once(self, back_end: BackEnd) -> None:
        outcome = orders_outcome(FIRST, found=[evidence(Verdict.LOST, n) for n in (9, 2)])
        shuffled = replace(
            outcome,
            partitions=outcome.partitions[::-1],
            evidence=outcome.evidence[::-1],
            replays=outcome.replays[::-1],
            affinity=replace(outcome.affinity, cells=outcome.affinity.cells[::-1]),
        )
        with back_end.open() as store:
            store.publish(run_of("r1", judged(outcome), judged(orders_outcome(FIRST, topic="a"))))
            first = back_end.content()
            store.publish(run_of("r1", judged(orders_outcome(FIRST, topic="a")), judged(shuffled)))
            assert back_end.content() == first
            back_end.clock.now += 5
            again = run_of("r2", judged(shuffled), judged(orders_outcome(FIRST, topic="a")))
            store.publish(again)
        second = back_end.content()
        assert {name: len(rows) for name, rows in second.items()} == {
            "audit_runs": 1,
            "audit_units": 2,
            "audit_unit_flows": 4,
            "audit_partitions": 6,
            "audit_evidence": 6,
            "audit_replays": 4,
            "audit_directories": 0,
            "audit_completions": 4,
            "audit_leases": 0,
            "digests": 0,
            "exclusions": 0,
            "sli_counters": 0,
            "sli_indicators": 0,
            "sli_steps": 0,
            "mm2slo_schema_version": 1,
        }
        # Completion did not move, so it still names the run that moved it.
        del first["audit_completions"], second["audit_completions"]
        assert {k: [row.replace("'r1'", "'r2'") for row in v] for k, v in first.items()} == second

    def test_only_what_is_judged_again_is_replaced(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            store.publish(
                run_of(
                    "r1",
                    judged(orders_outcome(FIRST)),
                    judged(orders_outcome(FIRST, topic="kept")),
                    judged(orders_outcome(SECOND)),
                )
            )
            store.publish(run_of("r2", judged(orders_outcome(FIRST)), started_at=2_000))
            assert [(u.run_id, u.key.target_topic, u.window.start) for u in store.units()] == [
                ("r1", "kept", 0),
                ("r2", ORDERS, 0),
                ("r1", ORDERS, 100),
            ]
            assert [(run.header.id, run.superseded_units) for run in store.runs()] == [
                ("r2", 0),
                ("r1", 1),
            ]

    def test_publish_unjudged_unit_keeps_the_verdict(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            store.publish(run_of("r1", unjudged(FIRST)))
            store.publish(run_of("r2", judged(orders_outcome(FIRST))))
            store.publish(run_of("r3", unjudged(FIRST)))
            store.publish(run_of("r4", unjudged(FIRST)))
            assert {(unit.run_id, unit.not_audited is None) for unit in store.units()} == {
                ("r2", True),
                ("r4", False),
            }

    def test_publish_returns_unreferenced_directories(self, back_end: BackEnd) -> None:
        shared = "/runs/r1/polls"
        with back_end.open() as store:
            first = run_of(
                "r1",
                judged(orders_outcome(FIRST), "/runs/r1/a", shared),
                judged(orders_outcome(FIRST, topic="b"), "/runs/r1/b", shared),
            )
            assert store.publish(first).superseded == ()
            again = store.publish(run_of("r2", judged(orders_outcome(FIRST), "/runs/r2/a")))
            assert again.superseded == ("/runs/r1/a",)
            last = judged(orders_outcome(FIRST, topic="b"), "/runs/r1/b")
            assert store.publish(run_of("r3", last)).superseded == (shared,)
            assert [each.path for each in stored_directories(store)] == ["/runs/r2/a", "/runs/r1/b"]
            assert stored_directories(store, run_id="r2")[0].size == 1 << 33

    def test_publish_failing_midway_leaves_the_store_unchanged(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            store.publish(run_of("r1", judged(orders_outcome(FIRST), "/runs/r1")))
            before = back_end.content()
            # The last unit written is invalid.
            too_big = evidence(Verdict.LOST, 1 << 64)
            broken = orders_outcome(FIRST, topic="z", found=[too_big])
            with pytest.raises((UserError, OverflowError)):
                store.publish(run_of("r2", judged(orders_outcome(FIRST)), judged(broken)))
            assert back_end.content() == before

    def test_publish_two_units_of_one_topic_is_refused(self, back_end: BackEnd) -> None:
        with back_end.open() as store, pytest.raises(ValueError, match="r1 has two units"):
            store.publish(run_of("r1", judged(orders_outcome(FIRST)), unjudged(FIRST)))
        assert back_end.content()["audit_runs"] == []

    def test_announced_run_is_running_until_published_or_failed(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            store.acquire("eu", ORDERS, holder="r1", ttl_ms=100)
            store.announce(header("r1", FIRST))
            assert store.run("r1").state is RunState.RUNNING
            store.publish(run_of("r1", judged(orders_outcome(FIRST))))
            assert store.run("r1").state is RunState.FINISHED
            store.announce(header("r2", SECOND, 2_000))
            store.fail(header("r2", SECOND, 2_000), "us is unreachable")
            failed = store.run("r2")
            assert (failed.state, failed.verdict_line) == (RunState.FAILED, "us is unreachable")
            assert [run.header.id for run in store.runs(state=RunState.FINISHED)] == ["r1"]
            assert [run.header.id for run in store.runs(limit=1)] == ["r2"]

    def test_announce_marks_runs_without_lease_as_failed(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            store.acquire("eu", ORDERS, holder="alive", ttl_ms=100)
            store.announce(header("alive", FIRST))
            store.acquire("eu", "other", holder="dead", ttl_ms=50)
            store.announce(header("dead", FIRST))
            back_end.clock.now += 50
            store.announce(header("next", SECOND))
            assert {run.header.id: run.state.value for run in store.runs()} == {
                "alive": "running",
                "dead": "failed",
                "next": "running",
            }

    def test_publish_never_stores_the_hmac_key(self, back_end: BackEnd) -> None:
        outcome = orders_outcome(FIRST)
        identity = replace(outcome.scope.identity, hmac_key=b"hush-hush")
        keyed = replace(outcome, scope=replace(outcome.scope, identity=identity))
        with back_end.open() as store:
            store.publish(run_of("r1", judged(keyed)))
            (unit,) = store.units()
            assert unit.keyed
            assert stored_outcome(store, "r1", 0).scope.identity.hmac_key is None
        assert "hush" not in repr(back_end.content())

    def test_publish_stores_an_empty_outcome(self, back_end: BackEnd) -> None:
        empty = UnitOutcome(orders_outcome(FIRST).scope, ())
        with back_end.open() as store:
            store.publish(run_of("r1", judged(empty)))
            assert stored_outcome(store, "r1", 0).partitions == ()
            assert store.units()[0].counts == {}

    def test_open_newer_store_is_refused(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            store.publish(run_of("r1", judged(orders_outcome(FIRST))))
        with back_end.raw() as connection:
            connection.execute(text("UPDATE mm2slo_schema_version SET version_num = '9999'"))
        before = back_end.content()
        with (
            pytest.raises(
                UserError, match=rf"newer version of mm2slo \(schema 9999; .* {REVISION}\)"
            ),
            back_end.open(),
        ):
            pass
        assert back_end.content() == before
