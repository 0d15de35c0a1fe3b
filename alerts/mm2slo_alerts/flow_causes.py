"""Causes that affect a whole flow: stopped, not measured, connectors failed."""

from collections.abc import Collection, Iterator, Mapping

from mm2slo_alerts.alert_rules import RecordingRule
from mm2slo_alerts.alert_thresholds import Thresholds
from mm2slo_alerts.cause_model import (
    COUNT,
    PAGE,
    TICKET,
    Cause,
    Outages,
    by_flow,
    flow_stopped,
    interrupted,
    latest,
    unless_maintained,
)
from mm2slo_alerts.objective_series import flow_pattern
from mm2slo_core.catalogue.flow_metrics import (
    CANARY_LOST_TOTAL,
    CANARY_MOVED_TOTAL,
    CONNECTOR_STATE,
    FLOW_INFO,
    FLOW_LAG_SECONDS,
    FLOW_OBSERVED_TIMESTAMP_SECONDS,
    FLOW_STATE,
    TASK_STATE,
)
from mm2slo_core.catalogue.metric import FLOW_LABELS
from mm2slo_core.catalogue.prometheus_series import (
    CLUSTER_UNREACHABLE,
    FLOW_RECOVERING,
    FLOW_SEEN,
    FLOW_STOPPED,
    FLOW_UNREACHABLE,
)
from mm2slo_core.catalogue.promql import (
    Vector,
    aggregate,
    duration,
    equal,
    matching,
    number,
    on,
    over,
    quoted,
    select,
)
from mm2slo_core.topology import Flow


def build_flow_causes(limits: Thresholds, expected: Collection[Flow]) -> tuple[Cause, ...]:
    """Return the alerts; *expected* are the configured flows, if the rules are for these."""
    return (
        _stopped(limits),
        _absent(limits, expected),
        _connector(limits),
        _task(limits),
        _canaries_lost(limits),
        _affinity(limits),
    )


def build_flow_recordings(
    limits: Thresholds, expected: Mapping[Flow, float]
) -> tuple[RecordingRule, ...]:
    """Return the series that MM2FlowStopped and MM2FlowMetricsAbsent look back at.

    *expected* are the configured flows with their freshness thresholds (seconds, scaled).
    """
    rules = [
        RecordingRule(record=FLOW_UNREACHABLE.name, expr=_unreachable(limits)),
        RecordingRule(record=FLOW_STOPPED.name, expr=_stopped_since(limits)),
        RecordingRule(
            record=FLOW_RECOVERING.name, expr="\nor\n".join(_recovering(limits, expected))
        ),
    ]
    if not expected:
        rules.append(_seen(limits))
    return tuple(rules)


def _unreachable(limits: Thresholds) -> str:
    known = over("present_over_time", FLOW_INFO, limits.outage_memory)
    away = select(CLUSTER_UNREACHABLE)
    roles = " or ".join(
        f"{known} and {on((role,), known, away)} {away}" for role in FLOW_LABELS[1:]
    )
    return str(by_flow("group", Vector(roles, known.labels)))


def _stops(limits: Thresholds) -> Outages:
    after, hold = limits.stopped_after, limits.stopped_hold
    return Outages(FLOW_STOPPED, "flow", after, hold, limits.interval)


def _stopped_since(limits: Thresholds) -> str:
    """A stop ends with the state running or idle; an exporter that restarts does not know yet."""
    stopped = equal("state", "stopped")
    moving = latest(FLOW_STATE, limits, matching("state", "running|idle"))
    always = over("min_over_time", FLOW_STATE, limits.stopped_hold, stopped)
    # With one scrape a minute, that range holds one sample.
    before = f"{latest(FLOW_STATE, limits, stopped)}"[:-1]
    before = f"{before} offset {duration(limits.stopped_hold)})"
    held = by_flow("max", Vector(f"{always} * {before}", always.labels))
    resuming = over("present_over_time", FLOW_UNREACHABLE, limits.resume_grace)
    return _stops(limits).expression(
        starts=f"{held} == 1\nunless on (flow) {resuming}",
        goes_on=flow_stopped(limits),
        ended=f"{aggregate('max', moving, ('flow',))} == 1",
        scraped=str(over("present_over_time", FLOW_STATE, limits.outage_memory, stopped)),
    )


def _recovering(limits: Thresholds, expected: Mapping[Flow, float]) -> Iterator[str]:
    """One expression per freshness threshold; flows are named only if there are several."""
    stopped = interrupted(limits.recovery_limit, recovering=False)
    thresholds = sorted(set(expected.values())) or [limits.recovery_min_lag]
    for threshold in thresholds:
        flows = [flow.label for flow, each in sorted(expected.items()) if each == threshold]
        of_flows = [matching("flow", flow_pattern(flows))] if len(thresholds) > 1 else []
        lag = by_flow("max", latest(FLOW_LAG_SECONDS, limits, *of_flows))
        past = f"{select(FLOW_LAG_SECONDS, *of_flows)}[{duration(limits.recovery_trend)}]"
        late = number(threshold)
        yield (
            f"{lag} > {late}\n"
            f"and on (flow) predict_linear({past}, {number(limits.recovery_limit)}) < {late}\n"
            f"and on (flow) {stopped}"
        )


def _seen(limits: Thresholds) -> RecordingRule:
    """Carries the time of the last scrape on, which costs less than a range of a week."""
    now = aggregate(
        "max", Vector(f"timestamp({select(FLOW_INFO)})", select(FLOW_INFO).labels), FLOW_LABELS
    )
    before = over("last_over_time", FLOW_SEEN, limits.flow_memory_gap)
    return RecordingRule(
        record=FLOW_SEEN.name,
        expr=f"{now}\nor\n({before} > time() - {number(limits.flow_memory)})",
    )


def _stopped(limits: Thresholds) -> Cause:
    """The value is the time since the incident started."""
    stops = _stops(limits)
    return Cause(
        name="MM2FlowStopped",
        severity=PAGE,
        expr=unless_maintained(f"time() - {select(FLOW_STOPPED)}", limits.stopped_hold),
        keep=stops.keep,
        summary=f"Flow {{{{ $labels.flow }}}} {stops.times('has stopped', 'has stopped')}.",
        lasted=stops.lasted(),
        impact=(
            "Consumers on {{ $labels.target }} read nothing new from {{ $labels.source }}, and a "
            "failover now would leave the backlog unreplicated."
        ),
        action=(
            "Check that MirrorMaker 2 is running and read its log; query "
            'mm2_connector_state{flow="{{ $labels.flow }}"} == 1 for a paused or failed connector.'
        ),
    )


def _absent(limits: Thresholds, expected: Collection[Flow]) -> Cause:
    """Not scraped, or scraped and no longer evaluated by any exporter.

    *expected* are the configured flows; without them, flows seen within `flow_memory`.
    """
    known = _configured(expected) if expected else select(FLOW_SEEN)
    observed = latest(FLOW_OBSERVED_TIMESTAMP_SECONDS, limits)
    return Cause(
        name="MM2FlowMetricsAbsent",
        severity=PAGE,
        expr=(
            f"{known}\nunless {on(('flow',), known, observed)}\n"
            f"{observed} > time() - {number(limits.observed_age)}"
        ),
        hold=limits.absent_hold,
        summary=(
            "Flow {{ $labels.flow }} has had no current metrics for "
            f"{duration(limits.absent_hold)} or more."
        ),
        impact=(
            "Whether records reach {{ $labels.target }} is unknown, and no other alert of this "
            "flow can fire."
        ),
        action=(
            f'Query up{{job="{limits.exporter_job}"}} and read the exporter\'s log; if the '
            "flow was removed on purpose, "
            + ("generate the rules again." if expected else "silence this alert for a week.")
        ),
    )


def _configured(flows: Collection[Flow]) -> Vector:
    """A series for each of *flows*; source and target are taken from the flow's label."""
    each = "\n    or\n    ".join(
        f'label_replace(vector(1), "flow", {quoted(flow.label)}, "", "")' for flow in sorted(flows)
    )
    return Vector(
        "label_replace(\n  label_replace(\n    "
        f'{each},\n    "source", "$1", "flow", "(.+)->.+"\n  ),\n'
        '  "target", "$1", "flow", ".+->(.+)"\n)',
        FLOW_LABELS,
    )


def _connector(limits: Thresholds) -> Cause:
    failed = by_flow("max", latest(CONNECTOR_STATE, limits, equal("state", "failed")), "connector")
    return Cause(
        name="MM2ConnectorFailed",
        severity=PAGE,
        expr=unless_maintained(f"{failed} == 1"),
        hold=limits.connector_hold,
        summary="Connector {{ $labels.connector }} of flow {{ $labels.flow }} has failed.",
        impact=(
            "New topics, partitions and groups are not replicated, and the next rebalance may stop "
            "replication."
        ),
        action=(
            "Read MirrorMaker 2's log for the connector's exception, fix its cause, then restart "
            "the connector (POST /connectors/{{ $labels.connector }}/restart) or the process."
        ),
    )


def _task(limits: Thresholds) -> Cause:
    failed = by_flow(
        "max", latest(TASK_STATE, limits, equal("state", "failed")), "connector", "task"
    )
    return Cause(
        name="MM2TaskFailed",
        severity=TICKET,
        expr=unless_maintained(
            f"{failed} == 1\nunless on (flow) {interrupted(limits.outage_memory, recovering=False)}"
        ),
        hold=limits.task_hold,
        keep=limits.task_keep,
        summary=(
            "Task {{ $labels.task }} of {{ $labels.connector }} in flow {{ $labels.flow }} has "
            "failed."
        ),
        impact="The partitions of this task are not replicated; those of other tasks are.",
        action=(
            "Read MirrorMaker 2's log for the task's exception, fix its cause, then restart the "
            "task (POST /connectors/{{ $labels.connector }}/tasks/{{ $labels.task }}/restart) or "
            "the process."
        ),
    )


def _canaries_lost(limits: Thresholds) -> Cause:
    lost = by_flow("sum", over("increase", CANARY_LOST_TOTAL, limits.canary_lost_window))
    return Cause(
        name="MM2CanaryRecordsLost",
        severity=TICKET,
        expr=f"{lost} > 0",
        summary=(
            "Flow {{ $labels.flow }} has lost canary records in the last "
            f"{duration(limits.canary_lost_window)}: {COUNT}."
        ),
        impact="User records may be missing on {{ $labels.target }} in the same way.",
        action=(
            "Compare both clusters for that time: mm2slo audit --config mm2slo.yaml "
            "--flow '{{ $labels.flow }}'."
        ),
    )


def _affinity(limits: Thresholds) -> Cause:
    moved = by_flow("sum", over("increase", CANARY_MOVED_TOTAL, limits.moved_window))
    return Cause(
        name="MM2AffinityBroken",
        severity=TICKET,
        expr=f"{moved} > 0",
        summary=(
            "Flow {{ $labels.flow }} replicated canaries into other partitions in the last "
            f"{duration(limits.moved_window)}: {COUNT}."
        ),
        impact=(
            "Consumers on {{ $labels.target }} may read the records of one key out of order, or on "
            "two members of a group."
        ),
        action=(
            "Look for a transform (SMT) that changes keys or partitions, and for another producer "
            "on the target topic."
        ),
    )
