"""What audits found, and whether they run."""

from __future__ import annotations

from typing import Final

from mm2slo_core.audit.verdict import FAULTS, Verdict
from mm2slo_core.boards import Board as Identity
from mm2slo_core.catalogue.audited import (
    AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS,
    AUDIT_FAULTS_RECORDS,
    AUDIT_LAST_RUN_TIMESTAMP_SECONDS,
    AUDIT_RECORDS,
    AUDIT_RUNS,
)
from mm2slo_core.promql import matching, select
from mm2slo_dashboards.boards.common import NO_AUDIT
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.model import Kind, Panel, Query, Unit
from mm2slo_dashboards.selecting import of_flow, since, top, total, where, worst
from mm2slo_dashboards.states import NONE_IS_BEST, NONE_IS_GOOD

_VERDICTS: Final = {
    Verdict.MATCHED.value: Colour.GOOD,
    Verdict.PENDING.value: Colour.RESTING,
    Verdict.UNAUDITABLE.value: Colour.UNKNOWN,
    **{verdict.value: Colour.BAD for verdict in Verdict if verdict in FAULTS},
}


def found() -> tuple[Panel, ...]:
    """Verdicts, faults over time, and how far back the proof is."""
    others = matching(
        "verdict", "|".join(each.value for each in Verdict if each is not Verdict.MATCHED)
    )
    verdicts = total(worst(of_flow(AUDIT_RECORDS, others), "flow", "verdict"), "verdict")
    watermark = worst(of_flow(AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS), "flow")
    return (
        Panel(
            title="Which verdicts but matched were given?",
            description="Records by verdict in the newest audits. Pending ones may still be "
            "copied; evidence of each anomaly is in the audit's report.",
            kind=Kind.BARS,
            unit=Unit.COUNT,
            no_data=NO_AUDIT,
            queries=(Query(vector=verdicts, legend="{{verdict}}", instant=True),),
            colours=_VERDICTS,
            steps=NONE_IS_BEST,
            decimals=0,
            least=0.0,
            leads=Identity.FLOW,
            alert="MM2RecordsLost",
            width=8,
        ),
        Panel(
            title="When were records at fault found?",
            description="Records at fault in the newest audit of each flow, over time.",
            kind=Kind.SERIES,
            unit=Unit.COUNT,
            no_data=NO_AUDIT,
            queries=(
                Query(
                    vector=top(10, worst(of_flow(AUDIT_FAULTS_RECORDS), "flow")),
                    legend="{{flow}}",
                ),
            ),
            steps=NONE_IS_GOOD,
            least=0.0,
            leads=Identity.FLOW,
            alert="MM2RecordsLost",
            width=8,
        ),
        Panel(
            title="How far back is the proof?",
            description="Time since the moment up to which the flow is proven complete; it falls "
            "with each audit. The ten that are furthest back.",
            kind=Kind.SERIES,
            unit=Unit.SECONDS,
            no_data=NO_AUDIT,
            queries=(
                Query(
                    vector=top(10, since(watermark)),
                    legend="{{flow}}",
                ),
            ),
            least=0.0,
            leads=Identity.FLOW,
            width=8,
        ),
    )


def runs() -> tuple[Panel, ...]:
    """Whether audits run and end."""
    ended = worst(of_flow(AUDIT_LAST_RUN_TIMESTAMP_SECONDS), "flow")
    return (
        Panel(
            title="Do audits run and end?",
            description="Runs in the results store by state. Failed ones say why in their report.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=NO_AUDIT,
            queries=(
                Query(vector=worst(select(AUDIT_RUNS), "state"), legend="{{state}}", instant=True),
            ),
            colours={
                "finished": Colour.NEUTRAL,
                "running": Colour.GOOD,
                "failed": Colour.BAD,
            },
            decimals=0,
            leads=Identity.PIPELINE,
        ),
        Panel(
            title="How long ago did the newest audit end?",
            description="Time since the newest finished audit of each flow ended; the ten that "
            "are longest ago.",
            kind=Kind.SERIES,
            unit=Unit.SECONDS,
            no_data=NO_AUDIT,
            queries=(
                Query(
                    vector=top(10, where(since(ended), ">= 0")),
                    legend="{{flow}}",
                ),
            ),
            least=0.0,
            leads=Identity.PIPELINE,
        ),
    )
