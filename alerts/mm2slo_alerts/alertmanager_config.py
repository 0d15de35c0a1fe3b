"""Alertmanager's configuration: routes, receivers and inhibition rules.

It works with Alertmanager 0.25. Slack webhook URLs are secrets: the configuration names the files
that hold them. Routes go by severity within each channel; alerts about causes use the channel of
the flow's availability. Grouping decides how many messages a fault causes. A cause inhibits its
consequences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from mm2slo_alerts.alert_rules import PRODUCTION, Scale, yaml_text
from mm2slo_alerts.burn_alerts import ALERT as BURN
from mm2slo_alerts.objective_series import flow_pattern
from mm2slo_core.catalogue.prometheus_series import WATCHDOG
from mm2slo_core.catalogue.promql import Matcher, duration, equal, matching, unequal, unmatching
from mm2slo_core.config.alerting_config import (
    AlertingConfig,
    ObjectiveConfig,
    SlackChannel,
    SloConfig,
    Webhook,
)
from mm2slo_core.indicators.sli_counters import Sli
from mm2slo_core.user_errors import UserError

TEMPLATES: Final = "templates/mm2slo.tmpl"
"""Path of the templates, relative to the configuration."""

_CAUSE_SLIS: Final = (Sli.AVAILABILITY, Sli.DATA_FRESHNESS)
"""Indicators whose channel also gets the causes, the first one preferred. The team that watches the
order of records is not the one that restarts MirrorMaker 2."""


def configuration(config: AlertingConfig, slo: SloConfig, scale: Scale = PRODUCTION) -> str:
    """Return the text of `alertmanager.yml`. Raises UserError like `document`."""
    return yaml_text(document(config, slo, scale))


def document(config: AlertingConfig, slo: SloConfig, scale: Scale = PRODUCTION) -> dict[str, Any]:
    """Return the whole configuration.

    Without a channel, one Slack channel with the webhook in `DEFAULT_WEBHOOK_FILE` is assumed.
    Raises UserError when *slo* names a channel that *config* does not have.
    """
    receivers = Receivers(config, slo.channel)
    named = {slo.channel, *(each.channel for each in slo.objectives)}
    unknown = sorted(name for name in named if name is not None and name not in receivers.channels)
    if unknown:
        raise UserError(
            f"unknown channel {unknown[0]!r}; expected one of "
            f"{', '.join(receivers.channels)}; or add it to alerting.slack, "
            "alerting.webhooks or alerting.receivers"
        )
    return {
        "templates": [TEMPLATES],
        "route": root_route(receivers, _flow_channels(slo.objectives, receivers), scale),
        # Alertmanager 0.25 has no field for the reason.
        "inhibit_rules": [
            {
                "source_matchers": [str(each) for each in rule.source],
                "target_matchers": [str(each) for each in rule.target],
                **({"equal": list(rule.by)} if rule.by else {}),
            }
            for rule in INHIBITIONS
        ],
        "receivers": receivers.documents(),
    }


def document_in_namespace(document: Mapping[str, Any], namespace: str | None) -> Mapping[str, Any]:
    """*document* for *namespace* only, if there is one: others may have flows of the same names.

    Not for AlertmanagerConfig, to which the operator adds the namespace.
    """
    if namespace is None:
        return document
    inhibitions = [
        {**rule, "equal": [*rule.get("equal", ()), "namespace"]}
        for rule in document["inhibit_rules"]
    ]
    route = _route_in_namespace(document["route"], namespace)
    return {**document, "route": route, "inhibit_rules": inhibitions}


def _route_in_namespace(route: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    found = dict(route)
    if "group_by" in route:
        found["group_by"] = [*route["group_by"], "namespace"]
    if "routes" in route:
        found["routes"] = [_route_in_namespace(each, namespace) for each in route["routes"]]
    if "matchers" in route:
        found["matchers"] = [str(equal("namespace", namespace)), *route["matchers"]]
    return found


def _flow_channels(
    objectives: Sequence[ObjectiveConfig], receivers: Receivers
) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Return patterns of flows with the receiver of their causes, which belong to no objective.

    The first match applies, one without a channel too; flows that match none use `slo.channel`.
    """
    found = (
        (each.flows, receiver_name(each.channel) if each.channel else receivers.default)
        for sli in _CAUSE_SLIS
        for each in objectives
        if each.sli is sli
    )
    return tuple(dict.fromkeys(found))


_SUBJECTS: Final = ("flow", "cluster")
"""Labels to group by, the first that an alert has."""
_BY_NAME: Final = ("alertname",)

_PAGE_WAIT: Final = 10.0
"""Long enough for both roles of a cluster, short compared to the time an alert takes to fire."""

_PAGE_INTERVAL: Final = 60.0
"""Part of the five minutes in which a stop that is over is resolved. Also the delay before a
rate-limited message is sent again: 0.25 retries only on 5xx."""
_PAGE_REPEAT: Final = 4 * 3_600.0
_TICKET_WAIT: Final = 30.0
_TICKET_INTERVAL: Final = 300.0
_TICKET_REPEAT: Final = 24 * 3_600.0
_HEARTBEAT: Final = 60.0


def root_route(
    receivers: Receivers, of_flows: Sequence[tuple[Sequence[str], str]], scale: Scale
) -> dict[str, Any]:
    """Return the section `route`; *of_flows*: patterns of flows and receiver of their causes."""
    page = receivers.config.severities.page
    # An alert takes the first route that matches and goes on only where `continue` is set
    # (Alertmanager's documentation of routes): the special ones come first.
    return {
        "receiver": receivers.default,
        "group_by": list(_BY_NAME),
        **_times(_TICKET_WAIT, _TICKET_INTERVAL, _TICKET_REPEAT, scale),
        "routes": [
            {
                **_matching(equal("alertname", WATCHDOG)),
                "receiver": receivers.watchdog,
                **_times(0.0, _HEARTBEAT, _HEARTBEAT, scale),
            },
            {
                **_matching(equal("alertname", "MM2SlackDeliveryFailing")),
                "receiver": receivers.platform,
            },
            *(
                {
                    **_matching(equal("channel", channel)),
                    "receiver": receiver_name(channel),
                    "routes": _by_severity(page, scale),
                }
                for channel in receivers.channels
            ),
            *(
                {
                    # Objectives without a channel use the default one. A pattern for any flow
                    # would also match alerts without a flow.
                    **_matching(
                        equal("channel", ""),
                        equal("sli", ""),
                        unequal("flow", ""),
                        matching("flow", flow_pattern(flows)),
                    ),
                    "receiver": receiver,
                    "routes": _by_severity(page, scale),
                }
                for flows, receiver in of_flows
            ),
            *_by_severity(page, scale),
        ],
    }


def group_by(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return the labels by which an alert with *labels* is grouped."""
    return next(((each,) for each in _SUBJECTS if labels.get(each)), _BY_NAME)


def _by_severity(severity: str, scale: Scale) -> list[dict[str, Any]]:
    """Alerts with the *severity* of pages; and tickets about a flow or a cluster.

    The parent route handles other tickets.
    """
    page = equal("severity", severity)
    times = _times(_PAGE_WAIT, _PAGE_INTERVAL, _PAGE_REPEAT, scale)
    by_subject = [(unequal(each, ""), {"group_by": [each]}) for each in _SUBJECTS]
    return [
        *({**_matching(page, about), **by, **times} for about, by in by_subject),
        {**_matching(page), **times},
        *({**_matching(about), **by} for about, by in by_subject),
    ]


def _times(wait: float, interval: float, repeat: float, scale: Scale) -> dict[str, Any]:
    return {
        "group_wait": duration(scale(wait)) if wait else "0s",
        "group_interval": duration(scale(interval)),
        "repeat_interval": duration(scale(repeat)),
    }


def _matching(*matchers: Matcher) -> dict[str, list[str]]:
    return {"matchers": [str(each) for each in matchers]}


DISCARD: Final = "null"
DEFAULT_WEBHOOK_FILE: Final = "/etc/mm2slo/slack-webhook-url"
DEFAULT_CHANNEL: Final = SlackChannel(name="default", webhook_url_file=DEFAULT_WEBHOOK_FILE)
_SILENCE: Final = '/#/silences/new?filter={{ template "mm2slo.silence.filter" . }}'


@dataclass(frozen=True, slots=True)
class Receivers:
    """Receivers of a configuration; without a channel, a Slack channel that fails until set up.

    A failed delivery raises `MM2SlackDeliveryFailing`; a dropped message would go unnoticed.
    """

    config: AlertingConfig
    preferred: str | None = None
    """Channel of alerts without one; None: the first channel."""

    @property
    def slack(self) -> tuple[SlackChannel, ...]:
        return self.config.slack if self.config.channels else (DEFAULT_CHANNEL,)

    @property
    def channels(self) -> tuple[str, ...]:
        """Values of the label `channel`, Slack channels first."""
        return self.config.channels or (DEFAULT_CHANNEL.name,)

    @property
    def default(self) -> str:
        """Receiver of alerts without a channel."""
        return receiver_name(self.preferred or self.channels[0])

    @property
    def watchdog(self) -> str:
        """Receiver of MM2Watchdog, whose absence is the alarm."""
        return DISCARD if self.config.watchdog is None else receiver_name(self.config.watchdog)

    @property
    def platform(self) -> str:
        """Receiver that may work while the first Slack channel fails."""
        slack = {each.name for each in self.slack}
        others = [name for name in self.channels if name not in slack]
        second = (*others, *self.channels[1:2], self.channels[0])[0]
        return receiver_name(self.config.platform or second)

    def documents(self) -> list[dict[str, Any]]:
        """Return the section `receivers`."""
        return [
            {"name": DISCARD},
            *({"name": receiver_name(each.name), **self._slack(each)} for each in self.slack),
            *(
                {"name": receiver_name(each.name), **_webhook(each)}
                for each in self.config.webhooks
            ),
            *(
                {"name": receiver_name(each.name), **(each.model_extra or {})}
                for each in self.config.receivers
            ),
        ]

    def slack_settings(self) -> dict[str, Any]:
        """Return the settings of the first Slack channel, or of a default one."""
        [settings] = self._slack((*self.slack, DEFAULT_CHANNEL)[0])["slack_configs"]
        return dict(settings)

    def _slack(self, channel: SlackChannel) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, Any] = {"api_url_file": channel.webhook_url_file}
        if channel.channel is not None:
            found["channel"] = channel.channel
        found |= {
            "send_resolved": True,
            "username": "mm2slo",
            "color": _template("color"),
            "title": _template("title"),
            "title_link": _template("link"),
            "text": _template("text"),
            "fallback": _template("fallback"),
            "footer": _template("footer"),
            "mrkdwn_in": ["text"],
        }
        if actions := self._actions():
            found["actions"] = actions
        return {"slack_configs": [found]}

    def _actions(self) -> list[dict[str, str]]:
        """Buttons with a URL; Slack rejects one without."""
        links = self.config.links
        buttons = (
            ("Runbook", "runbook", links.runbook),
            ("Dashboard", "dashboard", links.dashboard),
            ("SLO", "report", links.report),
            ("Logs", "splunk", links.splunk),
        )
        found = [(text, _template(f"url.{name}")) for text, name, base in buttons if base]
        if links.alertmanager is not None:
            found.append(("Silence", links.alertmanager + _SILENCE))
        return [{"type": "button", "text": text, "url": url} for text, url in found]


def check_files(config: AlertingConfig) -> None:
    """Raise UserError for a key of a Kubernetes Secret, which only AlertmanagerConfig knows."""
    for receiver in config.receivers:
        for key in _secret_keys(receiver.model_extra or {}):
            raise UserError(
                f"receiver {receiver.name!r} has {key} in a Kubernetes Secret; Alertmanager's own "
                f"configuration expects {key}_file; or generate --format alertmanagerconfig"
            )


def _secret_keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, dict) and inner.keys() == {"name", "key"}:
                yield key
            yield from _secret_keys(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _secret_keys(inner)


def receiver_name(channel: str) -> str:
    """Return the receiver of a channel, never `DISCARD`."""
    return f"channel-{channel}"


def _template(part: str) -> str:
    return f'{{{{ template "mm2slo.slack.{part}" . }}}}'


def _webhook(webhook: Webhook) -> dict[str, Any]:
    found: dict[str, Any] = {"url": webhook.url, "send_resolved": True}
    if webhook.credentials_file is not None:
        # `url_file` needs 0.26; a token in a header keeps the secret out of the configuration.
        found["http_config"] = {"authorization": {"credentials_file": webhook.credentials_file}}
    return {"webhook_configs": [found]}


class Inhibition(NamedTuple):
    """An alert that matches `source` inhibits those of `target` with equal labels `by`."""

    why: str
    source: Sequence[Matcher]
    target: Sequence[Matcher]
    by: tuple[str, ...] = ()


OURS: Final = matching("alertname", "MM2.+")
_UNREACHABLE: Final = equal("alertname", "MM2ClusterUnreachable")

_LOSS: Final = "MM2RecordsLost|MM2RetentionHeadroomLow"
"""Loss does not end with the outage."""

_STOP_EFFECTS: Final = (
    f"{BURN}|MM2ErrorBudgetExhausted|MM2CheckpointStalled|MM2FailoverNotReady|MM2TaskFailed"
)

# To Alertmanager a missing label equals an empty one, also in `equal`: each rule therefore requires
# its label, or an alert without it would inhibit every other alert without it (Alertmanager's
# documentation of inhibit_rules).
INHIBITIONS: Final = (
    *(
        Inhibition(
            f"The {role} of the flow does not answer.",
            (_UNREACHABLE, unequal(role, "")),
            (OURS, unmatching("alertname", _LOSS), unequal("flow", "")),
            (role,),
        )
        for role in ("source", "target")
    ),
    Inhibition(
        "Nothing can be collected from an unreachable cluster.",
        (_UNREACHABLE, unequal("cluster", "")),
        (equal("alertname", "MM2CollectionFailing"),),
        ("cluster",),
    ),
    Inhibition(
        "A stopped flow burns budgets, and its groups resume from replicated data.",
        (equal("alertname", "MM2FlowStopped"), unequal("flow", "")),
        (matching("alertname", _STOP_EFFECTS),),
        ("flow",),
    ),
    Inhibition(
        "Without an exporter there are no metrics.",
        (equal("alertname", "MM2ExporterDown"),),
        (equal("alertname", "MM2FlowMetricsAbsent"),),
    ),
)
