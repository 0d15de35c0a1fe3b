"""Every number of the alerts that is not an objective, with its unit and why it is that number.

Objectives and the pairs of windows that watch them are in `mm2slo_core.objectives`; all else that
decides when an alert fires is here. docs/alerts.md is generated from the same entries.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mm2slo_core.config.alerting import EXPORTER_JOB
from mm2slo_core.retention import HEADROOM_AHEAD, HEADROOM_LEAST

if TYPE_CHECKING:
    from mm2slo_alerts.model import Scale

_MINUTE: Final = 60.0
_HOUR: Final = 3_600.0
_SECONDS: Final = "seconds"


class Limit(NamedTuple):
    """One threshold, as the documentation tells it."""

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
    """What alerts compare with, and for how long. Times are in seconds.

    `scaled` shortens all times alike. The reason for each number stands beside it, since it is
    printed in docs/alerts.md.
    """

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
        "For how long a gauge's last value stands in for failed scrapes: one failed scrape must "
        "not reset the clock of an alert, and a minute is the longest usual scrape interval.",
    )

    stopped_hold: float = _seconds(
        _MINUTE,
        "The exporter itself says stopped only after 30 s; a minute more outlives the pause of a "
        "rebalance (5 to 30 s) and still pages within four minutes of the stop.",
    )
    flow_remembered: float = _seconds(
        _HOUR,
        "A flow that was published within this time should still be; after it, it counts as "
        "removed on purpose.",
    )
    absent_hold: float = _seconds(
        3 * _MINUTE, "Outlives a restart of the exporter, which takes well under a minute."
    )

    lost_window: float = _seconds(
        _HOUR, "A loss stays visible for an hour: long enough to be read by who was woken."
    )
    lost_memory: float = _seconds(
        24 * _HOUR,
        "How far back the count before the loss is looked for, so that a loss counted while "
        "nothing was scraped is found, and an old one not told again, over a day's gap.",
    )
    headroom_ahead: float = _seconds(
        HEADROOM_AHEAD,
        "How far the headroom's course is drawn out: time to wake up, find the cause and copy the "
        "backlog, or to raise the retention.",
    )
    headroom_trend: float = _seconds(
        30 * _MINUTE,
        "The stretch that gives the course: shorter ones follow each batch, longer ones see a "
        "stop late.",
    )
    headroom_least: float = _seconds(
        HEADROOM_LEAST,
        "Headroom that must be left at that time; a flow that stays this close to the edge loses "
        "records at its next pause.",
    )
    headroom_hold: float = _seconds(5 * _MINUTE, "Outlives a burst that is copied within minutes.")

    stalled_hold: float = _seconds(
        5 * _MINUTE,
        "The exporter says stalled after 30 s; five minutes outlive a rebalance, a leader's "
        "election and the restart of a task.",
    )
    drift_hold: float = _seconds(
        20 * _MINUTE,
        "MirrorMaker 2 looks for new topics and partitions every 10 minutes by default; after two "
        "looks it will not see them by itself.",
    )
    config_drift_hold: float = _seconds(
        30 * _MINUTE,
        "MirrorMaker 2 copies settings every 10 minutes by default, and the exporter reads them "
        "every 5.",
    )
    recreated_window: float = _seconds(_HOUR, "For how long one re-creation stays visible.")
    transaction_window: float = _seconds(
        5 * _MINUTE,
        "The stretch in which what is held back must not shrink; with each commit it does.",
    )
    transaction_hold: float = _seconds(
        30 * _MINUTE,
        "Twice the longest timeout that a broker allows a transaction by default (15 minutes): "
        "one that is still open hangs.",
    )
    moved_window: float = _seconds(_HOUR, "For how long one moved canary stays visible.")
    canary_lost_window: float = _seconds(_HOUR, "For how long one lost canary stays visible.")

    connector_hold: float = _seconds(
        3 * _MINUTE, "Outlives a restart of the connector by its operator."
    )
    task_hold: float = _seconds(
        5 * _MINUTE, "Outlives a restart of the task, by hand or by an operator's loop."
    )
    task_keep: float = _seconds(
        10 * _MINUTE, "A task that fails again and again is one alert, not ten."
    )
    checkpoint_age: float = _seconds(
        15 * _MINUTE,
        "Fifteen times the default interval of checkpoints; also the stretch over which the "
        "group's commits must have moved.",
    )
    checkpoint_moved: float = _limit(
        200,
        "records",
        "Twice the default of offset.lag.max: below that MirrorMaker 2 may write no offset sync, "
        "and then no checkpoint, in good health.",
    )
    checkpoint_hold: float = _seconds(5 * _MINUTE, "The next checkpoint may be on its way.")
    failover_hold: float = _seconds(
        15 * _MINUTE, "A group that starts, or is rewound, is not ready for some minutes."
    )

    unreachable_after: float = _seconds(
        _MINUTE,
        "Twelve polls without an answer, and as long as a Kafka client tries by default.",
    )
    unreachable_hold: float = _seconds(_MINUTE, "Outlives the restart of a broker.")
    recently_after: float = _seconds(
        45.0,
        "Earlier than any page about what follows, which takes 90 s: what silences them must be "
        "first. Longer than a broker's restart, which must not silence anything.",
    )
    unreachable_errors: float = _seconds(
        5 * _MINUTE, "Failed requests within this time tell an outage from an exporter at rest."
    )
    recently_lasts: float = _seconds(
        45 * _MINUTE,
        "How long after an outage its traces alert nobody: the longest short window of a page "
        "(30 minutes), its for (5) and its keep_firing_for (5), and 5 to spare.",
    )
    recently_stands: float = _seconds(
        10 * _MINUTE,
        "How long after an outage what stands still alerts nobody: workers of Kafka Connect wait "
        "up to 5 minutes for each other (scheduled.rebalance.max.delay.ms) before they hand out "
        "tasks. A flow that has not come back by then needs somebody.",
    )
    recently_step: float = _seconds(
        30.0, "Between two looks back at whether the cluster answered: the evaluation interval."
    )

    catching_up_behind: float = _seconds(
        _MINUTE, "Behind by less is no backlog: the default objective of data freshness."
    )
    catching_up_trend: float = _seconds(
        30 * _MINUTE,
        "The stretch that gives the course, as for headroom; what a stop leaves is quiet for "
        "longer, so that the fall has been seen by then.",
    )
    catching_up_ahead: float = _seconds(
        2 * _HOUR, "A backlog that takes longer is worth a decision, and told."
    )
    catching_up_after: float = _seconds(
        3 * _HOUR,
        "How long after a page being behind is still its doing: the course above, and an hour "
        "for one that bends.",
    )

    exporter_hold: float = _seconds(3 * _MINUTE, "Outlives a restart or an update.")
    failing_window: float = _seconds(
        15 * _MINUTE, "Three rounds of the slowest stage (topic settings, every 5 minutes)."
    )
    failing_least: float = _limit(2, "failures", "A single one is a leader's election.")
    failing_hold: float = _seconds(
        20 * _MINUTE, "Longer than failing_window, so that one burst of failures makes no ticket."
    )
    rules_window: float = _seconds(15 * _MINUTE, "Holds 30 evaluations of the alerts.")
    rules_missed: float = _limit(
        3, "evaluations", "A tenth of those in rules_window: alerts are late by then."
    )
    rules_hold: float = _seconds(5 * _MINUTE, "Outlives a reload with a new set of rules.")
    delivery_window: float = _seconds(
        15 * _MINUTE,
        "Alertmanager counts a message as failed once it has given up: each one is lost.",
    )

    coverage_least: float = _limit(
        0.9,
        "share",
        "With more than a tenth of an hour unknown, a budget's figure is not worth relying on.",
    )
    coverage_hold: float = _seconds(
        15 * _MINUTE, "Outlives a restart of the exporter and a short outage."
    )
    exhausted_hold: float = _seconds(
        5 * _MINUTE, "The window's figure moves every 5 minutes: one step must confirm it."
    )

    def scaled(self, scale: Scale) -> Thresholds:
        """The same with every time shortened by *scale*."""
        times: dict[str, Any] = {
            each.name: scale(getattr(self, each.name))
            for each in fields(self)
            if each.metadata["unit"] == _SECONDS
        }
        return replace(self, **times)

    def limits(self) -> tuple[Limit, ...]:
        """Every threshold with its unit and reason, in order."""
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
