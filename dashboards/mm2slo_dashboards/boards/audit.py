"""Audit: whether what arrived is what was sent, up to when, and what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.boards import Board as Identity
from mm2slo_core.catalogue.audited import (
    AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS,
    AUDIT_FAULTS_RECORDS,
    AUDIT_LAST_RUN_TIMESTAMP_SECONDS,
    AUDIT_RECORDS,
    AUDIT_SAMPLED_RATIO,
    AUDIT_UNAUDITED_TOPICS,
    AUDIT_WINDOW_END_TIMESTAMP_SECONDS,
)
from mm2slo_core.promql import Vector
from mm2slo_dashboards.boards import audit_bounds, audit_found
from mm2slo_dashboards.boards.audit_bounds import LOST, SLOW, at_most
from mm2slo_dashboards.boards.common import FLOW_MARKS, NO_AUDIT
from mm2slo_dashboards.model import Board, Column, Kind, Panel, Query, Row, Unit
from mm2slo_dashboards.selecting import FLOWS, least, of_flow, total, worst
from mm2slo_dashboards.states import NEUTRAL, NONE_IS_BEST, NONE_IS_GOOD

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Metric
    from mm2slo_dashboards.limits import Limits


def board(limits: Limits) -> Board:
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
            Row("How sure is that?", audit_bounds.rates()),
            Row("How long did records take?", audit_bounds.latency(limits)),
            Row("What was found?", audit_found.found()),
            Row("Is auditing itself fine?", audit_found.runs()),
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
            no_data=NO_AUDIT,
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
            "samples, it is the sample's share; its bounds are below.",
            kind=Kind.STAT,
            unit=Unit.SHARE,
            no_data=NO_AUDIT,
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
            no_data=NO_AUDIT,
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
            no_data=NO_AUDIT,
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
        no_data=NO_AUDIT,
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
            Column(title="Lost, at most", vector=at_most(LOST, "flow"), unit=Unit.SHARE),
            Column(title="p99, at most", vector=at_most(SLOW, "flow"), unit=Unit.SECONDS),
            Column(
                title="Looked at",
                vector=least(of_flow(AUDIT_SAMPLED_RATIO), "flow"),
                unit=Unit.SHARE,
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


def _moment(metric: Metric) -> Vector:
    newest = worst(of_flow(metric), "flow")
    return Vector(f"1000 * {newest}", newest.labels)
