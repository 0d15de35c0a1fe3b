"""`slo:` and `alerting:`, the objectives with their owners, and the receivers of alerts."""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Final

from pydantic import BeforeValidator, ConfigDict, Field

from mm2slo_core.catalogue import ALL
from mm2slo_core.catalogue.prometheus_series import EXTERNAL, RECORDED
from mm2slo_core.catalogue.promql import SCRAPE_LABELS
from mm2slo_core.config.config_document import Path, did_you_mean, suggest
from mm2slo_core.config.config_section import Example, Section, SectionFinding
from mm2slo_core.config.field_types import (
    Address,
    ChannelName,
    FilePath,
    Flag,
    FlowPattern,
    Name,
    SecretFile,
    Target,
    split_list,
)
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.objective import (
    DAY,
    DEFAULT_WINDOW,
    MIN_WINDOW,
    SLOWEST_PAIR,
    ObjectiveRule,
    PublishedIndicator,
    Severity,
    default_objective,
    default_rules,
    slugify,
)
from mm2slo_core.quantity_text import (
    DurationBound,
    InvalidValueError,
    duration_label,
    format_duration,
    parse_duration,
)
from mm2slo_core.topology import Flow

MAX_WINDOW: Final = 90 * DAY

STEP: Final = 300.0
"""Seconds between the recorded steps that long windows are summed from, in whole steps only."""


class WindowBound(DurationBound):
    """Validates the rolling window of an objective."""

    def __call__(self, value: object) -> float:
        seconds = parse_duration(value)
        shortest, longest = format_duration(self.at_least), format_duration(MAX_WINDOW)
        expected = f"from {shortest} to {longest}"
        if seconds < self.at_least:
            what = f"is shorter than {shortest}, the long window of the window pair "
            what, next_step = what + SLOWEST_PAIR.name, "write 28d, or 7d for quick feedback"
        elif seconds > MAX_WINDOW:
            what = f"is longer than {longest}, and Prometheus would have to retain samples for that"
            what, next_step = f"{what} long", "write 28d; reports cover months and quarters"
        elif seconds % STEP:
            what = f"is not a multiple of {format_duration(STEP)}, the step of the recorded counts"
            expected, next_step = "whole days or hours", "write 28d"
        else:
            return seconds
        raise InvalidValueError(what, expected=expected, next_step=next_step)


def _sli(value: object) -> Sli:
    if isinstance(value, str) and value in set(Sli):
        return Sli(value)
    close = suggest(value, Sli) if isinstance(value, str) else None
    raise InvalidValueError(
        "is not an indicator",
        expected=f"one of {', '.join(Sli)}",
        next_step=f"did you mean {str(close)!r}?" if close else None,
    )


def _tier(value: object) -> object:
    # Latency thresholds are normalized: 1m is the tier 60s.
    try:
        return duration_label(parse_duration(value)) if isinstance(value, str) else value
    except ValueError:
        return value


def _events(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf"):
        return float(value)
    raise InvalidValueError(
        "is not a number of events per hour", expected="a number above 0, as in 3600"
    )


Window = Annotated[float, BeforeValidator(WindowBound(MIN_WINDOW))]


class ObjectiveConfig(Section):
    """One objective; the first match for a flow and indicator applies."""

    flows: Annotated[tuple[FlowPattern, ...], BeforeValidator(split_list), Field(min_length=1)] = (
        "*",
    )
    """Flows as `us->eu`, with `*` and `?` as wildcards."""
    sli: Annotated[Sli, BeforeValidator(_sli)]
    """The indicator."""
    tier: Annotated[Name, BeforeValidator(_tier)] | None = None
    """Latency threshold, as in `10s`, or freshness class; null: all of the flow."""
    target: Target
    """Share of events that must be good."""
    window: Window | None = None
    """Rolling window; null: `slo.window`."""
    max_severity: Severity | None = None
    """Highest severity of its alerts; null: that of the default objective."""
    owner: Name | None = None
    """Owner; null: `slo.owner`."""
    channel: Name | None = None
    """Name of a Slack channel or webhook; null: `slo.channel`."""
    expected_events: Annotated[float, BeforeValidator(_events)] | None = None
    """Events per hour; null: derived from the canary interval, or one per slice."""

    def covers(self, flow: Flow) -> bool:
        return any(fnmatchcase(flow.label, pattern) for pattern in self.flows)

    def keys(self, indicators: Sequence[PublishedIndicator]) -> tuple[SliKey, ...]:
        """The keys of a flow's *indicators* that the objective applies to."""
        return tuple(
            each.key
            for each in indicators
            if each.key.sli is self.sli and self.tier in {None, each.key.tier}
        )

    def rule(self, key: SliKey, slo: "SloConfig", max_severity: Severity) -> ObjectiveRule:
        """The rule for *key*; *max_severity* is the default."""
        return ObjectiveRule(
            flows=self.flows,
            key=key,
            target=self.target,
            window=self.window or slo.window,
            max_severity=self.max_severity or max_severity,
            owner=self.owner or slo.owner or "",
            channel=self.channel or slo.channel or "",
        )


class SloConfig(Section):
    """Objectives; an indicator without one has a default objective."""

    window: Window = DEFAULT_WINDOW
    """Rolling window of the objectives, from `3d` to `90d`."""
    owner: Name | None = None
    """Owner, and value of the `owner` label."""
    channel: Name | None = None
    """Name of a Slack channel or webhook in `alerting`; null: the first one."""
    objectives: tuple[ObjectiveConfig, ...] = Field(
        default=(),
        examples=[
            Example(
                {"sli": "availability", "tier": None, "target": "99.9%", "max_severity": "page"},
                "the defaults; with carrier: topic also uniqueness, order, affinity: 99.9%, ticket",
            ),
            Example(
                {"sli": "latency", "tier": "10s", "target": "99%", "max_severity": "ticket"},
                "the smallest of latency_tiers",
            ),
            Example(
                {"sli": "latency", "tier": "60s", "target": "99.9%", "max_severity": "page"},
                "the largest; 99.5% in between",
            ),
            Example({"sli": "data_freshness", "target": "99.5%", "max_severity": "page"}),
            Example({"sli": "completeness", "target": "99.99%", "max_severity": "ticket"}),
            Example({"sli": "checkpoint_freshness", "target": "99%", "max_severity": "ticket"}),
        ],
    )
    """Objectives that differ from the defaults; the first match applies."""

    def rules(
        self, flows: Mapping[Flow, Sequence[PublishedIndicator]]
    ) -> tuple[ObjectiveRule, ...]:
        """All objectives of *flows*, the configured ones before the defaults."""
        own = [rule for each in self.objectives for rule in self.rules_of(each, flows)]
        defaults = default_rules(
            flows, window=self.window, owner=self.owner or "", channel=self.channel or ""
        )
        return (*own, *defaults)

    def rules_of(
        self, objective: ObjectiveConfig, flows: Mapping[Flow, Sequence[PublishedIndicator]]
    ) -> tuple[ObjectiveRule, ...]:
        """One rule for each indicator of *flows* that *objective* applies to."""
        found: dict[SliKey, ObjectiveRule] = {}
        for flow, indicators in flows.items():
            if objective.covers(flow):
                for key in objective.keys(indicators):
                    max_severity = default_objective(key, indicators).max_severity
                    found.setdefault(key, objective.rule(key, self, max_severity))
        return tuple(found.values())


EXPORTER_JOB: Final = "mm2slo"
"""The job name in the shipped scrape configuration."""


class LinksConfig(Section):
    """Base URLs of the links in messages; null omits the link."""

    runbook: Address | None = None
    """Runbooks, one page per alert: `<runbook>/<alert>.md`."""
    dashboard: Address | None = None
    """Grafana."""
    report: Address | None = None
    """The report service, for `/slo`."""
    prometheus: Address | None = None
    """Prometheus: links to queries, and reloading its rules."""
    alertmanager: Address | None = None
    """Alertmanager: links to silences, and silences by `mm2slo exclude`."""
    splunk: Address | None = None
    """Splunk Web with the app `repl_observability`, for the logs of a flow."""


class SecretKey(Section):
    """A key of a Kubernetes Secret."""

    name: Name
    """Name of the Secret."""
    key: Name
    """Key in the Secret."""


class _Channel(Section):
    name: Name
    """Name in this file, and value of the `channel` label."""


class SlackChannel(_Channel):
    """A Slack channel that `slo.channel` refers to by name."""

    webhook_url_file: SecretFile
    """File with the URL of the incoming webhook; read by Alertmanager, and by mm2slo for the
    digest."""
    webhook_secret: SecretKey | None = None
    """Secret with that URL, for `AlertmanagerConfig`; null: the key `<name>` of `mm2slo-slack`."""
    channel: ChannelName | None = None
    """Channel name in Slack, such as `#pay`; null: the channel of the webhook."""


class Webhook(_Channel):
    """A receiver of Alertmanager webhooks that `slo.channel` refers to by name."""

    url: Address
    """URL to post to; must not contain a secret."""
    credentials_file: SecretFile | None = None
    """File with a bearer token; read by Alertmanager only."""
    credentials_secret: SecretKey | None = None
    """Secret with that token, for `AlertmanagerConfig`; null: the key `<name>` of
    `mm2slo-webhooks`."""


class Receiver(_Channel):
    """A receiver in Alertmanager's own format, such as `pagerduty_configs`, passed through.

    Secrets are files (`routing_key_file`), or for `AlertmanagerConfig` keys of Secrets
    (`routing_key: {name: pagerduty, key: routing-key}`).
    """

    model_config = ConfigDict(extra="allow")


class SeveritiesConfig(Section):
    """Values of the label `severity`."""

    page: Name
    """Of alerts that notify on-call immediately."""
    ticket: Name
    """Of alerts that are handled within working hours."""


class PrometheusRuleConfig(Section):
    """The resource `PrometheusRule`."""

    labels: Mapping[Name, Name] = Field(default={}, examples=[{"release": "monitoring"}])
    """Labels of its metadata, by which the operator selects rules."""


class MaintenanceConfig(Section):
    """Planned maintenance, written by `mm2slo exclude`."""

    rules_file: FilePath = "mm2slo-maintenance.rules.yml"
    """Rule file of the exclusions; must be in Prometheus's `rule_files`."""
    silence: Flag = False
    """Whether exclusions also silence the alerts of their flows."""


_RESERVED_LABELS: Final = frozenset(
    (
        *(label for metric in (*ALL, *EXTERNAL) for label in metric.labels),
        *(label for series in RECORDED for label in series.labels),
        *SCRAPE_LABELS,
        *("alertname", "namespace", "window"),
    )
)
"""Labels that expressions of alerts may group by, which a label of the rule would overwrite."""

# Before Prometheus 3, and in Alertmanager's matchers; names that start with __ are internal
# (Prometheus's data model).
_LABEL_NAME: Final = re.compile(r"(?!__)[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

# The fields of type Secret or SecretURL in Alertmanager's configuration, which mm2slo.yaml must not
# contain: each has a `*_file` beside it.
_SECRET_KEY: Final = re.compile(
    r"(?:.+_)?(?:password|secret|token|credentials)|.+_key|(?:api|webhook)_url"
)


def _inline_secrets(value: object, path: Path) -> Iterator[Path]:
    """Yield the places of texts that Alertmanager treats as secrets."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(inner, str) and _SECRET_KEY.fullmatch(str(key)):
                yield (*path, str(key))
            yield from _inline_secrets(inner, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _inline_secrets(inner, (*path, index))


class AlertingConfig(Section):
    """The receivers of alerts, and the links in their messages."""

    links: LinksConfig = LinksConfig()
    """Base URLs of the links in messages; null omits the link."""
    slack: tuple[SlackChannel, ...] = Field(
        default=(),
        examples=[
            {
                "name": "mm2-alerts",
                "webhook_url_file": "/run/secrets/slack-url",
                "webhook_secret": {"name": "mm2slo-slack", "key": "mm2-alerts"},
            }
        ],
    )
    """Slack channels; the first one is the default channel."""
    webhooks: tuple[Webhook, ...] = Field(
        default=(), examples=[{"name": "on-call", "url": "http://127.0.0.1:9080/alerts"}]
    )
    """Other receivers; the first one is the default without Slack."""
    receivers: tuple[Receiver, ...] = Field(
        default=(),
        examples=[
            {
                "name": "pager",
                "pagerduty_configs": [{"routing_key_file": "/run/secrets/pagerduty"}],
            }
        ],
    )
    """Receivers in Alertmanager's own format that `slo.channel` refers to by name."""
    severities: SeveritiesConfig = SeveritiesConfig(page="page", ticket="ticket")
    """Values of the label `severity`, such as `{page: critical, ticket: warning}`."""
    labels: Mapping[Name, Name] = Field(default={}, examples=[{"team": "data"}])
    """Labels of every alert."""
    namespace: Name | None = None
    """Kubernetes namespace of the generated resources: rules, dashboards and `report.prometheus`
    read its series only, and it is a label of every recorded series and alert, which routes,
    inhibitions and silences match."""
    prometheusrule: PrometheusRuleConfig = PrometheusRuleConfig()
    """The resource `PrometheusRule`."""
    watchdog: Name | None = None
    """Name of the webhook that receives `MM2Watchdog` only, and that must raise an alarm when it
    stops arriving; null: no dead man's switch."""
    platform: Name | None = None
    """Channel that is notified when Slack rejects messages; null: the first webhook, or else the
    second Slack channel."""
    exporter_job: Name = EXPORTER_JOB
    """Prometheus job name of the exporters; for a PodMonitor `namespace/name`. The Helm chart's
    monitors set the label to this value."""
    maintenance: MaintenanceConfig = MaintenanceConfig()
    """Planned maintenance."""

    def check(self) -> Iterator[SectionFinding]:
        """Channel names are unique, and `watchdog` and `platform` refer to one of them."""
        kinds: dict[str, Sequence[_Channel]] = {
            "slack": self.slack,
            "webhooks": self.webhooks,
            "receivers": self.receivers,
        }
        others = [each.name for each in self._others]
        for key, known in (("watchdog", others), ("platform", self.channels)):
            name = getattr(self, key)
            if name is not None and name not in known:
                yield SectionFinding(
                    (key,), f"unknown receiver {name!r}",
                    f"one of {', '.join(known)}" if known else "a name under alerting.webhooks",
                    did_you_mean(name, known, f"add {name} under alerting.webhooks"),
                )  # fmt: skip
        first: dict[str, tuple[str, int, str]] = {}
        for kind, given in kinds.items():
            for index, name in enumerate(each.name for each in given):
                claimed = first.setdefault(slugify(name) or name, (kind, index, name))
                if claimed[:2] != (kind, index):
                    other = "" if claimed[2] == name else f" ({claimed[2]!r})"
                    yield SectionFinding(
                        (kind, index, "name"),
                        f"{name!r} is already the name of "
                        f"alerting.{claimed[0]}[{claimed[1]}]{other}",
                        "names that differ in more than case and punctuation",
                        "rename one of them",
                    )  # fmt: skip
        severities = self.severities
        if severities.page == severities.ticket:
            yield SectionFinding(
                ("severities",), f"page and ticket are both {severities.page!r}",
                "two values, so that pages can be routed",
            )  # fmt: skip
        for label in sorted(self.labels):
            if label in _RESERVED_LABELS:
                yield SectionFinding(
                    ("labels", label),
                    f"{label} is a label of the alerts themselves",
                    "another label",
                )
            elif not _LABEL_NAME.fullmatch(label):
                yield SectionFinding(
                    ("labels", label),
                    f"{label!r} is not the name of a label in Prometheus",
                    "letters, digits and underscores, with a letter first",
                )
        for index, receiver in enumerate(self.receivers):
            for path in _inline_secrets(receiver.model_extra or {}, ("receivers", index)):
                yield SectionFinding(
                    path, "contains a secret",
                    f"{path[-1]}_file, or {{name: SECRET, key: KEY}} for AlertmanagerConfig",
                )  # fmt: skip

    @property
    def channels(self) -> tuple[str, ...]:
        """Valid values of `slo.channel`, the Slack channels first."""
        others = (each.name for each in self._others if each.name != self.watchdog)
        return (*(each.name for each in self.slack), *others)

    @property
    def _others(self) -> tuple[_Channel, ...]:
        return (*self.webhooks, *self.receivers)
