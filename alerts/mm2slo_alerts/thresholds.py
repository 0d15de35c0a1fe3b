"""Every figure of the alerts that is not an objective, with its unit and reason.

Objectives and window pairs are in `mm2slo_core.objectives`. docs/alerts.md is generated from these
entries.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mm2slo_core.config.alerting_config import EXPORTER_JOB
from mm2slo_core.retention_headroom import HEADROOM_AHEAD, HEADROOM_LEAST

if TYPE_CHECKING:
    from mm2slo_alerts.rule_model import Scale

_MINUTE: Final = 60.0
_HOUR: Final = 3_600.0
_SECONDS: Final = "seconds"


class Limit(NamedTuple):
    """One threshold, as documented."""

    name: str
    value: float | str
    unit: str
    why: str


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

    stopped_hold: float = _seconds(
        _MINUTE,
        "The exporter reports stopped after 30 s; another minute outlasts the pause of a rebalance "
        "(5 to 30 s) and still pages within four minutes of the stop.",
    )
    flow_lookback: float = _seconds(
        _HOUR,
        "A flow exposed within this time should still be; after it, the flow counts as removed on "
        "purpose.",
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
        24 * _HOUR,
        "How far back the count before the loss is searched: across a day without scrapes, a new "
        "loss is found and an old one does not alert again.",
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
        "Twelve polls without an answer; also the default API timeout of Kafka clients.",
    )
    unreachable_hold: float = _seconds(_MINUTE, "Outlasts the restart of a broker.")
    recently_unreachable_after: float = _seconds(
        45.0,
        "Earlier than any page about the consequences, which takes 90 s, so that it can inhibit "
        "them. Longer than a broker's restart, which must not inhibit any alert.",
    )
    unreachable_errors: float = _seconds(
        5 * _MINUTE, "Failed requests within this time distinguish an outage from an idle exporter."
    )
    outage_in_windows: float = _seconds(
        45 * _MINUTE,
        "How long after an outage budget alerts are inhibited: the longest short window of a page "
        "(30 minutes), its for (5) and keep_firing_for (5), and 5 of margin.",
    )
    outage_recovery: float = _seconds(
        10 * _MINUTE,
        "How long after an outage stopped flows are inhibited: workers of Kafka Connect wait up to "
        "5 minutes for each other (scheduled.rebalance.max.delay.ms) before they assign tasks. A "
        "flow that has not resumed by then needs attention.",
    )
    recently_unreachable_step: float = _seconds(
        30.0, "Resolution of the subquery that looks back: the evaluation interval."
    )

    catching_up_min_lag: float = _seconds(
        _MINUTE, "A smaller lag is no backlog: the default objective of data freshness."
    )
    catching_up_trend: float = _seconds(
        30 * _MINUTE,
        "The range for the trend, as for headroom; alerts after a stop are inhibited for longer, "
        "so that the trend is known by then.",
    )
    catching_up_ahead: float = _seconds(
        2 * _HOUR, "A backlog that takes longer needs a decision, and alerts."
    )
    catching_up_after: float = _seconds(
        3 * _HOUR,
        "How long after a page a lag still counts as its consequence: the extrapolation above, and "
        "an hour of margin.",
    )

    exporter_hold: float = _seconds(3 * _MINUTE, "Outlasts a restart or an update.")
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

    def scaled(self, scale: Scale) -> Thresholds:
        """Return thresholds with every time shortened by *scale*."""
        times: dict[str, Any] = {
            each.name: scale(getattr(self, each.name))
            for each in fields(self)
            if each.metadata["unit"] == _SECONDS
        }
        return replace(self, **times)

    def limits(self) -> tuple[Limit, ...]:
        """Return every threshold with its unit and reason, in order."""
        return tuple(
            Limit(
                each.name,
                getattr(self, each.name),
                each.metadata["unit"],
                each.metadata["why"],
            )
            for each in fields(self)
        )


DEFAULT_THRESHOLDS: Final = Thresholds()
