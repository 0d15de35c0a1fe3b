"""Entries from counts: by hand, and against counting one minute after the other."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from reported import DAY, DAY_MS, Minutes, indicator, objective

from mm2slo_core.audit.verdict import Verdict
from mm2slo_core.objectives.exclusion import Exclusion
from mm2slo_core.objectives.status import Reason, Status
from mm2slo_core.reporting.confirmation import AuditFact, confirmation
from mm2slo_core.reporting.entry import Confirmation, Entry, PairState
from mm2slo_core.reporting.evaluate import Answer, entries
from mm2slo_core.reporting.history import MINUTE_MS
from mm2slo_core.reporting.order import by_status, worst_first
from mm2slo_core.reporting.periods import period
from mm2slo_core.reporting.question import Question
from mm2slo_core.sli import Sli, SliKey

if TYPE_CHECKING:
    from mm2slo_core.objectives import Objective

NOW = round(datetime(2026, 7, 14, 10, 30, tzinfo=UTC).timestamp() * 1000)
START = NOW - 28 * DAY_MS
HOUR_MS = 3_600_000
JULY = datetime(2026, 7, 1, tzinfo=UTC).timestamp()


def asked(promised: Objective, **named: object) -> Question:
    return replace(Question(objectives=(promised,), as_of=NOW, zone=UTC), **named)  # type: ignore[arg-type]  # whichever field


def entry(question: Question, minutes: Minutes, confirmed: Confirmation | None = None) -> Entry:
    (promised,) = question.objectives
    answer = minutes.answer(question.spans(), confirmed)
    (found,) = entries(question, {indicator(promised): answer})
    return found


def test_a_good_month_with_one_outage() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW)
    outage = NOW - 10 * DAY_MS
    minutes.steady(outage, outage + 200 * MINUTE_MS, good=0, bad=60)
    found = entry(asked(objective()), minutes)
    total = 28 * 1440 * 60
    assert (found.counts.total, found.counts.bad) == (total, 12_000)
    assert found.ratio == pytest.approx(1 - 12_000 / total)
    # 1 % of 28 days are 403.2 minutes, of which 200 are spent.
    assert found.budget.total_minutes == pytest.approx(403.2)
    assert found.budget.remaining_minutes == pytest.approx(203.2)
    assert found.budget.remaining == pytest.approx(1 - 200 / 403.2)
    assert found.budget.remaining_events == pytest.approx(203.2 * 60)
    assert (found.status, found.reason) == (Status.OK, Reason.WITHIN_BUDGET)
    assert found.met is True
    assert found.coverage.window == 1
    assert found.coverage.hour == 1
    assert set(found.burn_rates.values()) == {0.0}
    assert found.exhaustion_seconds is None
    assert found.before is None
    assert found.warnings == ()


def test_an_outage_that_runs_burns_and_tells_when_all_is_spent() -> None:
    minutes = Minutes()
    minutes.steady(START - 28 * DAY_MS, NOW)
    minutes.steady(NOW - HOUR_MS, NOW, good=0, bad=60)
    found = entry(asked(objective()), minutes)
    assert found.burn_rates["5m"] == found.burn_rates["1h"] == pytest.approx(100)
    assert found.burn_rates["6h"] == pytest.approx(100 / 6)
    assert (found.status, found.reason, found.pair) == (Status.WARNING, Reason.BURNING, "fast")
    assert [each.state for each in found.pairs][:2] == [PairState.BURNING, PairState.BURNING]
    # 60 of 403.2 minutes are spent, and 343.2 last as long at total outage.
    assert found.exhaustion_seconds == pytest.approx(343.2 * 60)
    assert found.before is not None
    assert (found.before.ratio, found.before.remaining) == (1.0, 1.0)
    assert (found.before.coverage, found.before.badly_known) == (1.0, False)


def test_a_comparison_says_how_much_of_the_period_before_is_known() -> None:
    minutes = Minutes()
    minutes.steady(START - 28 * DAY_MS, START - 21 * DAY_MS)
    minutes.steady(START, NOW)
    before = entry(asked(objective()), minutes).before
    assert before is not None
    # Of its 28 days, 7 hold samples; all of them are good.
    assert (before.ratio, before.coverage, before.badly_known) == (1.0, 0.25, True)


def test_an_overspent_budget_is_unclamped_and_breached() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW)
    minutes.steady(START + DAY_MS, START + 2 * DAY_MS, good=0, bad=60)
    found = entry(asked(objective()), minutes)
    assert found.budget.remaining == pytest.approx(1 - 1440 / 403.2)
    assert (found.status, found.met) == (Status.BREACHED, False)
    assert found.exhaustion_seconds == 0


def test_maintenance_is_counted_apart_and_in_nothing_else() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW)
    start = NOW - 2 * DAY_MS
    minutes.steady(start, start + HOUR_MS, good=0, bad=60)
    planned = Exclusion(
        id="1",
        flows=("us->*",),
        # Not on whole minutes: what it touches is left out.
        start=start + 1,
        end=start + HOUR_MS - 1,
        reason="upgrade",
        who="me",
        added_at=start,
    )
    found = entry(asked(objective(), exclusions=(planned,)), minutes)
    assert found.counts.bad == 0
    assert (found.excluded.bad, found.excluded.minutes) == (3600, 60)
    assert found.coverage.window == 1
    assert found.coverage.expected_minutes == 28 * 1440 - 60
    assert found.burn_rates["3d"] == 0
    other = replace(planned, flows=("ap->*",))
    assert entry(asked(objective(), exclusions=(other,)), minutes).counts.bad == 3600


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ({}, ()),
        (
            {"added_at": NOW - HOUR_MS},
            ("maintenance m1 was added late: rules had counted events that are left out here",),
        ),
        (
            {"removed_at": NOW, "removed_by": "me"},
            ("maintenance m1 was taken back: rules had left out events that are counted here",),
        ),
        ({"added_at": NOW, "flows": ("ap->*",)}, ()),
        ({"added_at": NOW, "start": START - 2 * HOUR_MS, "end": START}, ()),
    ],
)
def test_maintenance_that_rules_see_in_another_way_is_told(
    named: dict[str, object], told: tuple[str, ...]
) -> None:
    minutes = Minutes()
    minutes.steady(START, NOW)
    start, end = NOW - 2 * HOUR_MS, NOW - HOUR_MS
    planned = Exclusion(
        id="m1", flows=("us->*",), start=start, end=end, reason="-", who="me", added_at=start
    )
    question = asked(objective(), exclusions=(replace(planned, **named),))  # type: ignore[arg-type]  # whichever field
    assert entry(question, minutes).warnings == told


def test_an_hour_of_maintenance_is_no_missing_hour() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW)
    planned = Exclusion(
        id="1", flows=("*",), start=NOW - 2 * HOUR_MS, end=NOW, reason="-", who="me", added_at=0
    )
    found = entry(asked(objective(), exclusions=(planned,)), minutes)
    assert (found.coverage.hour, found.status) == (None, Status.OK)


def test_a_gap_lowers_coverage_and_is_no_zero() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW)
    for at in range(NOW - 30 * MINUTE_MS, NOW, MINUTE_MS):
        del minutes.counted[at]
    found = entry(asked(objective()), minutes)
    assert found.coverage.hour == 0.5
    assert (found.status, found.reason) == (Status.NO_DATA, Reason.LOW_COVERAGE)
    assert found.ratio == 1
    assert found.coverage.minutes == 28 * 1440 - 30


def test_edges_that_are_known_by_the_hour_alone_are_told() -> None:
    question = asked(objective())
    minutes = Minutes()
    minutes.steady(START, NOW)
    answer = minutes.answer(question.spans())
    whole = question.wholes_of(objective())["window"]
    coarse = {**answer.counts, whole: replace(answer.counts[whole], coarse=True)}
    (found,) = entries(question, {indicator(objective()): replace(answer, counts=coarse)})
    (told,) = found.warnings
    assert told.startswith("kept by the hour: ")


def test_unknown_events_lower_coverage_alone() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW)
    minutes.put(NOW - MINUTE_MS, good=0, unknown=3600)
    found = entry(asked(objective()), minutes)
    assert found.ratio == 1
    assert found.coverage.hour == pytest.approx(59 / 119)


def test_a_young_objective_misses_nothing_and_says_so() -> None:
    minutes = Minutes()
    minutes.steady(NOW - 3 * DAY_MS, NOW)
    found = entry(asked(objective()), minutes)
    assert (found.coverage.window, found.status) == (1, Status.OK)
    assert found.warnings == ("young: known for 3d of 28d",)


def test_a_young_budget_is_worth_the_minutes_that_are_known() -> None:
    minutes = Minutes()
    minutes.steady(NOW - 10 * MINUTE_MS, NOW)
    minutes.put(NOW - 5 * MINUTE_MS, good=0, bad=60)
    minutes.put(NOW - 4 * MINUTE_MS, good=30, bad=30)
    found = entry(asked(objective(0.9)), minutes).budget
    # A minute and a half of ten is out, and one may be.
    assert found.seconds == 600
    assert (found.total_minutes, found.remaining_minutes) == pytest.approx((1, -0.5))
    month = entry(asked(objective(0.9), window=period("2026-07", NOW, UTC)), minutes).budget
    assert month.seconds == 31 * DAY - (NOW / 1000 - 600 - JULY)
    older = Minutes()
    older.steady(START, NOW)
    assert entry(asked(objective()), older).budget.seconds == 28 * DAY


def test_coverage_of_a_life_of_ten_minutes_is_of_ten_minutes() -> None:
    minutes = Minutes()
    minutes.steady(NOW - 10 * MINUTE_MS, NOW)
    assert entry(asked(objective()), minutes).coverage.hour == 1


def test_a_period_before_the_first_datum_has_no_figures() -> None:
    minutes = Minutes()
    minutes.steady(NOW - DAY_MS, NOW)
    found = entry(asked(objective(), window=period("2026-05", NOW, UTC)), minutes)
    assert found.status is Status.NO_DATA
    assert (found.ratio, found.budget.remaining, found.met) == (None, None, None)
    assert found.coverage.window == 0
    assert found.coverage.expected_minutes == 31 * 1440


def test_nothing_ever_counted_is_no_data() -> None:
    found = entry(asked(objective()), Minutes())
    assert (found.status, found.reason) == (Status.NO_DATA, Reason.NOTHING_MEASURED)
    assert found.coverage.known_since is None


def test_what_is_watched_and_counts_nothing_is_idle() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW, good=0)
    found = entry(asked(objective(key=SliKey(Sli.CHECKPOINT_FRESHNESS))), minutes)
    assert (found.status, found.reason, found.ratio) == (Status.IDLE, Reason.NO_EVENTS, None)


def test_what_counts_nothing_and_is_hardly_watched_is_no_data() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW - 40 * MINUTE_MS, good=0)
    found = entry(asked(objective(key=SliKey(Sli.CHECKPOINT_FRESHNESS))), minutes)
    assert found.coverage.hour == pytest.approx(1 / 3)
    assert (found.status, found.reason) == (Status.NO_DATA, Reason.LOW_COVERAGE)


def test_a_problem_of_the_source_gives_no_figures_and_is_told() -> None:
    question = asked(objective())
    answer = Answer(counts={}, known_since=None, problem="Prometheus is slow")
    (found,) = entries(question, {indicator(objective()): answer})
    assert (found.status, found.errors) == (Status.NO_DATA, ("Prometheus is slow",))
    assert (found.ratio, found.counts.total) == (None, 0)


def test_a_running_month_projects_its_end() -> None:
    minutes = Minutes()
    start = NOW - 20 * DAY_MS
    minutes.steady(start, NOW)
    minutes.steady(NOW - HOUR_MS, NOW, good=30, bad=30)
    found = entry(asked(objective(), window=period("2026-07", NOW, UTC)), minutes)
    elapsed = (13 * 24 + 10.5) * 60
    spent = 30 / (0.01 * elapsed)
    assert found.budget.remaining == pytest.approx(1 - spent)
    left = 31 * DAY - elapsed * 60
    assert found.projected_remaining == pytest.approx(1 - spent - 50 * left / (31 * DAY))


def test_faults_of_an_audit_outrank_canaries_that_saw_none() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW)
    fact = AuditFact(
        run_id="r1", complete_up_to=NOW, counts={Verdict.MATCHED: 998, Verdict.LOST: 2}
    )
    found = entry(asked(objective()), minutes, confirmation([fact]))
    assert (found.status, found.reason) == (Status.WARNING, Reason.AUDIT_FOUND)
    assert found.warnings == ("audited up to 2026-07-14 10:30 UTC: 2 lost of 1,000",)


@pytest.mark.parametrize(
    ("known", "why"),
    [(HOUR_MS // 2, "too little of the last hour is known"), (0, "nothing was measured")],
)
def test_faults_of_an_audit_are_told_where_canaries_know_nothing(known: int, why: str) -> None:
    minutes = Minutes()
    if known:
        minutes.steady(START, NOW - known)
    fact = AuditFact(run_id="r1", complete_up_to=NOW, counts={Verdict.LOST: 2})
    found = entry(asked(objective()), minutes, confirmation([fact]))
    assert (found.status, found.reason) == (Status.WARNING, Reason.AUDIT_FOUND)
    assert found.warnings == (why, "audited up to 2026-07-14 10:30 UTC: 2 lost of 2")


def test_a_breach_stays_one_whatever_an_audit_finds() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW, good=50, bad=10)
    fact = AuditFact(run_id="r1", complete_up_to=NOW, counts={Verdict.LOST: 2})
    found = entry(asked(objective()), minutes, confirmation([fact]))
    assert (found.status, found.reason) == (Status.BREACHED, Reason.USED_UP)


def test_a_period_that_is_over_runs_out_of_nothing() -> None:
    minutes = Minutes()
    start = round(datetime(2026, 6, 1, tzinfo=UTC).timestamp() * 1000)
    end = start + 30 * DAY_MS
    minutes.steady(start, end)
    minutes.put(end - MINUTE_MS, good=30, bad=30)
    found = entry(asked(objective(), window=period("2026-06", NOW, UTC)), minutes)
    assert found.burn_rates["1h"] == pytest.approx(50 / 60)
    assert found.exhaustion_seconds is None
    minutes.steady(start, start + DAY_MS, good=0, bad=60)
    overspent = entry(asked(objective(), window=period("2026-06", NOW, UTC)), minutes)
    assert overspent.exhaustion_seconds == 0


def test_a_young_budget_runs_out_at_the_pace_of_the_whole_window() -> None:
    minutes = Minutes()
    minutes.steady(NOW - HOUR_MS, NOW)
    minutes.put(NOW - MINUTE_MS, good=42, bad=18)
    found = entry(asked(objective()), minutes)
    # Half of what an hour allows is spent in an hour: half of it lasts as long as the window.
    assert found.burn_rates["1h"] == pytest.approx(0.5)
    assert found.exhaustion_seconds == pytest.approx(28 * DAY)


def test_several_audits_say_what_holds_for_all() -> None:
    facts = [
        AuditFact(
            run_id=name, complete_up_to=up_to, counts={Verdict.MATCHED: count}, loss_below=below
        )
        for name, up_to, count, below in (("a", NOW, 1000, 0.003), ("b", NOW - HOUR_MS, 500, 0.006))
    ]
    found = confirmation(facts)
    assert found is not None
    assert found.audited_up_to == NOW - HOUR_MS
    assert (found.records, found.loss_below, dict(found.faults)) == (1500, 0.006, {})
    assert found.sentence == (
        "audited up to 2026-07-14 09:30 UTC: 0 lost of 1,500, loss below 0.6 % with 95 % confidence"
    )
    assert confirmation([]) is None


def test_the_worst_come_first() -> None:
    good, bad = Minutes(), Minutes()
    good.steady(START, NOW)
    bad.steady(START, NOW, good=50, bad=10)
    found = [
        entry(asked(objective()), good),
        entry(asked(objective()), Minutes()),
        entry(asked(objective()), bad),
    ]
    assert [each.status for each in worst_first(found)] == [
        Status.BREACHED,
        Status.NO_DATA,
        Status.OK,
    ]
    assert by_status(found) == {
        Status.BREACHED: 1,
        Status.WARNING: 0,
        Status.NO_DATA: 1,
        Status.OK: 1,
        Status.IDLE: 0,
    }
