"""What the results store knows of a cutover, and the decision as a response.

The evidence comes from an exporter, as JSON, or from one in the same process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, Self

from pydantic import Field, TypeAdapter

from mm2slo_core.audit.unit_outcome import FAULTS, Verdict
from mm2slo_core.cutover.cutover_checks import CheckOutcome, CutoverPhase
from mm2slo_core.cutover.cutover_evidence import AuditFact, BudgetFact, Cases, CutoverEvidence
from mm2slo_core.cutover.cutover_gate import GateDecision, GateVerdict, JudgedCheck
from mm2slo_core.reporting.report_entry import Entry, Instant
from mm2slo_report.flow_audit_figures import AuditFigures
from mm2slo_report.rendering.report_models import ResponseModel

EVIDENCE: Final = TypeAdapter(CutoverEvidence)
"""Reads the JSON of an exporter."""


def audit_fact(figures: AuditFigures | None) -> AuditFact | None:
    """What the newest audit of a flow says; None without one."""
    if figures is None:
        return None
    complete = figures.run.complete_up_to
    found = [
        f"{verdict.value}: {count:,}"
        for verdict, count in figures.counts.items()
        if verdict in FAULTS and count
    ]
    unjudged = tuple(
        f"{count:,} {what}"
        for count, what in (
            (figures.unaudited, "topics were not audited"),
            (figures.counts.get(Verdict.UNAUDITABLE, 0), "records were unauditable"),
        )
        if count
    )
    return AuditFact(
        complete_up_to=None if complete is None else complete / 1000,
        faults=Cases(len(found), tuple(found)),
        unjudged=Cases(len(unjudged), unjudged),
        sample_rate=figures.run.header.sample_rate,
    )


def budget_fact(entries: Iterable[Entry]) -> BudgetFact:
    """What is left of the budgets of a flow's objectives."""
    all_of = list(entries)
    unknown = [each.id for each in all_of if each.budget.remaining is None]
    spent = [
        each.id
        for each in all_of
        if each.budget.remaining is not None and each.budget.remaining <= 0
    ]
    return BudgetFact(
        exhausted=Cases(len(spent), tuple(spent)),
        unknown=Cases(len(unknown), tuple(unknown)),
        objectives=len(all_of),
    )


class AcceptedPart(ResponseModel):
    item: Annotated[str | None, Field(description="Null: that the check is unknown.")]
    reason: str


class CutoverCheck(ResponseModel):
    name: str
    result: CheckOutcome
    text: str
    count: Annotated[int, Field(description="How many cases there are.")]
    cases: Annotated[tuple[str, ...], Field(description="The first of them.")]
    next_step: str
    consequence_of: Annotated[
        tuple[str, ...], Field(description="Failing checks that explain this one.")
    ]
    items: Annotated[tuple[str, ...], Field(description="What can be accepted one by one.")]
    accepted: tuple[AcceptedPart, ...]

    @classmethod
    def of(cls, found: JudgedCheck) -> Self:
        return cls(
            name=found.name,
            result=found.result,
            text=found.text,
            count=found.cases.count,
            cases=found.cases.first,
            next_step=found.next_step,
            consequence_of=found.consequence_of,
            items=found.items,
            accepted=tuple(
                AcceptedPart(item=each.item, reason=each.reason) for each in found.waivers
            ),
        )


class CutoverDecision(ResponseModel):
    flow: str
    phase: CutoverPhase
    as_of: Annotated[Instant, Field(description="When the clusters were read.")]
    verdict: GateVerdict
    go: bool
    freeze_seconds: float
    accepted_redelivery_records: int
    checks: Annotated[tuple[CutoverCheck, ...], Field(description="Causes come first.")]

    @classmethod
    def of(cls, decision: GateDecision) -> Self:
        return cls(
            flow=decision.flow,
            phase=decision.phase,
            as_of=round(decision.at * 1000),
            verdict=decision.verdict,
            go=decision.verdict is GateVerdict.GO,
            freeze_seconds=decision.terms.freeze,
            accepted_redelivery_records=decision.terms.redelivery,
            checks=tuple(map(CutoverCheck.of, decision.checks)),
        )
