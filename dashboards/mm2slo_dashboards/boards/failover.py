"""Failover readiness: which groups would resume correctly, and what they would read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.boards import Board as Identity
from mm2slo_core.catalogue.failover import (
    CHECKPOINT_AGE_SECONDS,
    CHECKPOINT_LAG_RECORDS,
    FAILOVER_BLOCKED,
    FAILOVER_READY,
    FAILOVER_REDELIVERY_RECORDS,
    OFFSET_SYNC_AGE_SECONDS,
    OFFSET_SYNC_GAP_RECORDS,
)
from mm2slo_core.catalogue.recorded import BUDGET_REMAINING
from mm2slo_core.promql import Vector, aggregate, equal
from mm2slo_core.sli import Sli
from mm2slo_dashboards.boards.common import FLOW_MARKS, NO_RULES, OF_ALL_FLOWS, budget_steps
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.model import Board, Column, Kind, Panel, Query, Row, Unit
from mm2slo_dashboards.selecting import (
    FLOWS,
    GROUPS,
    IN_GROUP,
    least,
    of_flow,
    recorded,
    top,
    total,
    where,
    worst,
)
from mm2slo_dashboards.states import NONE_IS_GOOD, READY, up_to

if TYPE_CHECKING:
    from mm2slo_dashboards.limits import Limits

_KEYS: Final = ("flow", "group")
_NAMED: Final = "{{flow}} {{group}}"
_SEEN_EVERY: Final = 300.0
"""Seconds between points of a course that looks at every group of every flow."""
_NO_GROUP: Final = (
    "No consumer group is judged: none commits on the source, the filter leaves it out, or "
    "checkpoints were not read yet."
)


def board(limits: Limits) -> Board:
    """Groups that a failover would concern, those that are not ready first."""
    return Board(
        identity=Identity.FAILOVER,
        title="MirrorMaker 2 / Failover readiness",
        description="If we fail over now: which groups resume correctly, and what is read again?",
        variables=(FLOWS, GROUPS),
        rows=(
            Row("If we fail over now?", (*_counts(limits), _groups(limits))),
            Row("Why not, and since when?", _reasons()),
            Row("What would it cost?", _cost(limits)),
            Row("What causes it?", _causes(limits)),
        ),
        marks=FLOW_MARKS,
        points=OF_ALL_FLOWS,
    )


def _ready() -> Vector:
    """1 where every replica that judges the group finds it ready."""
    return least(of_flow(FAILOVER_READY, IN_GROUP), *_KEYS)


def _counts(limits: Limits) -> tuple[Panel, ...]:
    ready = _ready()
    lacking = total(Vector(f"1 - {ready}", ready.labels))
    return (
        Panel(
            title="How many groups are ready?",
            description="Groups that would resume correctly on the target, and groups that would "
            "not. Good is none that would not.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=_NO_GROUP,
            queries=(
                Query(vector=total(ready), legend="ready", instant=True),
                Query(vector=lacking, legend="not ready", instant=True),
            ),
            steps=NONE_IS_GOOD,
            colours={"ready": Colour.GOOD},
            decimals=0,
            leads=Identity.FLOW,
            alert="MM2FailoverNotReady",
            width=8,
            height=5,
        ),
        Panel(
            title="How much would be read again?",
            description="Records that all groups together would read again, at most.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=_NO_GROUP,
            queries=(Query(vector=total(_redelivery("upper")), instant=True),),
            decimals=0,
            leads=Identity.FLOW,
            alert="MM2FailoverNotReady",
            width=8,
            height=5,
        ),
        Panel(
            title="Is the promise of fresh checkpoints kept?",
            description="What is left of the smallest budget of checkpoint freshness.",
            kind=Kind.STAT,
            unit=Unit.SHARE,
            no_data=f"{NO_RULES} Only groups that move are judged.",
            queries=(
                Query(
                    vector=least(
                        recorded(BUDGET_REMAINING, equal("sli", Sli.CHECKPOINT_FRESHNESS.value))
                    ),
                    instant=True,
                ),
            ),
            steps=budget_steps(limits),
            decimals=1,
            leads=Identity.SLO,
            alert="MM2ErrorBudgetBurnSlow",
            fills="a group that moves",
            width=8,
            height=5,
        ),
    )


def _groups(limits: Limits) -> Panel:
    return Panel(
        title="Which groups would resume, and which not?",
        description="One row per flow and group, those that are not ready first; a flow's name "
        "leads to its board. Redelivery lies between its bounds; they are equal where offset "
        "syncs bracket the commit.",
        kind=Kind.TABLE,
        unit=Unit.COUNT,
        no_data=_NO_GROUP,
        keys={"flow": "Flow", "group": "Group"},
        columns=(
            Column(title="Ready", vector=_ready(), unit=Unit.COUNT, states=READY),
            Column(
                title="Read again, at least",
                vector=_redelivery("lower"),
                unit=Unit.COUNT,
            ),
            Column(
                title="Read again, at most",
                vector=_redelivery("upper"),
                unit=Unit.COUNT,
                steps=up_to(limits.redelivery),
            ),
            Column(
                title="Checkpoint's age",
                vector=least(of_flow(CHECKPOINT_AGE_SECONDS, IN_GROUP), *_KEYS),
                unit=Unit.SECONDS,
            ),
            Column(
                title="Not in a checkpoint yet",
                vector=total(
                    worst(of_flow(CHECKPOINT_LAG_RECORDS, IN_GROUP), *_KEYS, "topic"), *_KEYS
                ),
                unit=Unit.COUNT,
                steps=up_to(limits.checkpoint_lag),
            ),
        ),
        sort=("Ready", "-Read again, at most"),
        leads=Identity.FLOW,
        alert="MM2FailoverNotReady",
        width=24,
        height=10,
    )


def _reasons() -> tuple[Panel, ...]:
    blocked = where(worst(of_flow(FAILOVER_BLOCKED, IN_GROUP), *_KEYS, "reason"), "== 1")
    return (
        Panel(
            title="Why are groups not ready?",
            description="The reasons that hold now, from a closed list; the runbook explains "
            "each. Good is an empty table.",
            kind=Kind.TABLE,
            unit=Unit.COUNT,
            no_data="No group is kept from being ready.",
            keys={"flow": "Flow", "group": "Group", "reason": "Reason"},
            columns=(Column(title="Holds", vector=blocked, unit=Unit.COUNT),),
            sort=("Group",),
            leads=Identity.FLOW,
            alert="MM2FailoverNotReady",
            fills="a group that is not ready",
        ),
        Panel(
            title="Since when are groups not ready?",
            description="Groups that are not ready, over time, of the ten flows with most.",
            kind=Kind.SERIES,
            unit=Unit.COUNT,
            no_data="No group was kept from being ready in this time.",
            queries=(
                Query(
                    vector=top(10, aggregate("count", where(_ready(), "== 0"), ("flow",))),
                    legend="{{flow}}",
                ),
            ),
            least=0.0,
            stacked=True,
            step=_SEEN_EVERY,
            leads=Identity.FLOW,
            alert="MM2FailoverNotReady",
            fills="a group that is not ready",
        ),
    )


def _cost(limits: Limits) -> tuple[Panel, ...]:
    return (
        _top(
            _redelivery("upper"),
            "Which groups would read most again?",
            "Records a group would read again after a failover, at most; the ten largest. Above "
            f"{limits.redelivery:,} it is not ready.",
            Unit.COUNT,
            limits.redelivery,
        ),
        _top(
            total(worst(of_flow(CHECKPOINT_LAG_RECORDS, IN_GROUP), *_KEYS, "topic"), *_KEYS),
            "Which groups are furthest ahead of their checkpoint?",
            "Records that a group committed since its newest checkpoint; the ten largest. Above "
            f"{limits.checkpoint_lag:,} it is not ready.",
            Unit.COUNT,
            limits.checkpoint_lag,
        ),
    )


def _causes(limits: Limits) -> tuple[Panel, ...]:
    return (
        Panel(
            title="How old are checkpoints?",
            description="Age of each group's newest checkpoint, the ten oldest. MirrorMaker 2 "
            f"writes one when the group moves: above {limits.checkpoint:g} s, two of its "
            "intervals, a group that moves is not followed; one at rest keeps its old one.",
            kind=Kind.BARS,
            unit=Unit.SECONDS,
            no_data=_NO_GROUP,
            queries=(
                Query(
                    vector=top(10, least(of_flow(CHECKPOINT_AGE_SECONDS, IN_GROUP), *_KEYS)),
                    legend=_NAMED,
                    instant=True,
                ),
            ),
            least=0.0,
            leads=Identity.FLOW,
            alert="MM2CheckpointStalled",
            width=8,
        ),
        Panel(
            title="How old are offset syncs?",
            description="Age of the newest offset sync, the ten oldest topics or partitions. "
            "Without a new one checkpoints cannot advance; a topic at rest keeps its old one.",
            kind=Kind.BARS,
            unit=Unit.SECONDS,
            no_data="No offset sync was read: nothing was copied yet.",
            queries=(
                Query(
                    vector=top(
                        10, least(of_flow(OFFSET_SYNC_AGE_SECONDS), "flow", "topic", "partition")
                    ),
                    legend="{{flow}} {{topic}} {{partition}}",
                    instant=True,
                ),
            ),
            least=0.0,
            leads=Identity.FLOW,
            alert="MM2CheckpointStalled",
            width=8,
        ),
        Panel(
            title="How far are offset syncs behind?",
            description="Records between the newest offset sync and the replicated position, the "
            "ten largest: within it translation is not exact.",
            kind=Kind.BARS,
            unit=Unit.COUNT,
            no_data="No offset sync was read: nothing was copied yet.",
            queries=(
                Query(
                    vector=top(
                        10, worst(of_flow(OFFSET_SYNC_GAP_RECORDS), "flow", "topic", "partition")
                    ),
                    legend="{{flow}} {{topic}} {{partition}}",
                    instant=True,
                ),
            ),
            least=0.0,
            leads=Identity.FLOW,
            alert="MM2CheckpointStalled",
            width=8,
        ),
    )


def _redelivery(bound: str) -> Vector:
    return worst(of_flow(FAILOVER_REDELIVERY_RECORDS, IN_GROUP, equal("bound", bound)), *_KEYS)


def _top(vector: Vector, title: str, description: str, unit: Unit, limit: float) -> Panel:
    return Panel(
        title=title,
        description=description,
        kind=Kind.BARS,
        unit=unit,
        no_data=_NO_GROUP,
        queries=(Query(vector=top(10, vector), legend=_NAMED, instant=True),),
        steps=up_to(limit),
        least=0.0,
        leads=Identity.FLOW,
        alert="MM2FailoverNotReady",
    )
