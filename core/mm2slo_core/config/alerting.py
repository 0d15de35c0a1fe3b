"""`alerting:`, where alerts go and where their messages lead."""

from typing import Final

from pydantic import Field

from mm2slo_core.config.fields import Flag, Section
from mm2slo_core.config.names import Address, FilePath, Name, SecretFile

EXPORTER_JOB: Final = "mm2slo"
"""As in the scrape configuration that is shipped."""


class LinksConfig(Section):
    """Base addresses of the links in messages; without one, the link is left out."""

    runbook: Address | None = Field(
        default=None, description="Of the runbooks, one page per alert: `<runbook>/<alert>.md`."
    )
    dashboard: Address | None = Field(default=None, description="Of Grafana.")
    report: Address | None = Field(default=None, description="Of the report service, for `/slo`.")
    prometheus: Address | None = Field(
        default=None, description="Of Prometheus: links to queries, and reloading its rules."
    )
    alertmanager: Address | None = Field(
        default=None, description="Of Alertmanager: silences, by link and by `mm2slo exclude`."
    )


class SlackChannel(Section):
    """A Slack channel, by a name that `slo.channel` refers to."""

    name: Name = Field(description="Name of the channel here, the `channel` label.")
    webhook_url_file: SecretFile = Field(
        description="File with the incoming webhook's address; read by Alertmanager, and by us "
        "for the digest alone."
    )
    channel: Name | None = Field(
        default=None, description="Channel in Slack as people know it; null: that of the webhook."
    )


class Webhook(Section):
    """Any service that takes Alertmanager's webhook, by a name that `slo.channel` refers to."""

    name: Name = Field(description="Name of the webhook here, the `channel` label.")
    url: Address = Field(description="Address that is posted to; no secret belongs into it.")
    credentials_file: SecretFile | None = Field(
        default=None, description="File with a bearer token; read by Alertmanager, never by us."
    )


class MaintenanceConfig(Section):
    """Planned maintenance, as `mm2slo exclude` writes it."""

    rules_file: FilePath = Field(
        default="mm2slo-maintenance.rules.yml",
        description="Rule file of the planned times; one of Prometheus's `rule_files`.",
    )
    silence: Flag = Field(
        default=False, description="Whether planned times silence the flow's alerts as well."
    )


class AlertingConfig(Section):
    """Where alerts go, and where their messages lead."""

    links: LinksConfig = Field(
        default_factory=LinksConfig, description="Base addresses of the links in messages."
    )
    slack: tuple[SlackChannel, ...] = Field(
        default=(), description="Slack channels; the first one takes what names no channel."
    )
    webhooks: tuple[Webhook, ...] = Field(
        default=(), description="Other receivers; the first one is used where there is no Slack."
    )
    watchdog: Name | None = Field(
        default=None,
        description="Webhook, by its name, that raises the alarm when the steady `MM2Watchdog` "
        "ends; it gets nothing else. Null: nobody misses it.",
    )
    platform: Name | None = Field(
        default=None,
        description="Channel told when Slack does not take messages; null: the first webhook, "
        "else the second Slack channel.",
    )
    exporter_job: Name = Field(
        default=EXPORTER_JOB,
        description="Job under which Prometheus scrapes the exporters; a PodMonitor's is "
        "`namespace/name`.",
    )
    maintenance: MaintenanceConfig = Field(
        default_factory=MaintenanceConfig, description="Planned maintenance."
    )

    @property
    def channels(self) -> tuple[str, ...]:
        """Names that `slo.channel` may have, Slack's first."""
        slack = (each.name for each in self.slack)
        webhooks = (each.name for each in self.webhooks if each.name != self.watchdog)
        return (*slack, *webhooks)

    @property
    def default_channel(self) -> str:
        """The channel of alerts that name none; empty where nothing is configured."""
        return next(iter(self.channels), "")
