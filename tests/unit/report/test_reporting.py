"""Reports from a source, the ledger and the objectives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from reported import AVAILABILITY, DAY_MS, FLOW, objective
from serving import AS_OF, BACK, LATENCY, NOW, OUTAGE, MemorySource, a_source, three_objectives
from store_specs.results import AP_EU, US_EU, header, judged, orders_outcome, run_of

from mm2slo_core.audit.verdict import Verdict
from mm2slo_core.objectives.exclusion import Exclusion, Span
from mm2slo_core.objectives.status import Reason, Status
from mm2slo_core.reporting.confirmation import AuditFact
from mm2slo_core.reporting.history import MINUTE_MS, Indicator
from mm2slo_report.ledger import StoreLedger
from mm2slo_report.reporting import Reporter, UnknownObjectiveError
from mm2slo_report.sources.port import SliSourceError
from mm2slo_store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mm2slo_core.objectives import Objective
    from mm2slo_core.topology import Flow

from mm2slo_core.audit.scope import Window


@dataclass
class MemoryLedger:
    """Maintenance and audits in lists; notes what it was asked for."""

    planned: list[Exclusion] = field(default_factory=list)
    facts: dict[Flow, list[AuditFact]] = field(default_factory=dict)
    spans: list[Mapping[Flow, Span]] = field(default_factory=list)

    def exclusions(self, span: Span) -> Sequence[Exclusion]:
        return [each for each in self.planned if Span(each.start, each.end).overlaps(span)]

    def audit_facts(self, spans: Mapping[Flow, Span]) -> Mapping[Flow, Sequence[AuditFact]]:
        self.spans.append(spans)
        return {flow: self.facts.get(flow, []) for flow in spans}


def reporter(
    source: MemorySource | None = None,
    ledger: MemoryLedger | None = None,
    objectives: Sequence[Objective] | None = None,
) -> Reporter:
    return Reporter(
        objectives=three_objectives() if objectives is None else objectives,
        source=a_source() if source is None else source,
        ledger=MemoryLedger() if ledger is None else ledger,
        zone=ZoneInfo("Europe/Berlin"),
        clock=lambda: NOW,
    )


def maintenance(start: int, end: int, flows: str = "us->eu") -> Exclusion:
    return Exclusion(
        id="x", flows=(flows,), start=start, end=end, reason="r", who="w", added_at=start
    )


def test_a_report_is_as_of_the_whole_minute_and_worst_first() -> None:
    found = reporter().report()
    assert (found.as_of, found.source, found.zone) == (AS_OF, "recorder", "Europe/Berlin")
    assert [each.status for each in found.entries] == [Status.BREACHED, Status.NO_DATA, Status.OK]


def test_all_objectives_take_one_question_to_the_source_and_one_to_the_ledger() -> None:
    source, ledger = a_source(), MemoryLedger()
    reporter(source, ledger).report()
    assert source.asked == 1
    assert [set(each) for each in ledger.spans] == [{FLOW, BACK}]


def test_audits_are_looked_up_over_the_longest_window_of_a_flow() -> None:
    ledger = MemoryLedger()
    objectives = (objective(0.9, window=86_400.0), objective(0.9, key=LATENCY, window=2 * 86_400.0))
    reporter(ledger=ledger, objectives=objectives).report()
    assert ledger.spans == [{FLOW: Span(AS_OF - 2 * DAY_MS, AS_OF)}]


def test_a_report_of_some_objectives_has_no_others_and_of_none_is_empty() -> None:
    asked = reporter()
    (chosen,) = asked.report((asked.objective("us-to-eu-latency-10s"),)).entries
    assert chosen.id == "us-to-eu-latency-10s"
    assert asked.report(()).entries == ()


def test_a_report_in_the_past_gives_what_was_true_then() -> None:
    before, after = (
        reporter().report(at=at, over="1d").entries for at in (OUTAGE, OUTAGE + 6 * MINUTE_MS)
    )
    assert {each.id: each.counts.bad for each in before}["us-to-eu-availability"] == 0
    assert {each.id: each.counts.bad for each in after}["us-to-eu-availability"] == 360


def test_maintenance_is_in_no_figure_of_report_incidents_or_history() -> None:
    ledger = MemoryLedger([maintenance(OUTAGE, OUTAGE + 3 * MINUTE_MS)])
    asked = reporter(ledger=ledger)
    detail = asked.detail("us-to-eu-availability")
    assert (detail.entry.counts.bad, detail.entry.excluded.bad) == (180, 180)
    assert [(each.start, each.bad) for each in detail.incidents] == [(OUTAGE + 3 * MINUTE_MS, 180)]
    assert sum(each.bad for each in detail.days) == 180
    history = asked.history("us-to-eu-availability")
    assert sum(each.counts.bad for each in history.steps) == 180
    # It is the other flow's: nothing changes for this one.
    ledger.planned[:] = [maintenance(OUTAGE, OUTAGE + 3 * MINUTE_MS, "eu->us")]
    assert asked.detail("us-to-eu-availability").entry.counts.bad == 360


def test_days_and_incidents_add_up_to_the_entry() -> None:
    detail = reporter().detail("us-to-eu-availability", over="28d")
    assert sum(each.bad for each in detail.days) == detail.entry.counts.bad == 360
    assert sum(each.bad for each in detail.incidents) == 360
    (incident,) = detail.incidents
    assert incident.consumed == pytest.approx(detail.entry.budget.consumed)


def test_faults_of_an_audit_are_a_warning_where_canaries_saw_none() -> None:
    fact = AuditFact(run_id="r", complete_up_to=AS_OF, counts={Verdict.MATCHED: 9, Verdict.LOST: 1})
    found = reporter(ledger=MemoryLedger(facts={FLOW: [fact]})).report()
    by_id = {each.id: each for each in found.entries}
    latency = by_id["us-to-eu-latency-10s"]
    assert (latency.status, latency.reason) == (Status.WARNING, Reason.AUDIT_FOUND)
    assert by_id["us-to-eu-availability"].status is Status.BREACHED
    assert by_id["eu-to-us-availability"].confirmation is None


def test_a_problem_of_one_indicator_is_told_there_alone() -> None:
    source = a_source()
    source.problems[Indicator(FLOW, AVAILABILITY)] = SliSourceError("no answer")
    by_id = {each.id: each for each in reporter(source).report().entries}
    assert by_id["us-to-eu-availability"].errors == ("no answer",)
    assert by_id["us-to-eu-availability"].ratio is None
    assert by_id["us-to-eu-latency-10s"].ratio == 1.0


def test_a_source_that_is_down_is_raised() -> None:
    source = a_source()
    source.down = SliSourceError("down", slow=True)
    with pytest.raises(SliSourceError, match="down"):
        reporter(source).report()


def test_an_unknown_id_names_the_near_ones() -> None:
    with pytest.raises(
        UnknownObjectiveError, match="did you mean 'us-to-eu-latency-10s'"
    ) as unknown:
        reporter().objective("us-to-eu-latency-1s")
    assert unknown.value.near[0] == "us-to-eu-latency-10s"
    with pytest.raises(UnknownObjectiveError, match="see /slo") as unknown:
        reporter().objective("zzz")
    assert unknown.value.near == ()


def test_a_bad_period_or_step_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="expected 28d"):
        reporter().report(over="July")
    with pytest.raises(ValueError, match="4,320 steps are more than 2,000"):
        reporter().history("us-to-eu-availability", length=MINUTE_MS)


def test_the_ledger_of_a_store_gives_each_flow_the_units_of_its_own_span(tmp_path: Path) -> None:
    with Store.open(tmp_path / "r.db", clock=lambda: NOW) as store:
        for start in (0, 1_000, 2_000):
            window = Window(start, start + 1_000)
            run = run_of(f"run-{start}", judged(orders_outcome(window)), started_at=start)
            store.publish(run)
        store.announce(header("later", Window(0, 10)))
        ledger = StoreLedger(store)
        found = ledger.audit_facts(
            {US_EU: Span(500, 2_000), AP_EU: Span(2_999, 9_000), BACK: Span(0, 9)}
        )
        assert [each.run_id for each in found[US_EU]] == ["run-0", "run-1000"]
        assert [each.run_id for each in found[AP_EU]] == ["run-2000"]
        assert found[BACK] == []
        (fact,) = found[AP_EU]
        # A sample of one in a hundred: its bound is told, and its window's end was reached.
        assert (fact.complete_up_to, fact.loss_below, fact.counts[Verdict.LOST]) == (3_000, 3e-4, 2)
        assert ledger.audit_facts({}) == {}
