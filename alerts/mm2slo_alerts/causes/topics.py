"""Causes that concern topics: loss to retention, stalls, drift, hanging transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_alerts.causes.cause import PAGE, TICKET, Cause
from mm2slo_alerts.causes.expressions import (
    TOPIC,
    by_flow,
    flow_stopped,
    latest,
    unless_maintained,
)
from mm2slo_core.catalogue import (
    FLOW_LABELS,
    FLOW_LAG_SECONDS,
    OPEN_TRANSACTION_RECORDS,
    PARTITION_DRIFT,
    REPLICATION_LAG_SECONDS,
    RETENTION_HEADROOM_SECONDS,
    RETENTION_LOST_RECORDS_TOTAL,
    STALLED_PARTITIONS,
    TOPIC_CONFIG_DRIFT,
    TOPIC_MISSING,
    TOPIC_RECREATIONS_TOTAL,
)
from mm2slo_core.promql import Vector, duration, number, on, over, select

if TYPE_CHECKING:
    from mm2slo_alerts.thresholds import Thresholds


def causes(limits: Thresholds) -> tuple[Cause, ...]:
    """The alerts of topics, pages first."""
    return (
        _lost(limits),
        _headroom(limits),
        _stalled(limits),
        _missing(limits),
        _partitions(limits),
        _settings(limits),
        _recreated(limits),
        _transaction(limits),
    )


def _lost(limits: Thresholds) -> Cause:
    """Three ways to see a loss, since a counter's first value is no increase.

    Against the most that any replica said before the window; by the counter's own rise, which
    survives a reset; and by a total that is there when the flow is seen for the first time.
    """
    metric = RETENTION_LOST_RECORDS_TOTAL
    now = by_flow("max", latest(metric, limits), "topic")
    back = f"[{duration(limits.lost_memory)}] offset {duration(limits.lost_window)}"
    past = f"{select(metric)}{back}"
    before = by_flow("max", Vector(f"max_over_time({past})", select(metric).labels), "topic")
    risen = by_flow("max", over("increase", metric, limits.lost_window), "topic")
    return Cause(
        name="MM2RecordsLost",
        severity=PAGE,
        expr=(
            f"(\n  {now}\n  -\n  {before}\n) > 0\n"
            f"or\n{risen} > 0\n"
            f"or\n(\n  {now}\n  unless {on(('flow',), now)}\n  present_over_time({past})\n) > 0"
        ),
        summary=f"Records of {TOPIC} are lost: retention removed them before they were copied.",
        description=(
            'About {{ $value | printf "%.0f" }} records went in the last '
            f"{duration(limits.lost_window)}; neither MirrorMaker 2 nor a restart brings them back."
        ),
        impact="Consumers on {{ $labels.target }} will never see these records.",
        first_step=(
            "Stop the loss from going on: raise retention.ms and retention.bytes of the topic on "
            "{{ $labels.source }} with kafka-configs.sh --alter, then let MirrorMaker 2 catch up."
        ),
    )


def _headroom(limits: Thresholds) -> Cause:
    """By the course of the headroom, and only where more than half of it is used up.

    Both are told alike for every retention: a healthy flow of a topic that keeps ten minutes is
    as quiet as one that keeps a week, and an idle flow has nothing that waits.
    """
    metric = RETENTION_HEADROOM_SECONDS
    room = by_flow("min", latest(metric, limits), "topic")
    age = by_flow("max", latest(REPLICATION_LAG_SECONDS, limits), "topic")
    age_of_flow = by_flow("max", latest(FLOW_LAG_SECONDS, limits))
    course = (
        f"min by ({', '.join((*FLOW_LABELS, 'topic'))}) "
        f"(predict_linear({select(metric)}[{duration(limits.headroom_trend)}], "
        f"{number(limits.headroom_ahead)}))"
    )
    return Cause(
        name="MM2RetentionHeadroomLow",
        severity=PAGE,
        expr=(
            f"{room}\n< (\n  {age}\n  or\n  {age_of_flow}\n)\n"
            f"and\n{course} < {number(limits.headroom_least)}"
        ),
        hold=limits.headroom_hold,
        summary=f"Retention is about to remove records of {TOPIC} before they are copied.",
        description=(
            "The oldest record that waits will be removed in {{ $value | humanizeDuration }}, and "
            "the flow does not gain on it."
        ),
        impact="Records that consumers on {{ $labels.target }} have not seen will be lost.",
        first_step=(
            "Raise retention.ms and retention.bytes of the topic on {{ $labels.source }} with "
            "kafka-configs.sh --alter; then find out why the flow lags."
        ),
    )


def _stalled(limits: Thresholds) -> Cause:
    stalled = by_flow("max", latest(STALLED_PARTITIONS, limits), "topic")
    return Cause(
        name="MM2PartitionStalled",
        severity=PAGE,
        expr=unless_maintained(
            f"{stalled} > 0\nunless {on(('flow',), stalled)} {flow_stopped(limits, ('flow',))}"
        ),
        hold=limits.stalled_hold,
        summary=f"Partitions of {TOPIC} stand still, others move.",
        description=(
            "Partitions in which records wait and the replicated position does not advance: "
            '{{ $value | printf "%.0f" }}.'
        ),
        impact=(
            "Consumers on {{ $labels.target }} get nothing new of these partitions, and all of the "
            "others."
        ),
        first_step=(
            'Query mm2_task_state{flow="{{ $labels.flow }}",state="failed"} == 1 for a failed '
            "task, then read MirrorMaker 2's log for the topic's name."
        ),
    )


def _missing(limits: Thresholds) -> Cause:
    missing = by_flow("max", latest(TOPIC_MISSING, limits), "topic")
    return Cause(
        name="MM2TopicMissing",
        severity=TICKET,
        expr=f"{missing} > 0",
        hold=limits.drift_hold,
        summary=f"The target has no copy of {TOPIC}.",
        description=(
            "Topics of the flow that {{ $labels.target }} does not have: "
            '{{ $value | printf "%.0f" }}.'
        ),
        impact="Consumers that fail over to {{ $labels.target }} find nothing of it.",
        first_step=(
            "Read MirrorMaker 2's log for a refused creation, and check that it may create topics "
            "on {{ $labels.target }} (kafka-acls.sh --list)."
        ),
    )


def _partitions(limits: Thresholds) -> Cause:
    drift = by_flow("max", latest(PARTITION_DRIFT, limits), "topic")
    return Cause(
        name="MM2PartitionDrift",
        severity=TICKET,
        expr=f"{drift} > 0",
        hold=limits.drift_hold,
        summary=f"The copy of {TOPIC} has another number of partitions.",
        description='Partitions by which the clusters differ: {{ $value | printf "%.0f" }}.',
        impact=(
            "Partitions without a copy are not replicated, and records of one key may lie in "
            "different partitions on the two clusters."
        ),
        first_step=(
            "Compare both with kafka-topics.sh --describe; where the target has fewer, add them "
            "with --alter --partitions."
        ),
    )


def _settings(limits: Thresholds) -> Cause:
    drift = by_flow("max", latest(TOPIC_CONFIG_DRIFT, limits), "topic", "config")
    return Cause(
        name="MM2TopicConfigDrift",
        severity=TICKET,
        expr=f"{drift} > 0",
        hold=limits.config_drift_hold,
        summary=f"The setting {{{{ $labels.config }}}} of {TOPIC} differs on the target.",
        description=(
            "Topics in which it differs, though MirrorMaker 2 is to copy it: "
            '{{ $value | printf "%.0f" }}.'
        ),
        impact=(
            "After a failover the topic behaves differently: it may keep records for a shorter "
            "time, or refuse those that the source takes."
        ),
        first_step=(
            "Compare both with kafka-configs.sh --describe --entity-type topics, and check that "
            "MirrorMaker 2 may alter settings on {{ $labels.target }}."
        ),
    )


def _recreated(limits: Thresholds) -> Cause:
    born = by_flow(
        "max", over("increase", TOPIC_RECREATIONS_TOTAL, limits.recreated_window), "topic", "side"
    )
    return Cause(
        name="MM2TopicRecreated",
        severity=TICKET,
        expr=f"{born} > 0",
        summary=f"The {{{{ $labels.side }}}} side of {TOPIC} was deleted and created again.",
        description=(
            f"Times in the last {duration(limits.recreated_window)}: "
            '{{ $value | printf "%.0f" }}. Its offsets start anew; those that MirrorMaker 2 and '
            "groups remember mean other records."
        ),
        impact=(
            "Records may be skipped or read twice, and a group that fails over may start at a "
            "wrong place."
        ),
        first_step=(
            "Find out who deleted the topic; then compare both clusters: mm2slo audit --config "
            "mm2slo.yaml --flow '{{ $labels.flow }}'."
        ),
    )


def _transaction(limits: Thresholds) -> Cause:
    """A commit lets what is held back shrink; where it only grows, one transaction hangs."""
    held = over("min_over_time", OPEN_TRANSACTION_RECORDS, limits.transaction_window)
    shrunk = f"resets({select(OPEN_TRANSACTION_RECORDS)}[{duration(limits.transaction_window)}])"
    labels = ", ".join((*FLOW_LABELS, "topic"))
    return Cause(
        name="MM2TransactionHangs",
        severity=TICKET,
        expr=f"max by ({labels}) (\n  {held} > 0\n  and\n  {shrunk} == 0\n)",
        hold=limits.transaction_hold,
        summary=f"An open transaction holds back records of {TOPIC}.",
        description=(
            f"For {duration(limits.transaction_hold)} and more, "
            '{{ $value | printf "%.0f" }} records or more lie behind a transaction that is neither '
            "committed nor aborted."
        ),
        impact=(
            "Consumers that read committed records get nothing of these partitions, on "
            "{{ $labels.source }} and, where MirrorMaker 2 reads committed, on "
            "{{ $labels.target }}."
        ),
        first_step=(
            "Run kafka-transactions.sh find-hanging against {{ $labels.source }}, then abort with "
            "kafka-transactions.sh abort."
        ),
    )
