"""Every figure of the alerts that is not an objective, with its unit and reason.

Objectives and window pairs are in `mm2slo_core.objectives`. docs/alerts.md is generated from these
entries.
"""

from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Self

from mm2slo_alerts.alert_rules import Scale
from mm2slo_core.config.alerting_config import EXPORTER_JOB
from mm2slo_core.indicators.replication_lag import HEADROOM_AHEAD, HEADROOM_LEAST, LOSS_LOOKBACK

_MINUTE: Final = 60.0
_HOUR: Final = 3_600.0
_SECONDS: Final = "seconds"


def _limit(default: Any, unit: str, why: str) -> Any:
    return field(default=default, metadata={"unit": unit, "why": why})


def _seconds(default: float, why: str) -> Any:
    return _limit(default, _SECONDS, why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Limits and durations of the alerts. Times are in seconds."""

    exporter_job: str = _limit(
        EXPORTER_JOB,
        "label",
        "The job under which Prometheus scrapes the exporters: `alerting.exporter_job`.",
    )
    interval: float = _seconds(
        30.0, "How often alerts are evaluated: twice the usual scrape interval of 15 s."
    )
    bridge: float = _seconds(
        2 * _MINUTE,
        "How long a gauge's last value bridges failed scrapes: one failed scrape must not reset an "
        "alert's for, and a minute is the longest usual scrape interval.",
    )

    stopped_after: float = _seconds(
        30.0, "The exporter reports a stop after this time, the default of stall_after."
    )
    stopped_hold: float = _seconds(
        _MINUTE,
        "Outlasts the pause of a rebalance (5 to 30 s) and still pages within four minutes of the "
        "stop. The alert lasts for stopped_after and stopped_hold after the stop, and is therefore "
        "as long as the stop.",
    )
    resume_grace: float = _seconds(
        5 * _MINUTE,
        "How long MirrorMaker 2 may take to resume after the outage of a cluster: its workers may "
        "wait for others (scheduled.rebalance.max.delay.ms, 5 minutes by default).",
    )
    outage_memory: float = _seconds(
        15 * _MINUTE,
        "How long after a stop or an outage its consequences raise no alert: the short window of "
        "pages (5 minutes), the canaries' deadline (1), evaluations (1), and what the trend of a "
        "backlog (10) needs to fall. Also how long a stop goes on without metrics.",
    )
    recovery_limit: float = _seconds(
        3 * _HOUR,
        "How long after a stop a lag still counts as its consequence, and the time in which it "
        "must be gone at its trend; a backlog that takes longer needs a decision, and alerts.",
    )
    recovery_min_lag: float = _seconds(
        _MINUTE,
        "A smaller lag is no backlog: the default freshness threshold. With a configuration, the "
        "smallest threshold of the flow.",
    )
    recovery_trend: float = _seconds(
        10 * _MINUTE,
        "The range for the trend; shorter than outage_memory, which bridges the time until it "
        "falls.",
    )
    flow_memory: float = _seconds(
        7 * 24 * _HOUR,
        "How long a flow is missed without a configuration: longer than a weekend; after it, the "
        "flow counts as removed on purpose.",
    )
    flow_memory_gap: float = _seconds(
        _HOUR, "An outage of Prometheus up to which it remembers the flows."
    )
    observed_age: float = _seconds(
        3 * _MINUTE,
        "The exporter evaluates a flow with each poll, every 5 s by default, and some poll once a "
        "minute.",
    )
    absent_hold: float = _seconds(
        3 * _MINUTE, "Outlasts a restart of the exporter, which takes well under a minute."
    )

    lost_window: float = _seconds(
        _HOUR, "A loss stays visible for an hour, long enough for on-call to see it."
    )
    lost_lookback: float = _seconds(
        LOSS_LOOKBACK,
        "How far back the count before the loss is searched: across a day without scrapes, a new "
        "loss is found and an old one does not alert again.",
    )
    lost_pending: float = _seconds(
        5 * _MINUTE,
        "A loss is counted within seconds unless its state record cannot be written. Outlasts a "
        "restart of the target's brokers.",
    )
    headroom_ahead: float = _seconds(
        HEADROOM_AHEAD,
        "How far the headroom is extrapolated: time to respond, find the cause and replicate the "
        "backlog, or to raise the retention.",
    )
    headroom_trend: float = _seconds(
        30 * _MINUTE,
        "The range for the trend: shorter ones follow each batch, longer ones detect a stop late.",
    )
    headroom_min: float = _seconds(
        HEADROOM_LEAST,
        "Required headroom at that time; a flow with less loses records at its next pause.",
    )
    headroom_hold: float = _seconds(
        5 * _MINUTE, "Outlasts a burst that is replicated within minutes."
    )

    stalled_hold: float = _seconds(
        5 * _MINUTE,
        "The exporter reports stalled after 30 s; five minutes outlast a rebalance, a leader "
        "election and the restart of a task.",
    )
    drift_hold: float = _seconds(
        20 * _MINUTE,
        "MirrorMaker 2 refreshes topics and partitions every 10 minutes by default; after two "
        "refreshes it will not create them by itself.",
    )
    config_drift_hold: float = _seconds(
        30 * _MINUTE,
        "MirrorMaker 2 syncs settings every 10 minutes by default, and the exporter reads them "
        "every 5.",
    )
    recreated_window: float = _seconds(_HOUR, "How long one re-creation stays visible.")
    transaction_window: float = _seconds(
        5 * _MINUTE,
        "The range in which the records held back must not shrink; each commit shrinks them.",
    )
    transaction_hold: float = _seconds(
        30 * _MINUTE,
        "Twice the longest transaction timeout that brokers allow by default (15 minutes): a "
        "transaction that is still open is stuck.",
    )
    moved_window: float = _seconds(_HOUR, "How long one moved canary stays visible.")
    canary_lost_window: float = _seconds(_HOUR, "How long one lost canary stays visible.")

    connector_hold: float = _seconds(
        3 * _MINUTE, "Outlasts a restart of the connector by an operator."
    )
    task_hold: float = _seconds(
        5 * _MINUTE, "Outlasts a restart of the task, manual or by an operator."
    )
    task_keep: float = _seconds(10 * _MINUTE, "A task that fails repeatedly is one alert, not ten.")
    checkpoint_age: float = _seconds(
        15 * _MINUTE,
        "Fifteen times the default checkpoint interval; also the range in which the group's "
        "commits must have advanced.",
    )
    checkpoint_moved: float = _limit(
        200,
        "records",
        "Twice the default of offset.lag.max: below it a healthy MirrorMaker 2 may write no offset "
        "sync, and then no checkpoint.",
    )
    checkpoint_hold: float = _seconds(5 * _MINUTE, "Allows the next checkpoint to arrive.")
    failover_hold: float = _seconds(
        15 * _MINUTE, "A group that starts or is reset is not ready for some minutes."
    )

    unreachable_after: float = _seconds(
        _MINUTE,
        "Twelve polls without an answer; also the default API timeout of Kafka clients. With a "
        "configuration, at least two polls.",
    )
    unreachable_hold: float = _seconds(
        _MINUTE,
        "Outlasts the restart of a broker. The alert lasts for unreachable_after and "
        "unreachable_hold after the outage, and is therefore as long as the outage.",
    )
    unreachable_errors: float = _seconds(
        5 * _MINUTE, "Failed requests within this time distinguish an outage from an idle exporter."
    )
    flap_share: float = _limit(
        0.1, "share", "A cluster that is away for a tenth of the time stops flows again and again."
    )
    flap_window: float = _seconds(30 * _MINUTE, "The time of which flap_share is a share.")
    flap_changes: float = _limit(
        3,
        "changes",
        "Away, back, and away again: one outage that is over must resolve. Outages that alert "
        "by themselves count for no share.",
    )
    flap_after: float = _seconds(
        20.0, "Several polls without an answer; with a configuration, at least two."
    )
    flap_errors: float = _seconds(
        2 * _MINUTE, "One failed request must not count for longer than the outages it is part of."
    )
    flap_step: float = _seconds(15.0, "Resolution of the share: the usual scrape interval.")

    exporter_hold: float = _seconds(
        3 * _MINUTE,
        "Outlasts a restart or an update; after the exporter's return, the alert lasts until its "
        "flows are measured again.",
    )
    loops_window: float = _seconds(
        15 * _MINUTE, "How long one failure stays visible: each is a bug, also if the loop goes on."
    )
    failing_window: float = _seconds(
        15 * _MINUTE, "Three runs of the slowest stage (topic settings, every 5 minutes)."
    )
    failing_min: float = _limit(2, "failures", "A single failure is a leader election.")
    failing_hold: float = _seconds(
        20 * _MINUTE, "Longer than failing_window, so that one burst of failures is no ticket."
    )
    rules_window: float = _seconds(15 * _MINUTE, "Holds 30 evaluations of the alerts.")
    rules_missed: float = _limit(
        3, "evaluations", "A tenth of the evaluations in rules_window: alerts are late by then."
    )
    rules_hold: float = _seconds(5 * _MINUTE, "Outlasts a reload with new rules.")
    delivery_window: float = _seconds(
        15 * _MINUTE,
        "Alertmanager counts a message as failed after its last retry: each one is lost.",
    )
    shipping_lag: float = _seconds(
        10 * _MINUTE, "Outlasts a rolling restart of Splunk's indexers; usual lag is a second."
    )
    shipping_hold: float = _seconds(5 * _MINUTE, "Outlasts a restart or an update.")

    coverage_min: float = _limit(
        0.9,
        "share",
        "With more than a tenth of an hour unknown, budget figures are unreliable.",
    )
    coverage_hold: float = _seconds(
        15 * _MINUTE, "Outlasts a restart of the exporter and a short outage."
    )
    exhausted_hold: float = _seconds(
        5 * _MINUTE, "The remaining budget changes every 5 minutes: one more step must confirm it."
    )

    def scaled(self, scale: Scale) -> Self:
        """Return thresholds with every time shortened by *scale*."""
        times: dict[str, Any] = {
            each.name: scale(getattr(self, each.name))
            for each in fields(self)
            if each.metadata["unit"] == _SECONDS
        }
        return replace(self, **times)


DEFAULT_THRESHOLDS: Final = Thresholds()
