"""The demo's alerts: Prometheus and Alertmanager with the generated files, beside the stage."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_alerts.files import ALERTMANAGER, SLACK_TEMPLATE, generated
from mm2slo_alerts.model import Scale
from mm2slo_alerts.preview.blocks import unescaped
from mm2slo_cli.demo.inbox import Inbox
from mm2slo_core.config.alerting import SlackChannel
from mm2slo_lab.monitoring import Cadence, alertmanager, installed, prometheus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_cli.demo.stage import Stage
    from mm2slo_core.config import Config
    from mm2slo_lab.monitoring import Alertmanager, Prometheus

SCALE: Final = Scale(1 / 15)
"""A person watches: four seconds where production waits a minute."""
_NEEDED: Final = ("prometheus", "alertmanager")


@dataclass(frozen=True, slots=True)
class Monitored:
    """What runs, and Slack's stand-in."""

    prometheus: Prometheus
    alertmanager: Alertmanager
    slack: Inbox

    @property
    def newest(self) -> str | None:
        """The title of the newest message in Slack."""
        messages = self.slack.messages
        return unescaped(messages[-1]["attachments"][0]["title"]) if messages else None


def missing() -> tuple[str, ...]:
    """The programs that are not installed."""
    return tuple(name for name in _NEEDED if not installed(name))


@contextmanager
def monitored(stage: Stage) -> Iterator[Monitored]:
    """Run both for the exporter of *stage*. Raises LabError when one is not installed."""
    folder = stage.lab.runtime.root / "monitoring"
    folder.mkdir(exist_ok=True)
    with Inbox() as slack:
        secret = folder / "slack-webhook-url"
        secret.write_text(slack.url, encoding="utf-8")
        files = generated(_to_slack(stage.config, str(secret)), SCALE)
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
                    "mm2slo": [stage.url.removeprefix("http://")],
                    "alertmanager": [manager.listen],
                },
                rules=rules,
                alertmanager=manager.listen,
                cadence=Cadence().scaled(SCALE.factor),
            ) as server,
        ):
            stage.beside["alerts"] = f"{server.url}/alerts"
            yield Monitored(server, manager, slack)


def _to_slack(config: Config, secret: str) -> Config:
    channel = SlackChannel(name="demo", webhook_url_file=secret)
    alerting = config.alerting.model_copy(update={"slack": (channel,)})
    return config.model_copy(update={"alerting": alerting})
