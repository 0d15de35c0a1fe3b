"""`alerting:`, the receivers of alerts and the links in their messages."""

from typing import Final

from mm2slo_core.config.field_types import Flag, Section
from mm2slo_core.config.text_fields import Address, FilePath, Name, SecretFile

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


class SlackChannel(Section):
    """A Slack channel that `slo.channel` refers to by name."""

    name: Name
    """Name in this file, and value of the `channel` label."""
    webhook_url_file: SecretFile
    """File with the URL of the incoming webhook; read by Alertmanager, and by mm2slo for the
    digest."""
    channel: Name | None = None
    """Channel name in Slack; null: the channel of the webhook."""


class Webhook(Section):
    """A receiver of Alertmanager webhooks that `slo.channel` refers to by name."""

    name: Name
    """Name in this file, and value of the `channel` label."""
    url: Address
    """URL to post to; must not contain a secret."""
    credentials_file: SecretFile | None = None
    """File with a bearer token; read by Alertmanager only."""


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
        return (*slack, *webhooks)
