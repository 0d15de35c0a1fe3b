"""Reports from an SLI source, stored facts and objectives."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from minute_history import AVAILABILITY, DAY, DAY_MS, FLOW, Minutes, objective
from report_service_fixture import (
    AS_OF,
    LATENCY,
    NOW,
    OUTAGE,
    REVERSE_FLOW,
    MemorySource,
    Sums,
    sample_source,
    three_objectives,
)
from store_specs.sample_results import AP_EU, US_EU, header, judged, orders_outcome, run_of

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.unit_outcome import PartitionOutcome, Verdict
from mm2slo_core.objectives.error_budget import Reason, Status
from mm2slo_core.objectives.exclusion import Exclusion, Span
from mm2slo_core.objectives.objective import Objective
from mm2slo_core.reporting.entry_evaluation import AuditedUnit
from mm2slo_core.reporting.step_counts import MINUTE_MS, Indicator
from mm2slo_core.topology import Flow
from mm2slo_report.reporter import (
    FactSource,
    FlowWindow,
    Reporter,
    StoreFacts,
    UnknownObjectiveError,
)
from mm2slo_report.sli_source import SliSourceError
from mm2slo_store.store import Store


@dataclass
class MemoryFacts:
    """Planned maintenance and audit facts in memory; records the requested windows."""

    planned: list[Exclusion] = field(default_factory=list)
    facts: dict[Flow, list[AuditedUnit]] = field(default_factory=dict)
    windows: list[set[FlowWindow]] = field(default_factory=list)

    def exclusions(self, span: Span) -> Sequence[Exclusion]:
        return [each for each in self.planned if Span(each.start, each.end).overlaps(span)]

    def audit_facts(
        self, windows: Collection[FlowWindow]
    ) -> Mapping[FlowWindow, Sequence[AuditedUnit]]:
        self.windows.append(set(windows))
        return {each: self.facts.get(each[0], []) for each in windows}


def reporter(
    source: MemorySource | None = None,
    facts: FactSource | None = None,
    objectives: Sequence[Objective] | None = None,
) -> Reporter:
    return Reporter(
        objectives=three_objectives() if objectives is None else objectives,
        source=sample_source() if source is None else source,
        facts=MemoryFacts() if facts is None else facts,
        zone=ZoneInfo("Europe/Berlin"),
        clock=lambda: NOW,
    )


def maintenance(start: int, end: int, flows: str = "us->eu") -> Exclusion:
    return Exclusion(
        id="x", flows=(flows,), start=start, end=end, reason="r", who="w", added_at=start
    )


def test_report_is_as_of_whole_minute_and_sorted_worst_first() -> None:
    found = reporter().report()
    assert (found.as_of, found.source, found.zone) == (AS_OF, "recorder", "Europe/Berlin")
    assert [each.status for each in found.entries] == [Status.BREACHED, Status.NO_DATA, Status.MET]


def test_report_of_all_objectives_queries_source_and_facts_once() -> None:
    source, facts = sample_source(), MemoryFacts()
    reporter(source, facts).report()
    assert source.count_calls == 1
    span = Span(AS_OF - 3 * DAY_MS, AS_OF)
    assert facts.windows == [{(FLOW, span), (REVERSE_FLOW, span)}]


def test_entry_has_the_same_audit_alone_and_beside_an_objective_with_a_longer_window(
    tmp_path: Path,
) -> None:
    day, two_days = objective(window=DAY), objective(key=LATENCY, window=2 * DAY)
    yesterday = Window(AS_OF - 2 * DAY_MS, AS_OF - DAY_MS)
    with Store.open(tmp_path / "r.db", clock=lambda: NOW) as store:
        store.publish(run_of("run", judged(orders_outcome(yesterday)), started_at=AS_OF))
        found = reporter(facts=StoreFacts(store), objectives=(day, two_days))
        (alone,), both = found.report((day,)).entries, found.report().entries
    by_id = {each.id: each for each in both}
    assert by_id[alone.id] == alone
    assert alone.confirmation is None
    audited = by_id["us-to-eu-latency-10s"].confirmation
    assert audited is not None
    assert audited.faults == {"lost": 2}


def test_report_contains_only_chosen_objectives() -> None:
    found = reporter()
    (chosen,) = found.report((found.objective("us-to-eu-latency-10s"),)).entries
    assert chosen.id == "us-to-eu-latency-10s"
    assert found.report(()).entries == ()


def test_report_of_past_instant_has_counts_of_that_instant() -> None:
    before, after = (
        reporter().report(at=at, over="1d").entries for at in (OUTAGE, OUTAGE + 6 * MINUTE_MS)
    )
    assert {each.id: each.counts.bad for each in before}["us-to-eu-availability"] == 0
    assert {each.id: each.counts.bad for each in after}["us-to-eu-availability"] == 360


def test_maintenance_is_excluded_from_report_incidents_and_history() -> None:
    # It covers the first steps that it overlaps.
    facts = MemoryFacts([maintenance(OUTAGE, OUTAGE + 3 * MINUTE_MS)])
    found = reporter(facts=facts)
    detail = found.detail("us-to-eu-availability")
    assert (detail.entry.counts.bad, detail.entry.excluded.bad) == (60, 300)
    assert [(each.start, each.bad) for each in detail.incidents] == [(OUTAGE + 5 * MINUTE_MS, 60)]
    assert sum(each.bad for each in detail.days) == 60
    history = found.history("us-to-eu-availability")
    assert sum(each.counts.bad for each in history.steps) == 60
    # Maintenance of the other flow does not apply here.
    facts.planned[:] = [maintenance(OUTAGE, OUTAGE + 3 * MINUTE_MS, "eu->us")]
    assert found.detail("us-to-eu-availability").entry.counts.bad == 360


def test_coverage_does_not_expect_steps_that_the_source_leaves_out_after_maintenance() -> None:
    minutes = Minutes()
    minutes.steady(AS_OF - DAY_MS, AS_OF - 60 * MINUTE_MS)
    facts = MemoryFacts([maintenance(AS_OF - 60 * MINUTE_MS, AS_OF - 6 * MINUTE_MS)])
    hours = []
    for tail in (0, 7 * MINUTE_MS):
        source = MemorySource({Indicator(FLOW, AVAILABILITY): Sums(minutes)})
        source.maintenance_tail_ms = tail
        (entry,) = reporter(source, facts, [objective()]).report().entries
        hours.append(entry.coverage.hour)
    assert hours == [0, None]


def test_burn_right_after_maintenance_started_when_it_ended() -> None:
    minutes, end = Minutes(), AS_OF - 10 * MINUTE_MS
    minutes.steady(AS_OF - DAY_MS, end)
    minutes.steady(end, AS_OF, good=0, bad=60)
    facts = MemoryFacts([maintenance(AS_OF - 300 * MINUTE_MS, end)])
    source = MemorySource({Indicator(FLOW, AVAILABILITY): Sums(minutes)})
    (entry,) = reporter(source, facts, [objective(0.9, window=3 * DAY)]).report().entries
    # Ten minutes of an hour would exceed the threshold only after nine of them.
    assert entry.pairs[0].long == pytest.approx(10)
    assert entry.pairs[0].since == end + MINUTE_MS


def test_days_and_incidents_sum_up_to_the_entry() -> None:
    detail = reporter().detail("us-to-eu-availability", over="28d")
    assert sum(each.bad for each in detail.days) == detail.entry.counts.bad == 360
    assert sum(each.bad for each in detail.incidents) == 360
    (incident,) = detail.incidents
    assert incident.consumed == pytest.approx(detail.entry.budget.consumed)


def test_audit_faults_without_bad_canaries_set_warning() -> None:
    fact = AuditedUnit(
        run_id="r", complete_up_to=AS_OF, counts={Verdict.MATCHED: 9, Verdict.LOST: 1}
    )
    found = reporter(facts=MemoryFacts(facts={FLOW: [fact]})).report()
    by_id = {each.id: each for each in found.entries}
    latency = by_id["us-to-eu-latency-10s"]
    assert (latency.status, latency.reason) == (Status.AT_RISK, Reason.AUDIT_FAULTS)
    assert by_id["us-to-eu-availability"].status is Status.BREACHED
    assert by_id["eu-to-us-availability"].confirmation is None


def test_error_of_one_indicator_appears_only_in_its_entry() -> None:
    source = sample_source()
    source.problems[Indicator(FLOW, AVAILABILITY)] = SliSourceError("no answer")
    by_id = {each.id: each for each in reporter(source).report().entries}
    assert by_id["us-to-eu-availability"].errors == ("no answer",)
    assert by_id["us-to-eu-availability"].ratio is None
    assert by_id["us-to-eu-latency-10s"].ratio == 1.0


def test_report_with_failing_source_raises() -> None:
    source = sample_source()
    source.down = SliSourceError("down", slow=True)
    with pytest.raises(SliSourceError, match="down"):
        reporter(source).report()


def test_unknown_objective_id_suggests_similar_ids() -> None:
    with pytest.raises(
        UnknownObjectiveError, match="did you mean 'us-to-eu-latency-10s'"
    ) as unknown:
        reporter().objective("us-to-eu-latency-1s")
    assert unknown.value.near[0] == "us-to-eu-latency-10s"
    with pytest.raises(UnknownObjectiveError, match="see /slo") as unknown:
        reporter().objective("zzz")
    assert unknown.value.near == ()


def test_invalid_period_or_step_raises_value_error() -> None:
    with pytest.raises(ValueError, match="expected 28d"):
        reporter().report(over="July")
    with pytest.raises(ValueError, match="expected a multiple of five minutes"):
        reporter().history("us-to-eu-availability", length=MINUTE_MS)


def test_store_facts_returns_units_of_each_flow_and_window(tmp_path: Path) -> None:
    with Store.open(tmp_path / "r.db", clock=lambda: NOW) as store:
        for start in (0, 1_000, 2_000):
            window = Window(start, start + 1_000)
            run = run_of(f"run-{start}", judged(orders_outcome(window)), started_at=start)
            store.publish(run)
        store.announce(header("later", Window(0, 10)))
        facts = StoreFacts(store)
        early, late = Span(500, 2_000), Span(2_999, 9_000)
        found = facts.audit_facts(
            [(US_EU, early), (US_EU, late), (AP_EU, late), (REVERSE_FLOW, late)]
        )
        runs = {each: [unit.run_id for unit in units] for each, units in found.items()}
        assert runs[US_EU, early] == ["run-0", "run-1000"]
        assert runs[US_EU, late] == runs[AP_EU, late] == ["run-2000"]
        assert runs[REVERSE_FLOW, late] == []
        (fact,) = found[AP_EU, late]
        # A sample of 1 % has a loss bound; the audit is complete up to the end of its window.
        assert (fact.complete_up_to, fact.loss_below, fact.counts[Verdict.LOST]) == (3_000, 3e-4, 2)
        assert facts.audit_facts([]) == {}


def test_overdue_records_that_a_later_audit_finds_are_no_fault_any_more(tmp_path: Path) -> None:
    stopped, arrived = Window(0, 400_000), Window(5_000, 900_000)
    counts = {stopped: {Verdict.MATCHED: 9, Verdict.OVERDUE: 28}, arrived: {Verdict.LATE: 28}}
    span, statuses = Span(0, 900_000), []
    with Store.open(tmp_path / "r.db", clock=lambda: NOW) as store:
        for window, oldest_open in ((stopped, 5_000), (arrived, None)):
            outcome = orders_outcome(
                window,
                partitions=(PartitionOutcome(0, 1, counts[window]),),
                oldest_open=oldest_open,
            )
            store.publish(run_of(f"run-{window.end}", judged(outcome), started_at=window.end))
            audited = list(StoreFacts(store).audit_facts([(US_EU, span)])[US_EU, span])
            found = reporter(facts=MemoryFacts(facts={FLOW: audited})).report()
            (latency,) = (each for each in found.entries if each.id == "us-to-eu-latency-10s")
            statuses.append((latency.status, latency.reason))
    # Due when they were as old as the unit's max_pending of two minutes.
    assert audited[0].overdue_since == 125_000
    assert statuses[0] == (Status.AT_RISK, Reason.AUDIT_FAULTS)
    assert statuses[1][0] is Status.MET
