"""Audit: whether what arrived is what was sent, up to when, and what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.audit.verdict import FAULTS, Verdict
from mm2slo_core.boards import Board as Identity
from mm2slo_core.catalogue.audited import (
    AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS,
    AUDIT_FAULTS_RECORDS,
    AUDIT_LAST_RUN_TIMESTAMP_SECONDS,
    AUDIT_RECORDS,
    AUDIT_RUNS,
    AUDIT_UNAUDITED_TOPICS,
    AUDIT_WINDOW_END_TIMESTAMP_SECONDS,
)
from mm2slo_core.promql import Vector, matching, select
from mm2slo_dashboards.boards.common import FLOW_MARKS
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.model import Board, Column, Kind, Panel, Query, Row, Unit
from mm2slo_dashboards.selecting import FLOWS, of_flow, top, total, where, worst
from mm2slo_dashboards.states import NEUTRAL, NONE_IS_BEST, NONE_IS_GOOD

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Metric

_NO_AUDIT: Final = (
    "No audit of the flow has ended, or Prometheus does not scrape `mm2slo report serve`."
)
_VERDICTS: Final = {
    Verdict.MATCHED.value: Colour.GOOD,
    Verdict.PENDING.value: Colour.RESTING,
    Verdict.UNAUDITABLE.value: Colour.UNKNOWN,
    **{verdict.value: Colour.BAD for verdict in Verdict if verdict in FAULTS},
}


def board() -> Board:
    """What audits found, flow by flow."""
    return Board(
        identity=Identity.AUDIT,
        title="MirrorMaker 2 / Audit",
        description="Is what arrived what was sent? What the newest audit of each flow found; "
        "published by the report service.",
        variables=(FLOWS,),
        rows=(
            Row("Did everything arrive as it was sent?", _verdict()),
            Row("Which flows, up to when?", (_flows(),)),
            Row("What was found?", _found()),
            Row("Is auditing itself fine?", _runs()),
        ),
        marks=FLOW_MARKS,
        since="now-7d",
        refresh="1m",
    )


def _verdict() -> tuple[Panel, ...]:
    faults = total(worst(of_flow(AUDIT_FAULTS_RECORDS), "flow"))
    judged = total(worst(of_flow(AUDIT_RECORDS), "flow", "verdict"))
    return (
        Panel(
            title="How many records are at fault?",
            description="Records that the newest audits found lost, overdue, expired, moved or "
            "altered. Good is 0.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=_NO_AUDIT,
            queries=(Query(vector=faults, instant=True),),
            steps=NONE_IS_GOOD,
            decimals=0,
            leads=Identity.FLOW,
            alert="MM2RecordsLost",
            width=6,
            height=5,
        ),
        Panel(
            title="Which share of the records is that?",
            description="Records at fault of all that the newest audits judged. Of an audit that "
            "samples, it is the sample's share; its report gives the bounds.",
            kind=Kind.STAT,
            unit=Unit.SHARE,
            no_data=_NO_AUDIT,
            queries=(Query(vector=Vector(f"{faults} / ({judged} > 0)", ()), instant=True),),
            steps=NEUTRAL,
            leads=Identity.FLOW,
            alert="MM2RecordsLost",
            width=6,
            height=5,
        ),
        Panel(
            title="How many records were judged?",
            description="Records that the newest audits gave a verdict.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=_NO_AUDIT,
            queries=(Query(vector=judged, instant=True),),
            steps=NEUTRAL,
            leads=Identity.FLOW,
            width=6,
            height=5,
        ),
        Panel(
            title="How many topics could not be audited?",
            description="Topics that the newest audits could not judge; their reports say why.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=_NO_AUDIT,
            queries=(
                Query(vector=total(worst(of_flow(AUDIT_UNAUDITED_TOPICS), "flow")), instant=True),
            ),
            steps=NONE_IS_BEST,
            decimals=0,
            leads=Identity.PIPELINE,
            width=6,
            height=5,
        ),
    )


def _flows() -> Panel:
    return Panel(
        title="What did the newest audit of each flow say?",
        description="One row per flow, most faults first. Complete up to: all records with an "
        "earlier timestamp are copied, or named as a fault.",
        kind=Kind.TABLE,
        unit=Unit.COUNT,
        no_data=_NO_AUDIT,
        keys={"flow": "Flow"},
        columns=(
            Column(
                title="At fault",
                vector=worst(of_flow(AUDIT_FAULTS_RECORDS), "flow"),
                unit=Unit.COUNT,
                steps=NONE_IS_GOOD,
            ),
            Column(
                title="Judged",
                vector=total(worst(of_flow(AUDIT_RECORDS), "flow", "verdict"), "flow"),
                unit=Unit.COUNT,
            ),
            Column(
                title="Complete up to",
                vector=_moment(AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS),
                unit=Unit.MOMENT,
            ),
            Column(
                title="Window's end",
                vector=_moment(AUDIT_WINDOW_END_TIMESTAMP_SECONDS),
                unit=Unit.MOMENT,
            ),
            Column(
                title="Ended",
                vector=_moment(AUDIT_LAST_RUN_TIMESTAMP_SECONDS),
                unit=Unit.MOMENT,
            ),
            Column(
                title="Topics left out",
                vector=worst(of_flow(AUDIT_UNAUDITED_TOPICS), "flow"),
                unit=Unit.COUNT,
                steps=NONE_IS_BEST,
            ),
        ),
        sort=("-At fault", "Complete up to"),
        leads=Identity.FLOW,
        alert="MM2RecordsLost",
        width=24,
    )


def _found() -> tuple[Panel, ...]:
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
            no_data=_NO_AUDIT,
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
            no_data=_NO_AUDIT,
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
            no_data=_NO_AUDIT,
            queries=(
                Query(
                    vector=top(10, Vector(f"time() - {watermark}", watermark.labels)),
                    legend="{{flow}}",
                ),
            ),
            least=0.0,
            leads=Identity.FLOW,
            width=8,
        ),
    )


def _runs() -> tuple[Panel, ...]:
    ended = worst(of_flow(AUDIT_LAST_RUN_TIMESTAMP_SECONDS), "flow")
    return (
        Panel(
            title="Do audits run and end?",
            description="Runs in the results store by state. Failed ones say why in their report.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=_NO_AUDIT,
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
            no_data=_NO_AUDIT,
            queries=(
                Query(
                    vector=top(10, where(Vector(f"time() - {ended}", ended.labels), ">= 0")),
                    legend="{{flow}}",
                ),
            ),
            least=0.0,
            leads=Identity.PIPELINE,
        ),
    )


def _moment(metric: Metric) -> Vector:
    newest = worst(of_flow(metric), "flow")
    return Vector(f"1000 * {newest}", newest.labels)
