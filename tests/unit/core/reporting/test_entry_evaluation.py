"""Evaluation of report entries: status, coverage, burning pairs, confirmation by audits."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minute_history import DAY, DAY_MS, Minutes, indicator, objective

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.error_budget import Reason, Status
from mm2slo_core.objectives.exclusion import Exclusion, Span
from mm2slo_core.objectives.objective import Objective, Severity
from mm2slo_core.reporting.entry_evaluation import (
    AuditedUnit,
    IndicatorData,
    burning_since,
    confirmation,
    evaluate_entries,
)
from mm2slo_core.reporting.report_entry import (
    Confirmation,
    Entry,
    PairReading,
    PairState,
    count_by_status,
    worst_first,
)
from mm2slo_core.reporting.report_query import ReportQuery, parse_period
from mm2slo_core.reporting.step_counts import MINUTE_MS, STEP_MS, StepCounts, count_span

NOW = round(datetime(2026, 7, 14, 10, 30, tzinfo=UTC).timestamp() * 1000)
START = NOW - 28 * DAY_MS
HOUR_MS = 3_600_000
JUNE = round(datetime(2026, 6, 1, tzinfo=UTC).timestamp() * 1000)


def query_of(objective: Objective, **named: object) -> ReportQuery:
    return replace(ReportQuery(objectives=(objective,), as_of=NOW, zone=UTC), **named)  # type: ignore[arg-type]  # whichever field


def entry(query: ReportQuery, minutes: Minutes, confirmed: Confirmation | None = None) -> Entry:
    (objective,) = query.objectives
    data = minutes.answer(query.spans(), confirmed)
    (found,) = evaluate_entries(query, {indicator(objective): data})
    return found


def entry_of_steps(query: ReportQuery, steps: list[StepCounts]) -> Entry:
    (objective,) = query.objectives
    data = IndicatorData(
        counts={span: count_span(steps, span) for span in query.spans()},
        known_since=steps[0].at,
        last_seen=steps[-1].end,
    )
    (found,) = evaluate_entries(query, {indicator(objective): data})
    return found


def test_entry_of_a_month_with_one_outage() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW)
    outage = NOW - 10 * DAY_MS
    minutes.steady(outage, outage + 200 * MINUTE_MS, good=0, bad=60)
    found = entry(query_of(objective()), minutes)
    total = 28 * 1440 * 60
    assert (found.counts.total, found.counts.bad) == (total, 12_000)
    assert found.ratio == pytest.approx(1 - 12_000 / total)
    # 1 % of 28 days are 403.2 minutes, of which 200 are spent.
    assert found.budget.total_minutes == pytest.approx(403.2)
    assert found.budget.remaining_minutes == pytest.approx(203.2)
    assert found.budget.remaining == pytest.approx(1 - 200 / 403.2)
    assert found.budget.remaining_events == pytest.approx(203.2 * 60)
    assert (found.status, found.reason) == (Status.MET, Reason.WITHIN_BUDGET)
    assert found.coverage.window == 1
    assert found.coverage.hour == 1
    assert set(found.burn_rates.values()) == {0.0}
    assert found.exhaustion_seconds is None
    assert found.before is None
    assert found.warnings == ()


def test_entry_during_an_outage_burns_with_exhaustion_time() -> None:
    minutes = Minutes()
    minutes.steady(START - 28 * DAY_MS, NOW)
    minutes.steady(NOW - HOUR_MS, NOW, good=0, bad=60)
    found = entry(query_of(objective()), minutes)
    assert found.burn_rates["5m"] == found.burn_rates["1h"] == pytest.approx(100)
    assert found.burn_rates["6h"] == pytest.approx(100 / 6)
    assert (found.status, found.reason, found.pair) == (Status.AT_RISK, Reason.BURNING, "fast")
    assert [each.state for each in found.pairs][:2] == [PairState.BURNING, PairState.BURNING]
    # 60 of 403.2 minutes are spent, and 343.2 last as long at total outage.
    assert found.exhaustion_seconds == pytest.approx(343.2 * 60)
    assert found.before is not None
    assert (found.before.ratio, found.before.remaining) == (1.0, 1.0)
    assert (found.before.coverage, found.before.has_low_coverage) == (1.0, False)


def test_comparison_has_the_coverage_of_the_period_before() -> None:
    minutes = Minutes()
    minutes.steady(START - 28 * DAY_MS, START - 21 * DAY_MS)
    minutes.steady(START, NOW)
    before = entry(query_of(objective()), minutes).before
    assert before is not None
    # Of its 28 days, 7 hold samples; all of them are good.
    assert (before.ratio, before.coverage, before.has_low_coverage) == (1.0, 0.25, True)


def test_comparison_with_a_period_in_which_the_flow_started_has_low_coverage() -> None:
    minutes = Minutes()
    minutes.steady(START - 7 * DAY_MS, NOW)
    before = entry(query_of(objective()), minutes).before
    assert before is not None
    assert (before.coverage, before.has_low_coverage) == (0.25, True)


def test_entry_with_overspent_budget_is_breached() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW)
    minutes.steady(START + DAY_MS, START + 2 * DAY_MS, good=0, bad=60)
    found = entry(query_of(objective()), minutes)
    assert found.budget.remaining == pytest.approx(1 - 1440 / 403.2)
    assert found.status is Status.BREACHED
    assert found.exhaustion_seconds == 0


def test_entry_excludes_maintenance_from_all_other_values() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW)
    start = NOW - 2 * DAY_MS
    minutes.steady(start, start + HOUR_MS, good=0, bad=60)
    planned = Exclusion(
        id="1",
        flows=("us->*",),
        # Not on whole minutes: extended to whole minutes.
        start=start + 1,
        end=start + HOUR_MS - 1,
        reason="upgrade",
        who="me",
        added_at=start,
    )
    found = entry(query_of(objective(), exclusions=(planned,)), minutes)
    assert found.counts.bad == 0
    assert (found.excluded.bad, found.excluded.minutes) == (3600, 60)
    assert found.coverage.window == 1
    assert found.coverage.expected_minutes == 28 * 1440 - 60
    assert found.burn_rates["3d"] == 0
    other = replace(planned, flows=("ap->*",))
    assert entry(query_of(objective(), exclusions=(other,)), minutes).counts.bad == 3600


@pytest.mark.parametrize(
    ("named", "warnings"),
    [
        ({}, ()),
        (
            {"added_at": NOW - HOUR_MS},
            (
                "maintenance m1 was added late: recording rules counted events that this report "
                "excludes",
            ),
        ),
        (
            {"removed_at": NOW, "removed_by": "me"},
            (
                "maintenance m1 was removed late: recording rules excluded events that this report "
                "counts",
            ),
        ),
        ({"added_at": NOW, "flows": ("ap->*",)}, ()),
        ({"added_at": NOW, "start": START - 2 * HOUR_MS, "end": START}, ()),
    ],
)
def test_entry_warns_about_maintenance_that_rules_count_differently(
    named: dict[str, object], warnings: tuple[str, ...]
) -> None:
    minutes = Minutes()
    minutes.steady(START, NOW)
    start, end = NOW - 2 * HOUR_MS, NOW - HOUR_MS
    planned = Exclusion(
        id="m1", flows=("us->*",), start=start, end=end, reason="-", who="me", added_at=start
    )
    query = query_of(objective(), exclusions=(replace(planned, **named),))  # type: ignore[arg-type]  # whichever field
    assert entry(query, minutes).warnings == warnings


def test_burn_rate_of_an_outage_beside_maintenance_is_at_most_that_of_an_outage() -> None:
    # Ten steps of five minutes end within the 48 minutes of the hour before maintenance.
    now = NOW + 2 * MINUTE_MS
    steps = [StepCounts(at, 0, 60, 0, STEP_MS, 5) for at in range(NOW - HOUR_MS, NOW, STEP_MS)]
    planned = Exclusion(
        id="1", flows=("*",), start=NOW - 2 * STEP_MS, end=now, reason="-", who="me", added_at=0
    )
    query = query_of(objective(), as_of=now, exclusions=(planned,))
    assert entry_of_steps(query, steps).burn_rates["1h"] == pytest.approx(100)


@pytest.mark.parametrize("phase", range(5))
@pytest.mark.parametrize("length", [60, 61, 64])
def test_steps_that_rules_leave_out_after_maintenance_are_neither_missing_nor_stale(
    phase: int, length: int
) -> None:
    tail = 7 * MINUTE_MS
    end = NOW + length * MINUTE_MS
    planned = Exclusion(id="1", flows=("*",), start=NOW, end=end, reason="-", who="me", added_at=0)
    steps = [
        StepCounts(at, 0, 60, 0, STEP_MS, 5)
        for at in range(NOW - 7 * DAY_MS + phase * MINUTE_MS, NOW + DAY_MS, STEP_MS)
        if not NOW < at + STEP_MS < end + tail
    ]
    for now in range(NOW, end + HOUR_MS, MINUTE_MS):
        query = query_of(
            objective(window=3 * DAY), as_of=now, exclusions=(planned,), maintenance_tail_ms=tail
        )
        found = entry_of_steps(query, [each for each in steps if each.end <= now])
        assert (found.stale_since, found.warnings) == (None, ()), now
        assert (found.coverage.window, found.coverage.hour or 1) == (1, 1), now
    # As in the rules, all events of the hour are bad, in all of the steps that were due.
    assert found.burn_rates["1h"] == pytest.approx(100)


def test_flow_without_samples_since_maintenance_is_stale_after_fifteen_minutes() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW)
    end = NOW + HOUR_MS
    planned = Exclusion(id="1", flows=("*",), start=NOW, end=end, reason="-", who="me", added_at=0)
    since = [
        entry(query_of(objective(), as_of=now, exclusions=(planned,)), minutes).stale_since
        for now in (end + 14 * MINUTE_MS, end + 15 * MINUTE_MS)
    ]
    assert since == [None, NOW]


def test_hour_of_maintenance_does_not_lower_coverage() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW)
    planned = Exclusion(
        id="1", flows=("*",), start=NOW - 2 * HOUR_MS, end=NOW, reason="-", who="me", added_at=0
    )
    found = entry(query_of(objective(), exclusions=(planned,)), minutes)
    assert (found.coverage.hour, found.status) == (None, Status.MET)


def test_gap_lowers_coverage_and_keeps_the_ratio() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW)
    for at in range(NOW - 30 * MINUTE_MS, NOW, MINUTE_MS):
        del minutes.counted[at]
    found = entry(query_of(objective()), minutes)
    assert found.coverage.hour == 0.5
    assert (found.status, found.reason) == (Status.MET, Reason.WITHIN_BUDGET)
    assert (found.is_current, found.stale_since) == (False, NOW - 30 * MINUTE_MS)
    assert found.ratio == 1
    assert found.coverage.minutes == 28 * 1440 - 30


def test_unknown_events_lower_only_coverage() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW)
    minutes.put(NOW - MINUTE_MS, good=0, unknown=3600)
    found = entry(query_of(objective()), minutes)
    assert found.ratio == 1
    assert found.coverage.hour == pytest.approx(59 / 119)


def test_entry_with_short_history_has_full_coverage_and_a_warning() -> None:
    minutes = Minutes()
    minutes.steady(NOW - 3 * DAY_MS, NOW)
    found = entry(query_of(objective()), minutes)
    assert (found.coverage.window, found.status) == (1, Status.MET)
    assert found.warnings == ("only 3 of 28 days of data",)


def test_outage_of_a_young_flow_costs_its_minutes_of_the_whole_window() -> None:
    minutes = Minutes()
    minutes.steady(NOW - 10 * MINUTE_MS, NOW)
    minutes.put(NOW - 5 * MINUTE_MS, good=0, bad=60)
    minutes.put(NOW - 4 * MINUTE_MS, good=30, bad=30)
    found = entry(query_of(objective(0.9)), minutes)
    assert found.budget.seconds == 28 * DAY
    assert (found.budget.total_minutes, found.budget.remaining_minutes) == pytest.approx(
        (4032, 4030.5)
    )
    assert found.budget.total_events == pytest.approx(4032 * 60)
    # 15 % of ten minutes are bad: plain in short windows, of the whole window in long ones.
    assert found.burn_rates["5m"] == pytest.approx(3.0)
    assert found.burn_rates["1h"] == pytest.approx(1.5 / 6)
    assert found.burn_rates["3d"] == pytest.approx(1.5 / 432)
    assert found.status is Status.MET
    month = entry(
        query_of(objective(0.9), window=parse_period("2026-07", NOW, UTC)), minutes
    ).budget
    assert (month.seconds, month.remaining_minutes) == pytest.approx((31 * DAY, 4464 - 1.5))


def in_june(day: int, minutes: Minutes, target: float = 0.999) -> Entry:
    """The entry of June at the end of *day*."""
    at = JUNE + day * DAY_MS
    window = parse_period("2026-06", at, UTC)
    return entry(query_of(objective(target), as_of=at, window=window), minutes)


@pytest.mark.parametrize("day", [3, 15])
def test_steady_burn_of_one_uses_the_month_up(day: int) -> None:
    minutes = Minutes()
    minutes.steady(JUNE, JUNE + day * DAY_MS, good=999, bad=1)
    found = in_june(day, minutes)
    assert found.budget.remaining == pytest.approx(1 - day / 30)
    assert found.projected_remaining == pytest.approx(0.0, abs=1e-9)
    assert found.exhaustion_seconds == pytest.approx((30 - day) * DAY)


def test_five_minutes_of_outage_in_a_month_leave_the_rest_of_its_budget() -> None:
    minutes = Minutes()
    minutes.steady(JUNE, JUNE + 3 * DAY_MS)
    minutes.steady(JUNE + DAY_MS, JUNE + DAY_MS + 5 * MINUTE_MS, good=0, bad=60)
    found = in_june(3, minutes).budget
    assert (found.total_minutes, found.remaining_minutes) == pytest.approx((43.2, 38.2))


def test_gap_costs_no_budget() -> None:
    minutes = Minutes()
    minutes.steady(JUNE, JUNE + 3 * DAY_MS)
    minutes.steady(JUNE + DAY_MS, JUNE + DAY_MS + 5 * MINUTE_MS, good=0, bad=60)
    for at in range(JUNE + 2 * DAY_MS, JUNE + 3 * DAY_MS - HOUR_MS, MINUTE_MS):
        del minutes.counted[at]
    found = in_june(3, minutes)
    assert found.budget.remaining_minutes == pytest.approx(38.2)
    assert found.coverage.window == pytest.approx(49 / 72)


def test_planned_maintenance_shortens_the_budget_also_ahead() -> None:
    minutes = Minutes()
    minutes.steady(JUNE, JUNE + 15 * DAY_MS, good=999, bad=1)
    planned = tuple(
        Exclusion(
            id=f"{day}", flows=("*",), start=JUNE + day * DAY_MS, end=JUNE + (day + 3) * DAY_MS,
            reason="-", who="me", added_at=0,
        )
        for day in (5, 20)
    )  # fmt: skip
    at = JUNE + 15 * DAY_MS
    query = query_of(
        objective(0.999), as_of=at, window=parse_period("2026-06", at, UTC), exclusions=planned
    )
    found = entry(query, minutes)
    # 12 of 24 days are over, at burn rate 1.
    assert found.budget.total_minutes == pytest.approx(24 * 1.44)
    assert found.budget.remaining == pytest.approx(0.5)
    assert found.projected_remaining == pytest.approx(0.0, abs=1e-9)


def test_coverage_with_ten_minutes_of_history_is_full() -> None:
    minutes = Minutes()
    minutes.steady(NOW - 10 * MINUTE_MS, NOW)
    assert entry(query_of(objective()), minutes).coverage.hour == 1


def test_period_before_the_first_sample_is_no_data() -> None:
    minutes = Minutes()
    minutes.steady(NOW - DAY_MS, NOW)
    found = entry(query_of(objective(), window=parse_period("2026-05", NOW, UTC)), minutes)
    assert found.status is Status.NO_DATA
    assert (found.ratio, found.budget.remaining) == (None, None)
    assert found.coverage.window == 0
    assert found.coverage.expected_minutes == 31 * 1440


def test_entry_without_samples_is_no_data() -> None:
    found = entry(query_of(objective()), Minutes())
    assert (found.status, found.reason) == (Status.NO_DATA, Reason.NO_SAMPLES)
    assert found.coverage.known_since is None


def test_entry_with_samples_and_without_events_is_idle() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW, good=0)
    found = entry(query_of(objective(key=SliKey(Sli.CHECKPOINT_FRESHNESS))), minutes)
    assert (found.status, found.reason, found.ratio) == (Status.IDLE, Reason.NO_EVENTS, None)


def test_breached_objective_stays_breached_without_recent_data() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW - 2 * HOUR_MS)
    minutes.steady(START + DAY_MS, START + 2 * DAY_MS, good=0, bad=60)
    found = entry(query_of(objective()), minutes)
    assert (found.status, found.reason) == (Status.BREACHED, Reason.EXHAUSTED)
    assert (found.is_current, found.stale_since) == (False, NOW - 2 * HOUR_MS)


def test_finished_month_is_judged_by_its_own_data() -> None:
    minutes = Minutes()
    minutes.steady(JUNE, JUNE + 29 * DAY_MS)
    found = entry(query_of(objective(), window=parse_period("2026-06", NOW, UTC)), minutes)
    assert (found.status, found.is_current, found.stale_since) == (Status.MET, True, None)
    assert found.coverage.window == pytest.approx(29 / 30)


def test_recent_samples_are_current_with_low_coverage() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW)
    for at in range(NOW - 30 * MINUTE_MS, NOW - 5 * MINUTE_MS, MINUTE_MS):
        del minutes.counted[at]
    found = entry(query_of(objective()), minutes)
    assert (found.is_current, found.warnings) == (
        True,
        ("coverage of the last hour is below 90 %",),
    )


def test_idle_flow_without_recent_samples_is_stale() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW - 40 * MINUTE_MS, good=0)
    found = entry(query_of(objective(key=SliKey(Sli.CHECKPOINT_FRESHNESS))), minutes)
    assert (found.status, found.stale_since) == (Status.IDLE, NOW - 40 * MINUTE_MS)


def test_entry_with_source_error_is_no_data_with_the_error() -> None:
    query = query_of(objective())
    data = IndicatorData(counts={}, known_since=None, problem="Prometheus is slow")
    (found,) = evaluate_entries(query, {indicator(objective()): data})
    assert (found.status, found.errors) == (Status.NO_DATA, ("Prometheus is slow",))
    assert (found.ratio, found.counts.total) == (None, 0)


def test_audit_faults_override_a_good_status() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW)
    fact = AuditedUnit(
        run_id="r1", complete_up_to=NOW, counts={Verdict.MATCHED: 998, Verdict.LOST: 2}
    )
    found = entry(query_of(objective()), minutes, confirmation([fact]))
    assert (found.status, found.reason) == (Status.AT_RISK, Reason.AUDIT_FAULTS)
    assert found.warnings == ("audited up to 2026-07-14 10:30 UTC: 2 lost of 1,000",)


def test_audit_faults_override_no_data() -> None:
    fact = AuditedUnit(run_id="r1", complete_up_to=NOW, counts={Verdict.LOST: 2})
    found = entry(query_of(objective()), Minutes(), confirmation([fact]))
    assert (found.status, found.reason) == (Status.AT_RISK, Reason.AUDIT_FAULTS)
    assert found.warnings == ("no samples", "audited up to 2026-07-14 10:30 UTC: 2 lost of 2")


def test_audit_faults_do_not_override_breached() -> None:
    minutes = Minutes()
    minutes.steady(START, NOW, good=50, bad=10)
    fact = AuditedUnit(run_id="r1", complete_up_to=NOW, counts={Verdict.LOST: 2})
    found = entry(query_of(objective()), minutes, confirmation([fact]))
    assert (found.status, found.reason) == (Status.BREACHED, Reason.EXHAUSTED)


def test_past_period_has_no_exhaustion_time() -> None:
    minutes = Minutes()
    start, end = JUNE, JUNE + 30 * DAY_MS
    minutes.steady(start, end)
    minutes.put(end - MINUTE_MS, good=30, bad=30)
    found = entry(query_of(objective(), window=parse_period("2026-06", NOW, UTC)), minutes)
    assert found.burn_rates["1h"] == pytest.approx(50 / 60)
    assert found.exhaustion_seconds is None
    minutes.steady(start, start + DAY_MS, good=0, bad=60)
    overspent = entry(query_of(objective(), window=parse_period("2026-06", NOW, UTC)), minutes)
    assert overspent.exhaustion_seconds == 0


def test_confirmation_combines_several_audits() -> None:
    facts = [
        AuditedUnit(
            run_id=name,
            topic=name,
            complete_up_to=up_to,
            counts={Verdict.MATCHED: count},
            loss_below=below,
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


def test_entries_are_sorted_worst_first() -> None:
    good, bad = Minutes(), Minutes()
    good.steady(START, NOW)
    bad.steady(START, NOW, good=50, bad=10)
    found = [
        entry(query_of(objective()), good),
        entry(query_of(objective()), Minutes()),
        entry(query_of(objective()), bad),
    ]
    assert [each.status for each in worst_first(found)] == [
        Status.BREACHED,
        Status.NO_DATA,
        Status.MET,
    ]
    assert count_by_status(found) == {
        Status.BREACHED: 1,
        Status.AT_RISK: 0,
        Status.NO_DATA: 1,
        Status.MET: 1,
        Status.IDLE: 0,
    }


TARGET = 0.99
MINUTES = 120
SPAN = Span(0, MINUTES * MINUTE_MS)


def pair(factor: float = 10.0, long: int = 20, short: int = 5) -> PairReading:
    """A pair that burns if more than a tenth of the events of both windows are bad."""
    return PairReading(
        name="fast",
        severity=Severity.PAGE,
        long_seconds=long * 60.0,
        short_seconds=short * 60.0,
        long=None,
        short=None,
        factor=factor,
        state=PairState.BURNING,
    )


def minutes(*bad: range) -> list[StepCounts]:
    """Minutes with ten events each, which are bad in *bad*."""
    return [
        StepCounts(at * MINUTE_MS, 0.0 if any(at in each for each in bad) else 10.0, 10.0, 0.0)
        for at in range(MINUTES)
    ]


@pytest.mark.parametrize(
    ("bad", "since"),
    [
        # More than a tenth of 20 minutes takes 3 bad ones; the short window has 3 of 5 then.
        ((range(100, 120),), 103),
        # Good minutes in between do not end it while both windows exceed.
        ((range(100, 104), range(107, 120)), 103),
        # Five good minutes end it, and it starts again.
        ((range(80, 90), range(100, 120)), 101),
        ((range(120),), None),
        # The time before the first complete long window is not evaluated.
        ((range(10, 120),), None),
    ],
)
def test_burning_since_is_the_start_of_uninterrupted_burning(
    bad: tuple[range, ...], since: int | None
) -> None:
    found = burning_since(pair(), TARGET, minutes(*bad), SPAN)
    assert found == (None if since is None else since * MINUTE_MS)


def test_burning_since_ignores_minutes_without_sample() -> None:
    some = [each for each in minutes(range(100, 120)) if each.at // MINUTE_MS % 2]
    # 101, 103, 105: three of ten are bad, in half of the window.
    assert burning_since(pair(), TARGET, some, SPAN) == 106 * MINUTE_MS
    assert burning_since(pair(), TARGET, [], SPAN) == SPAN.end


@given(
    st.lists(st.booleans(), min_size=MINUTES, max_size=MINUTES),
    st.sampled_from([2.0, 10.0, 40.0]),
    st.tuples(st.integers(0, MINUTES - 1), st.integers(1, MINUTES)),
)
def test_burning_since_equals_evaluation_of_each_minute(
    lost: list[bool], factor: float, maintenance: tuple[int, int]
) -> None:
    first, length = maintenance
    planned = range(first, min(first + length, MINUTES))
    counted = [
        StepCounts(at * MINUTE_MS, 0.0 if bad else 10.0, 10.0, 0.0)
        for at, bad in enumerate(lost)
        if at not in planned
    ]

    def share(end: int, length: int) -> float:
        within = [lost[at] for at in range(end - length, end) if at not in planned]
        return sum(within) / len(within) if within else 0.0

    def burns(end: int) -> bool:
        return all(share(end, length) / (1 - TARGET) > factor + 1e-9 for length in (20, 5))

    expected = None
    for end in range(MINUTES, 19, -1):
        if not burns(end):
            expected = min(end + 1, MINUTES) * MINUTE_MS
            break
    left_out = [Span(planned.start * MINUTE_MS, planned.stop * MINUTE_MS)]
    found = burning_since(pair(factor), TARGET, counted, SPAN, left_out)
    assert found == expected


def at(clock: str) -> int:
    hour, minute = map(int, clock.split(":"))
    return int(datetime(2026, 7, 14, hour, minute, tzinfo=UTC).timestamp() * 1000)


MORNING = AuditedUnit(
    run_id="a",
    started_at=at("10:45"),
    window=Window(at("09:45"), at("10:45")),
    complete_up_to=at("10:45"),
    counts={Verdict.MATCHED: 1_000},
)
STOPPED = AuditedUnit(
    run_id="b",
    started_at=at("11:45"),
    window=Window(at("10:45"), at("11:45")),
    complete_up_to=at("11:26"),
    counts={Verdict.MATCHED: 900, Verdict.OVERDUE: 28, Verdict.PENDING: 5},
    oldest_open=at("11:26"),
    overdue_since=at("11:31"),
)
ARRIVED = AuditedUnit(
    run_id="c",
    started_at=at("12:00"),
    window=Window(at("11:26"), at("12:00")),
    complete_up_to=at("12:00"),
    counts={Verdict.MATCHED: 500, Verdict.LATE: 28},
)


def test_overdue_records_count_from_their_due_time() -> None:
    found = confirmation([MORNING, STOPPED])
    assert found is not None
    assert found.faults == {"overdue": 28}
    assert found.audited_up_to == at("11:26")
    assert found.sentence == (
        "audited up to 2026-07-14 11:26 UTC: 28 overdue since 2026-07-14 11:31 UTC of 1,928"
    )
    # A period that ended before they were due has no fault.
    before = confirmation([MORNING, STOPPED], until=at("11:31"))
    assert before is not None
    assert (before.faults, before.records) == ({}, 1_900)


def test_later_audit_that_finds_overdue_records_clears_the_finding() -> None:
    found = confirmation([ARRIVED, MORNING, STOPPED])
    assert found is not None
    assert found.faults == {}
    assert found.sentence == "audited up to 2026-07-14 12:00 UTC: 0 lost of 2,428"


@pytest.mark.parametrize(
    "later",
    [
        {"window": Window(at("11:27"), at("12:00"))},  # leaves out the oldest one
        {"window": Window(at("11:26"), at("11:40"))},
        {"sample": Sample(0.01)},
        {"topic": "other"},
        {"started_at": at("11:40")},
    ],
)
def test_audit_that_did_not_judge_all_overdue_records_again_clears_nothing(
    later: dict[str, object],
) -> None:
    values = {name: getattr(ARRIVED, name) for name in ARRIVED.__slots__} | later
    found = confirmation([STOPPED, AuditedUnit(**values)])
    assert found is not None
    assert found.faults == {"overdue": 28}
    assert found.audited_up_to == at("11:26")


def test_lost_records_count_until_their_whole_window_is_audited_again() -> None:
    values = {name: getattr(STOPPED, name) for name in STOPPED.__slots__}
    values["counts"] = {Verdict.LOST: 2, Verdict.OVERDUE: 28}
    lossy = AuditedUnit(**values)
    found = confirmation([lossy, ARRIVED])
    assert found is not None
    assert found.faults == {"lost": 2}
    whole = {name: getattr(ARRIVED, name) for name in ARRIVED.__slots__}
    again = AuditedUnit(**(whole | {"window": Window(at("10:45"), at("12:00"))}))
    found = confirmation([lossy, again])
    assert found is not None
    assert (found.faults, found.records) == ({}, 528)
