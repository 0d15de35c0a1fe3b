"""Causes that affect topics and groups: loss, stalls, drift, stuck transactions, failover."""

from typing import Final

from mm2slo_alerts.alert_rules import AlertSubject
from mm2slo_alerts.alert_thresholds import Thresholds
from mm2slo_alerts.cause_model import (
    COUNT,
    PAGE,
    TICKET,
    TOPIC,
    Cause,
    by_flow,
    flow_stopped,
    interrupted,
    latest,
    unless_maintained,
)
from mm2slo_core.catalogue.flow_metrics import (
    CHECKPOINT_AGE_SECONDS,
    CHECKPOINT_LAG_RECORDS,
    FAILOVER_BLOCKED,
    FAILOVER_READY,
    FLOW_LAG_SECONDS,
    OPEN_TRANSACTION_RECORDS,
    PARTITION_DRIFT,
    REPLICATION_LAG_SECONDS,
    RETENTION_HEADROOM_SECONDS,
    RETENTION_LOST_RECORDS_TOTAL,
    RETENTION_PENDING_LOST_RECORDS,
    STALLED_PARTITIONS,
    TOPIC_CONFIG_DRIFT,
    TOPIC_MISSING,
    TOPIC_RECREATIONS_TOTAL,
)
from mm2slo_core.catalogue.metric import FLOW_LABELS
from mm2slo_core.catalogue.promql import (
    Vector,
    aggregate,
    continued_increase,
    duration,
    number,
    on,
    over,
    select,
)

_TOPICS = (
    f"{{{{ with $labels.topic }}}}topic {{{{ . }}}}{{{{ else }}}}{COUNT} topics{{{{ end }}}}"
    " of {{ $labels.flow }}"
)
"""The topic, or the number of topics where the exporter's granularity omits it."""


def build_topic_causes(limits: Thresholds) -> tuple[Cause, ...]:
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
    """Detects a counted loss, and one that stays pending because no state record can be written."""
    metric = RETENTION_LOST_RECORDS_TOTAL
    now = by_flow("max", latest(metric, limits), "topic")
    window = duration(limits.lost_window)
    counted = continued_increase(now, metric, limits.lost_window, limits.lost_lookback)
    pending = RETENTION_PENDING_LOST_RECORDS
    uncounted = by_flow("max", over("min_over_time", pending, limits.lost_pending))
    waited = f"max_over_time({select(pending)}[{window}] offset {window})"
    earlier = by_flow("max", Vector(waited, select(pending).labels))
    return Cause(
        name="MM2RecordsLost",
        severity=PAGE,
        expr=(
            f"{counted}\n"
            f"or\n(\n  {uncounted}\n  - (\n  {earlier}\n  or\n  0 * {uncounted}\n  )\n) > 0"
        ),
        summary=(
            f"About {COUNT} records of {TOPIC} were removed or skipped before replication in the "
            f"last {window}."
        ),
        impact="Consumers on {{ $labels.target }} will never see these records.",
        action=(
            "Raise retention.ms and retention.bytes of the topic on {{ $labels.source }} with "
            "kafka-configs.sh --alter, then let MirrorMaker 2 catch up."
        ),
    )


def _headroom(limits: Thresholds) -> Cause:
    """Predicts the headroom, and requires that more than half of it is used.

    Both work for any retention: a healthy flow of a topic with ten minutes of retention does not
    alert, and an idle flow has no unreplicated records.
    """
    metric = RETENTION_HEADROOM_SECONDS
    room = by_flow("min", latest(metric, limits), "topic")
    age = by_flow("max", latest(REPLICATION_LAG_SECONDS, limits), "topic")
    age_of_flow = by_flow("max", latest(FLOW_LAG_SECONDS, limits))
    predicted = (
        f"min by ({', '.join((*FLOW_LABELS, 'topic'))}) "
        f"(predict_linear({select(metric)}[{duration(limits.headroom_trend)}], "
        f"{number(limits.headroom_ahead)}))"
    )
    return Cause(
        name="MM2RetentionHeadroomLow",
        severity=PAGE,
        expr=(
            f"{room}\n< (\n  {age}\n  or\n  {age_of_flow}\n)\n"
            f"and\n{predicted} < {number(limits.headroom_min)}"
        ),
        hold=limits.headroom_hold,
        summary=(
            f"Retention will remove unreplicated records of {TOPIC} in "
            "{{ $value | humanizeDuration }}."
        ),
        impact="Records that consumers on {{ $labels.target }} have not seen will be lost.",
        action=(
            "Raise retention.ms and retention.bytes of the topic on {{ $labels.source }} with "
            "kafka-configs.sh --alter, then find out why the flow lags."
        ),
    )


def _stalled(limits: Thresholds) -> Cause:
    stalled = by_flow("max", latest(STALLED_PARTITIONS, limits), "topic")
    return Cause(
        name="MM2PartitionStalled",
        severity=PAGE,
        expr=unless_maintained(
            f"{stalled} > 0\nunless {on(('flow',), stalled)} {flow_stopped(limits)}"
        ),
        hold=limits.stalled_hold,
        summary=f"Partitions of {TOPIC} are stalled while others progress: {COUNT}.",
        impact=(
            "Consumers on {{ $labels.target }} get no new records of these partitions, but all of "
            "the others."
        ),
        action=(
            'Query mm2_task_state{flow="{{ $labels.flow }}",state="failed"} == 1 for a failed '
            "task, then search MirrorMaker 2's log for the topic name."
        ),
    )


def _missing(limits: Thresholds) -> Cause:
    missing = by_flow("max", latest(TOPIC_MISSING, limits), "topic")
    return Cause(
        name="MM2TopicMissing",
        severity=TICKET,
        expr=f"{missing} > 0",
        hold=limits.drift_hold,
        summary=f"Cluster {{{{ $labels.target }}}} has no copy of {_TOPICS}.",
        impact="Consumers that fail over to {{ $labels.target }} do not find these records.",
        action=(
            "Search MirrorMaker 2's log for a refused topic creation, and check with kafka-acls.sh "
            "--list that it may create topics on {{ $labels.target }}."
        ),
    )


def _partitions(limits: Thresholds) -> Cause:
    drift = by_flow("max", latest(PARTITION_DRIFT, limits), "topic")
    return Cause(
        name="MM2PartitionDrift",
        severity=TICKET,
        expr=f"{drift} > 0",
        hold=limits.drift_hold,
        summary=f"The copy of {TOPIC} has a different partition count (difference: {COUNT}).",
        impact=(
            "Partitions without a copy are not replicated, and records of one key may be in "
            "different partitions on the two clusters."
        ),
        action=(
            "Compare both topics with kafka-topics.sh --describe, and add partitions with --alter "
            "--partitions where the target has fewer."
        ),
    )


def _settings(limits: Thresholds) -> Cause:
    drift = by_flow("max", latest(TOPIC_CONFIG_DRIFT, limits), "topic", "config")
    return Cause(
        name="MM2TopicConfigDrift",
        severity=TICKET,
        expr=f"{drift} > 0",
        hold=limits.config_drift_hold,
        summary=f"Setting {{{{ $labels.config }}}} differs on the target for {_TOPICS}.",
        impact=(
            "After a failover the topic may keep records for a shorter time, or reject records "
            "that the source accepts."
        ),
        action=(
            "Compare both topics with kafka-configs.sh --describe --entity-type topics, and check "
            "that MirrorMaker 2 may alter settings on {{ $labels.target }}."
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
        summary=(
            f"The {{{{ $labels.side }}}} side of {TOPIC} was re-created in the last "
            f"{duration(limits.recreated_window)} (count: {COUNT})."
        ),
        impact=(
            "Records may be skipped or read twice, and a group that fails over may resume at a "
            "wrong offset."
        ),
        action=(
            "Find out who deleted the topic, then compare both clusters: mm2slo audit --config "
            "mm2slo.yaml --flow '{{ $labels.flow }}'."
        ),
    )


def _transaction(limits: Thresholds) -> Cause:
    """Each commit reduces the records held back; if they only grow, a transaction is stuck."""
    held = over("min_over_time", OPEN_TRANSACTION_RECORDS, limits.transaction_window)
    # resets() counts every decrease between two samples, also of a gauge (Prometheus's functions).
    shrunk = f"resets({select(OPEN_TRANSACTION_RECORDS)}[{duration(limits.transaction_window)}])"
    labels = ", ".join((*FLOW_LABELS, "topic"))
    return Cause(
        name="MM2TransactionStuck",
        severity=TICKET,
        expr=f"max by ({labels}) (\n  {held} > 0\n  and\n  {shrunk} == 0\n)",
        hold=limits.transaction_hold,
        summary=(
            f"An open transaction has held back {COUNT} or more records of {TOPIC} for at least "
            f"{duration(limits.transaction_hold)}."
        ),
        impact=(
            "Consumers with isolation.level=read_committed get no new records of these partitions "
            "on {{ $labels.source }}, nor on {{ $labels.target }} if MirrorMaker 2 reads committed "
            "records."
        ),
        action=(
            "Run kafka-transactions.sh find-hanging against {{ $labels.source }}, then abort the "
            "transaction with kafka-transactions.sh abort."
        ),
    )


_BLOCKED = f"max by (reason) ({FAILOVER_BLOCKED.name}{{flow=%q,group=%q}}) == 1"

_REASONS: Final = (
    f'{{{{ range $at, $found := printf "{_BLOCKED}" $labels.flow $labels.group | query '
    '| sortByLabel "reason" }}{{ if $at }}, {{ end }}{{ $found | label "reason" }}'
    "{{ else }}unknown{{ end }}"
)


def build_failover_causes(limits: Thresholds) -> tuple[Cause, ...]:
    return (_checkpoint(limits), _not_ready(limits))


def _checkpoint(limits: Thresholds) -> Cause:
    """The age of the newest checkpoint is not enough: an idle group needs no new one.

    Without a new checkpoint, the lag behind the newest one rises as the group commits.
    """
    moved = aggregate(
        "sum",
        over("delta", CHECKPOINT_LAG_RECORDS, limits.checkpoint_age),
        (*FLOW_LABELS, "group", "instance"),
    )
    moved_most = by_flow("max", moved, "group")
    age = by_flow("min", latest(CHECKPOINT_AGE_SECONDS, limits), "group")
    return Cause(
        name="MM2CheckpointStalled",
        severity=TICKET,
        subject=AlertSubject.FAILOVER,
        expr=unless_maintained(
            f"{moved_most} > {number(limits.checkpoint_moved)}\n"
            f"and\n{age} > {number(limits.checkpoint_age)}\n"
            f"unless on (flow) {interrupted(limits.outage_memory)}"
        ),
        hold=limits.checkpoint_hold,
        summary=(
            "Checkpoints of group {{ $labels.group }} in flow {{ $labels.flow }} are stalled: the "
            f"group advanced by {COUNT} records without a new one."
        ),
        impact=(
            "After a failover the group would read all records since the last checkpoint again."
        ),
        action=(
            'Query mm2_connector_state{flow="{{ $labels.flow }}"} == 1 for the checkpoint '
            'connector, and mm2_failover_blocked{group="{{ $labels.group }}"} == 1 for the reason.'
        ),
    )


def _not_ready(limits: Thresholds) -> Cause:
    ready = by_flow("max", latest(FAILOVER_READY, limits), "group")
    return Cause(
        name="MM2FailoverNotReady",
        severity=TICKET,
        subject=AlertSubject.FAILOVER,
        expr=unless_maintained(
            f"{ready} == 0\nunless on (flow) {interrupted(limits.outage_memory)}"
        ),
        hold=limits.failover_hold,
        summary=(
            "Group {{ $labels.group }} is not ready to fail over ({{ $labels.flow }}): "
            f"{_REASONS}."
        ),
        impact=(
            "If {{ $labels.source }} failed now, the group would skip records, read too many "
            "again, or not start."
        ),
        action=(
            'Query mm2_failover_redelivery_records{flow="{{ $labels.flow }}",'
            'group="{{ $labels.group }}"} and look up the reasons in the runbook.'
        ),
    )
