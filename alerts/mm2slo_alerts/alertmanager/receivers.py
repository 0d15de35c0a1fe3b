"""Receivers: one per channel, and one that discards the watchdog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mm2slo_core.config.alerting_config import SlackChannel
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.config.alerting_config import AlertingConfig, Webhook

DISCARD: Final = "null"
DEFAULT_WEBHOOK_FILE: Final = "/etc/mm2slo/slack-webhook-url"
_DEFAULT_CHANNEL: Final = SlackChannel(name="default", webhook_url_file=DEFAULT_WEBHOOK_FILE)
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
        return self.config.slack if self.config.channels else (_DEFAULT_CHANNEL,)

    @property
    def channels(self) -> tuple[str, ...]:
        """Values of the label `channel`, Slack channels first."""
        return self.config.channels or (_DEFAULT_CHANNEL.name,)

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
        [settings] = self._slack((*self.slack, _DEFAULT_CHANNEL)[0])["slack_configs"]
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
