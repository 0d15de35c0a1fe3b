"""An alert before its links are added, and the parts that expressions of causes share.

Gauges are read with `last_over_time`: it bridges failed scrapes and, unlike `max_over_time`, does
not prolong a fault that is over. Replicas of the exporter are aggregated.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mm2slo_alerts.alert_rules import AlertRule, AlertSubject, link_annotations
from mm2slo_alerts.alert_thresholds import Thresholds
from mm2slo_core.catalogue.flow_metrics import FLOW_STATE
from mm2slo_core.catalogue.metric import FLOW_LABELS, Metric
from mm2slo_core.catalogue.prometheus_series import (
    FLOW_RECOVERING,
    FLOW_STOPPED,
    FLOW_UNREACHABLE,
    MAINTENANCE_ACTIVE,
    RecordedSeries,
)
from mm2slo_core.catalogue.promql import (
    Matcher,
    Vector,
    aggregate,
    duration,
    equal,
    number,
    on,
    over,
)
from mm2slo_core.config.alerting_config import LinksConfig

PAGE: Final = "page"
TICKET: Final = "ticket"

NONE: Final = "none"
"""Of the watchdog only, which has its own receiver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """An alert rule without links, about a cause or an objective.

    The texts may hold Prometheus templates, but no character that Slack's markup uses (angle
    brackets, ampersands, backticks): the message template escapes labels only. `hold` and `keep`
    are in seconds.
    """

    name: str
    severity: str
    expr: str
    summary: str
    impact: str
    action: str
    hold: float = 0.0
    keep: float = 0.0
    lasted: str = ""
    """How long an incident of several outages lasted; empty for a single one."""
    subject: AlertSubject = AlertSubject.FLOW
    labels: Mapping[str, str] = field(default_factory=dict)
    """In addition to the severity."""

    def rule(self, links: LinksConfig) -> AlertRule:
        """Return the rule with *links* in its annotations."""
        return AlertRule(
            alert=self.name,
            expr=self.expr,
            hold=self.hold,
            keep=self.keep,
            labels={"severity": self.severity, **self.labels},
            annotations={
                "summary": self.summary,
                "impact": self.impact,
                "action": self.action,
                **({"lasted": self.lasted} if self.lasted else {}),
                **link_annotations(links, self.name, self.subject),
            },
        )


COUNT: Final = '{{ $value | printf "%.0f" }}'
"""The alert's value, a number of records, failures or other things."""

TOPIC: Final = "{{ with $labels.topic }}topic {{ . }} of {{ end }}{{ $labels.flow }}"
"""The topic, where the exporter's granularity includes it, and the flow."""


def latest(metric: Metric, limits: Thresholds, *matchers: Matcher) -> Vector:
    """Select the last value of each series, also after a failed scrape."""
    return over("last_over_time", metric, limits.bridge, *matchers)


def by_flow(operator: str, vector: Vector, *more: str) -> Vector:
    """Return `operator by (flow, source, target, *more) (vector)`.

    With a coarser granularity of the exporter, labels of *more* are absent.
    """
    return aggregate(operator, vector, (*FLOW_LABELS, *more))


def flow_stopped(limits: Thresholds) -> str:
    """Return an expression that is 1 for each flow that any replica reports as stopped."""
    stopped = latest(FLOW_STATE, limits, equal("state", "stopped"))
    return f"{aggregate('max', stopped, ('flow',))} == 1"


def unless_maintained(expression: str, hold: float = 0.0) -> str:
    """Exclude flows under planned maintenance from *expression*, and for *hold* seconds after it.

    Alerts with a `for` need no *hold*.
    """
    planned = Vector(MAINTENANCE_ACTIVE.name, MAINTENANCE_ACTIVE.labels)
    if hold:
        planned = over("present_over_time", MAINTENANCE_ACTIVE, hold)
    return f"{expression}\nunless {on(('flow',), planned)} {planned}"


def interrupted(window: float, *, recovering: bool = True) -> str:
    """Flows that were stopped or unreachable, or recovered from that, in *window* seconds.

    What these alerts have reported must not alert again after their end.
    """
    series = (FLOW_STOPPED, FLOW_UNREACHABLE, *((FLOW_RECOVERING,) if recovering else ()))
    return f"({' or '.join(str(over('present_over_time', each, window)) for each in series)})"


class Outages:
    """A recorded series with the start of an incident while an outage goes on.

    Its alert has no `for` and fires while the series is there: what it explains can be left out of
    other rules, and its annotations can count. *after* and *hold* are the seconds after which an
    outage is noticed, and is recorded then. Outages whose pause is shorter than `keep`, for which
    the alert fires on, are one incident.
    """

    def __init__(
        self, series: RecordedSeries, label: str, after: float, hold: float, step: float
    ) -> None:
        self.series, self.label, self.after, self.hold, self.step = series, label, after, hold, step
        self.keep = after + hold
        chosen, every = f"{series.name}{{{label}=%q}}", duration(step)
        starts = f"count_over_time(({chosen} unless {chosen} offset {every})[%.0fs:{every}]) > 1"
        self._times = f'with printf "{starts}" $labels.{label} $labels.{label} $value | query'
        self._evaluations = f"count_over_time({chosen}[%.0fs])"

    def expression(self, *, starts: str, goes_on: str, ended: str, scraped: str) -> str:
        """What to record: outages start by *starts*, and go on in the same incident by *goes_on*.

        One that nothing can be known of goes on unless it has *ended*, while there was a scrape.
        """
        # Half a step more: no sample is on the edge of a range.
        before = over("last_over_time", self.series, self.keep + 1.5 * self.step)
        last = over("last_over_time", self.series, 1.5 * self.step)
        return (
            f"({before}\nand on ({self.label}) {goes_on})\n"
            f"or\n({last}\nunless on ({self.label}) {ended}\nand on ({self.label}) {scraped})\n"
            f"or\n({starts}) * 0 + time() - {number(self.keep + self.step / 2)}"
        )

    def times(self, one: str, several: str) -> str:
        """A template: *one* for a single outage, else *several* with their number and the time.

        The alert's value is the time since the start of the incident.
        """
        return (
            f"{{{{ {self._times} }}}}{several} {{{{ . | first | value }}}} times in "
            f"{{{{ $value | humanizeDuration }}}}{{{{ else }}}}{one}{{{{ end }}}}"
        )

    def lasted(self) -> str:
        """A template of the time without the pauses, if there were any, as Slack shows it."""
        seconds = f"{self._evaluations} * {number(self.step)} + %f * {number(self.after)}"
        return (
            f'{{{{ {self._times} }}}}{{{{ printf "{seconds} + {number(self.hold)}" '
            f"$labels.{self.label} $value (. | first | value) | query | first | value "
            "| humanizeDuration }}{{ end }}"
        )
