"""Runs Prometheus and Alertmanager with the generated files for the demo."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_alerts.output_files import ALERTMANAGER, SLACK_TEMPLATE, generated
from mm2slo_alerts.preview.slack_blocks import unescaped
from mm2slo_alerts.rule_model import Scale
from mm2slo_cli.demo.slack_stub import SlackStub
from mm2slo_core.config.alerting_config import SlackChannel
from mm2slo_lab.monitoring import Cadence, alertmanager, is_installed, prometheus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_cli.demo.demo_environment import DemoEnvironment
    from mm2slo_core.config import Config
    from mm2slo_lab.monitoring import Alertmanager, Prometheus

SCALE: Final = Scale(1 / 15)
"""The demo is interactive: one minute of the rules becomes four seconds."""
_NEEDED: Final = ("prometheus", "alertmanager")


@dataclass(frozen=True, slots=True)
class AlertStack:
    """Running Prometheus and Alertmanager, and a stub of Slack."""

    prometheus: Prometheus
    alertmanager: Alertmanager
    slack: SlackStub

    @property
    def newest_message(self) -> str | None:
        """Title of the newest Slack message."""
        messages = self.slack.messages
        return unescaped(messages[-1]["attachments"][0]["title"]) if messages else None


def missing_programs() -> tuple[str, ...]:
    """Return the programs that are not installed."""
    return tuple(name for name in _NEEDED if not is_installed(name))


@contextmanager
def run_alert_stack(environment: DemoEnvironment) -> Iterator[AlertStack]:
    """Run both for the exporter of *environment*. Raises LabError if one is not installed."""
    folder = environment.lab.runtime.root / "monitoring"
    folder.mkdir(exist_ok=True)
    with SlackStub() as slack:
        secret = folder / "slack-webhook-url"
        secret.write_text(slack.url, encoding="utf-8")
        files = generated(_to_slack(environment.config, str(secret)), SCALE)
        rules = {
            name.rpartition("/")[2]: text
            for name, text in files.items()
            if name.endswith(".rules.yml")
        }
        template = {SLACK_TEMPLATE.removeprefix("alertmanager/"): files[SLACK_TEMPLATE]}
        with (
            alertmanager(folder / "alertmanager", files[ALERTMANAGER], template) as manager,
            prometheus(
                folder / "prometheus",
                {
                    "mm2slo": [environment.url.removeprefix("http://")],
                    "alertmanager": [manager.listen],
                },
                rules=rules,
                alertmanager=manager.listen,
                cadence=Cadence().scaled(SCALE.factor),
            ) as server,
        ):
            environment.extra_urls["alerts"] = f"{server.url}/alerts"
            yield AlertStack(server, manager, slack)


def _to_slack(config: Config, secret: str) -> Config:
    channel = SlackChannel(name="demo", webhook_url_file=secret)
    alerting = config.alerting.model_copy(update={"slack": (channel,)})
    return config.model_copy(update={"alerting": alerting})
