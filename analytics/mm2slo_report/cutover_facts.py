"""What the results store knows of a cutover.

The evidence comes from an exporter, as JSON, or from one in the same process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pydantic import TypeAdapter

from mm2slo_core.audit.unit_outcome import FAULTS, Verdict
from mm2slo_core.cutover.cutover_evidence import AuditFact, BudgetFact, Cases, CutoverEvidence
from mm2slo_core.reporting.report_entry import Entry
from mm2slo_report.flow_audit_figures import AuditFigures

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
