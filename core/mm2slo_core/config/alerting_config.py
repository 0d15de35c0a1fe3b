"""`alerting:`, the receivers of alerts and the links in their messages."""

from collections.abc import Mapping
from typing import Final

from pydantic import ConfigDict

from mm2slo_core.config.field_types import Flag, Section
from mm2slo_core.config.text_fields import Address, ChannelName, FilePath, Name, SecretFile

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


class SlackChannel(Section):
    """A Slack channel that `slo.channel` refers to by name."""

    name: Name
    """Name in this file, and value of the `channel` label."""
    webhook_url_file: SecretFile
    """File with the URL of the incoming webhook; read by Alertmanager, and by mm2slo for the
    digest."""
    webhook_secret: SecretKey | None = None
    """Secret with that URL, for `AlertmanagerConfig`; null: the key `<name>` of `mm2slo-slack`."""
    channel: ChannelName | None = None
    """Channel name in Slack, such as `#pay`; null: the channel of the webhook."""


class Webhook(Section):
    """A receiver of Alertmanager webhooks that `slo.channel` refers to by name."""

    name: Name
    """Name in this file, and value of the `channel` label."""
    url: Address
    """URL to post to; must not contain a secret."""
    credentials_file: SecretFile | None = None
    """File with a bearer token; read by Alertmanager only."""
    credentials_secret: SecretKey | None = None
    """Secret with that token, for `AlertmanagerConfig`; null: the key `<name>` of
    `mm2slo-webhooks`."""


class Receiver(Section):
    """A receiver in Alertmanager's own format, such as `pagerduty_configs`, passed through.

    Secrets are files (`routing_key_file`), or for `AlertmanagerConfig` keys of Secrets
    (`routing_key: {name: pagerduty, key: routing-key}`).
    """

    model_config = ConfigDict(extra="allow")

    name: Name
    """Name in this file, and value of the `channel` label."""


class SeveritiesConfig(Section):
    """Values of the label `severity`."""

    page: Name
    """Of alerts that notify on-call immediately."""
    ticket: Name
    """Of alerts that are handled within working hours."""


class PrometheusRuleConfig(Section):
    """The resource `PrometheusRule`."""

    labels: Mapping[Name, Name] = {}
    """Labels of its metadata, such as `release`, by which the operator selects rules."""


class MaintenanceConfig(Section):
    """Planned maintenance, written by `mm2slo exclude`."""

    rules_file: FilePath = "mm2slo-maintenance.rules.yml"
    """Rule file of the exclusions; must be in Prometheus's `rule_files`."""
    silence: Flag = False
    """Whether exclusions also silence the alerts of their flows."""


class AlertingConfig(Section):
    """The receivers of alerts, and the links in their messages."""

    links: LinksConfig = LinksConfig()
    """Base URLs of the links in messages."""
    slack: tuple[SlackChannel, ...] = ()
    """Slack channels; the first one is the default channel."""
    webhooks: tuple[Webhook, ...] = ()
    """Other receivers; the first one is the default without Slack."""
    receivers: tuple[Receiver, ...] = ()
    """Receivers in Alertmanager's own format that `slo.channel` refers to by name."""
    severities: SeveritiesConfig = SeveritiesConfig(page="page", ticket="ticket")
    """Values of the label `severity`, such as `{page: critical, ticket: warning}`."""
    labels: Mapping[Name, Name] = {}
    """Labels of every alert, such as `team`."""
    namespace: Name | None = None
    """Kubernetes namespace of the generated resources, and label of every alert: the operator adds
    a matcher for it to `AlertmanagerConfig`."""
    prometheusrule: PrometheusRuleConfig = PrometheusRuleConfig()
    """The resource `PrometheusRule`."""
    watchdog: Name | None = None
    """Name of the webhook that receives `MM2Watchdog` only, and that must raise an alarm when it
    stops arriving; null: no dead man's switch."""
    platform: Name | None = None
    """Channel that is notified when Slack rejects messages; null: the first webhook, or else the
    second Slack channel."""
    exporter_job: Name = EXPORTER_JOB
    """Prometheus job name of the exporters; for a PodMonitor `namespace/name`."""
    maintenance: MaintenanceConfig = MaintenanceConfig()
    """Planned maintenance."""

    @property
    def channels(self) -> tuple[str, ...]:
        """Valid values of `slo.channel`, the Slack channels first."""
        slack = (each.name for each in self.slack)
        webhooks = (each.name for each in self.webhooks if each.name != self.watchdog)
        receivers = (each.name for each in self.receivers if each.name != self.watchdog)
        return (*slack, *webhooks, *receivers)
