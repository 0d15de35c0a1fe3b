"""Failover readiness dashboard: which groups would resume correctly, and their redelivery."""

from functools import partial
from typing import Final

from mm2slo_core.catalogue import flow_metrics, service_metrics
from mm2slo_core.catalogue.metric import Metric
from mm2slo_core.catalogue.promql import Matcher, Vector, either, equal
from mm2slo_core.link_targets import DashboardUid
from mm2slo_dashboards.dashboard_model import (
    BAD_FROM_ONE,
    READY_STATES,
    Colour,
    Dashboard,
    Kind,
    Panel,
    PanelUnit,
    Row,
    TableColumn,
    bad_from,
)
from mm2slo_dashboards.panel_definitions import FLEET_DATA_POINTS, FLOW_ANNOTATIONS, ObjectiveLimits
from mm2slo_dashboards.panel_queries import (
    FLOWS_VARIABLE,
    GROUPS_VARIABLE,
    MATCH_GROUP,
    SEEN_FLOWS,
    filter_by,
    flow_series,
    max_by,
    min_by,
    seconds_since,
    sum_by,
    topk,
)

_KEYS: Final = ("flow", "group")
_NAMED: Final = "{{flow}} {{group}}"

_MIN_INTERVAL: Final = 300.0
"""Seconds between points of a query over every group of every flow."""

_NO_GROUP: Final = (
    "No consumer group has a verdict: none commits on the source, the filter excludes them, "
    "checkpoints were not read yet, or the target or the exporter does not answer."
)


_panel: Final = partial(Panel, next_dashboard=DashboardUid.FLOW, alert="MM2FailoverNotReady")
"""Most panels are about groups that are not ready."""


def build(limits: ObjectiveLimits) -> Dashboard:
    """Consumer groups, blocked ones first."""
    return Dashboard(
        uid=DashboardUid.FAILOVER,
        title="MirrorMaker 2 / Failover readiness",
        description="If we fail over now: which groups resume correctly, and what is redelivered?",
        variables=(FLOWS_VARIABLE, GROUPS_VARIABLE),
        rows=(
            Row("What happens if we fail over now?", (*_summary(), _groups(limits))),
            Row("Do the groups keep up?", (_group_lag(),)),
            Row("Why are groups blocked, and since when?", _reasons(limits)),
            Row("What is the cause?", _causes()),
        ),
        annotations=FLOW_ANNOTATIONS,
        max_data_points=FLEET_DATA_POINTS,
    )


def _group_series(metric: Metric, *matchers: Matcher) -> Vector:
    return flow_series(metric, MATCH_GROUP, *matchers)


def _ready() -> Vector:
    """1 where the group is ready according to every replica of the exporter."""
    return min_by(_group_series(flow_metrics.FAILOVER_READY), *_KEYS)


def _blocked() -> Vector:
    """1 where the group is blocked according to any replica, else 0."""
    return Vector(f"1 - {_ready()}", _KEYS)


def _summary() -> tuple[Panel, ...]:
    not_judged = either(
        max_by(flow_metrics.FAILOVER_UNJUDGED_GROUPS, "flow", "reason"),
        max_by(service_metrics.EXPORTER_HIDDEN_GROUPS, "flow"),
    )
    flows = Vector(f"{SEEN_FLOWS} unless on (flow) {_ready()}", SEEN_FLOWS.labels)
    all_flows = Vector(f"0 * {SEEN_FLOWS}", SEEN_FLOWS.labels)
    return (
        _panel(
            title="Groups by readiness",
            description="How many groups are ready? Groups that would resume correctly on the "
            "target, and blocked ones. Not judged are groups that the filter excludes, that do not "
            "commit on a replicated topic, or that the exporter hides. A flow without a verdict "
            "has no group, or cannot be judged. Good is none blocked.",
            kind=Kind.STAT,
            unit=PanelUnit.COUNT,
            no_data=_NO_GROUP,
            queries={
                "ready": sum_by(_ready()),
                "blocked": sum_by(_blocked()),
                "not judged": sum_by(not_judged),
                "flows without a verdict": sum_by(either(flows, all_flows)),
            },
            thresholds=BAD_FROM_ONE,
            colours={
                "ready": Colour.GOOD,
                "not judged": Colour.UNKNOWN,
                "flows without a verdict": Colour.UNKNOWN,
            },
            decimals=0,
            width=8,
            height=5,
        ),
        _panel(
            title="Total redelivery",
            description="How much would be redelivered? Upper bound of the records that all "
            "groups with a verdict together would read again.",
            kind=Kind.STAT,
            unit=PanelUnit.COUNT,
            no_data=_NO_GROUP,
            queries={"": sum_by(_redelivery("upper"))},
            decimals=0,
            width=8,
            height=5,
        ),
        _panel(
            title="Unreplicated records",
            description="What would be missing if the sources never came back? Records that are "
            "not on the target, over all flows; while a source is down, as of its last reading.",
            kind=Kind.STAT,
            unit=PanelUnit.COUNT,
            no_data="No source was read since the exporter started.",
            queries={"": sum_by(max_by(flow_metrics.FAILOVER_UNREPLICATED_RECORDS, "flow"))},
            decimals=0,
            alert="MM2FlowStopped",
            width=8,
            height=5,
        ),
    )


def _groups(limits: ObjectiveLimits) -> Panel:
    return _panel(
        title="Consumer groups",
        description="Which groups would resume on the target? One row per flow and group, "
        "blocked ones first; a flow's name links to its dashboard. Redelivery is between its "
        "bounds; they are equal where offset syncs bracket the commit. Skipped records would never "
        "be read: the group would resume beyond its position. Unreplicated records of the group's "
        "partitions would be missing if the source never came back.",
        kind=Kind.TABLE,
        unit=PanelUnit.COUNT,
        no_data=_NO_GROUP,
        keys={"flow": "Flow", "group": "Group"},
        columns=(
            TableColumn("Ready", _ready(), states=READY_STATES),
            TableColumn("Redelivery, lower bound", _redelivery("lower")),
            TableColumn(
                "Redelivery, upper bound",
                _redelivery("upper"),
                thresholds=bad_from(limits.redelivery),
            ),
            TableColumn(
                "Skipped, upper bound",
                max_by(
                    _group_series(flow_metrics.FAILOVER_SKIPPED_RECORDS, equal("bound", "upper")),
                    *_KEYS,
                ),
                thresholds=BAD_FROM_ONE,
            ),
            TableColumn(
                "Unreplicated",
                max_by(_group_series(flow_metrics.FAILOVER_GROUP_UNREPLICATED_RECORDS), *_KEYS),
            ),
            TableColumn(
                "Unreplicated for",
                max_by(_group_series(flow_metrics.FAILOVER_GROUP_UNREPLICATED_SECONDS), *_KEYS),
                PanelUnit.SECONDS,
            ),
            TableColumn(
                "Checkpoint age",
                min_by(_group_series(flow_metrics.CHECKPOINT_AGE_SECONDS), *_KEYS),
                PanelUnit.SECONDS,
            ),
            TableColumn(
                "Checkpoint lag",
                sum_by(
                    max_by(_group_series(flow_metrics.CHECKPOINT_LAG_RECORDS), *_KEYS, "topic"),
                    *_KEYS,
                ),
                thresholds=bad_from(limits.checkpoint_lag),
            ),
        ),
        sort=("Ready", "-Redelivery, upper bound"),
        width=24,
        height=10,
    )


def _group_lag() -> Panel:
    keys = (*_KEYS, "cluster")
    return _panel(
        title="Consumer group lag",
        description="Do the groups keep up, on the source and after a failover on the target? One "
        "row per group and cluster, the greatest lag first. Lag counts from the committed "
        "offsets, which an idle group on the target has only if MirrorMaker 2 syncs them.",
        kind=Kind.TABLE,
        unit=PanelUnit.COUNT,
        no_data="No group has committed offsets, or `exporter.group_lag` is off.",
        keys={"flow": "Flow", "group": "Group", "cluster": "Cluster"},
        columns=(
            TableColumn(
                "Lag",
                sum_by(
                    max_by(_group_series(flow_metrics.GROUP_LAG_RECORDS), *keys, "topic"), *keys
                ),
            ),
            TableColumn(
                "Oldest unread record",
                max_by(_group_series(flow_metrics.GROUP_LAG_SECONDS), *keys),
                PanelUnit.SECONDS,
            ),
            TableColumn("Members", max_by(_group_series(flow_metrics.GROUP_MEMBERS), *keys)),
        ),
        sort=("-Lag",),
        width=24,
        height=8,
    )


def _reasons(limits: ObjectiveLimits) -> tuple[Panel, ...]:
    blocked = filter_by(
        max_by(_group_series(flow_metrics.FAILOVER_BLOCKED), *_KEYS, "reason"), "== 1"
    )
    return (
        _panel(
            title="Blocking reasons",
            description="Why are groups blocked? The current reasons, from a closed list; the "
            "runbook explains each. Good is an empty table.",
            kind=Kind.TABLE,
            unit=PanelUnit.COUNT,
            no_data="No blocking reason is published: no group is blocked as far as groups are "
            "judged.",
            keys={"flow": "Flow", "group": "Group", "reason": "Reason"},
            columns=(TableColumn("Active", blocked),),
            sort=("Group",),
            fills_on="a blocked group",
        ),
        _panel(
            title="Blocked groups over time",
            description="Since when are groups blocked? Blocked groups of the ten flows with most.",
            kind=Kind.SERIES,
            unit=PanelUnit.COUNT,
            no_data=_NO_GROUP,
            queries={"{{flow}}": topk(10, sum_by(_blocked(), "flow"))},
            colours=limits.flow_colours,
            stacked=True,
            min_interval=_MIN_INTERVAL,
        ),
    )


def _causes() -> tuple[Panel, ...]:
    return (
        _panel(
            title="Oldest offset syncs",
            description="How old are offset syncs? Age of the latest one, the ten oldest topics "
            "or partitions. Without a new one checkpoints cannot advance; an idle topic keeps "
            "its old one.",
            kind=Kind.BARS,
            unit=PanelUnit.SECONDS,
            no_data="No offset sync was read: nothing was replicated yet.",
            queries={
                "{{flow}} {{topic}} {{partition}}": topk(
                    10,
                    seconds_since(
                        max_by(
                            flow_metrics.OFFSET_SYNC_LAST_TIMESTAMP_SECONDS,
                            "flow",
                            "topic",
                            "partition",
                        )
                    ),
                )
            },
            alert="MM2CheckpointStalled",
        ),
        _panel(
            title="Largest offset sync gaps",
            description="How far behind are offset syncs? Records between the latest offset "
            "sync and the replicated position, the ten largest; within the gap translation is "
            "not exact.",
            kind=Kind.BARS,
            unit=PanelUnit.COUNT,
            no_data="No offset sync was read: nothing was replicated yet.",
            queries={
                "{{flow}} {{topic}} {{partition}}": topk(
                    10, max_by(flow_metrics.OFFSET_SYNC_GAP_RECORDS, "flow", "topic", "partition")
                )
            },
            alert="MM2CheckpointStalled",
        ),
    )


def _redelivery(bound: str) -> Vector:
    return max_by(
        _group_series(flow_metrics.FAILOVER_REDELIVERY_RECORDS, equal("bound", bound)), *_KEYS
    )
