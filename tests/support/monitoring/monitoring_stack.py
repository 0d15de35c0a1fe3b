"""Prometheus, Alertmanager and a fake Slack, started from the generated files."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fake_slack import FakeSlackWebhook

from mm2slo_alerts.alert_files import ALERTMANAGER, generated
from mm2slo_alerts.alert_rules import PRODUCTION, Scale
from mm2slo_core.config.alerting_config import AlertingConfig, SlackChannel
from mm2slo_core.config.config_model import Config
from mm2slo_lab.lab_monitoring import Prometheus
from monitoring.alertmanager import Alertmanager, alertmanager
from monitoring.prometheus import prometheus


@dataclass(frozen=True, slots=True)
class Monitoring:
    """The running servers."""

    prometheus: Prometheus
    alertmanager: Alertmanager
    slack: FakeSlackWebhook


@contextmanager
def monitoring(
    folder: Path,
    config: Config,
    targets: Sequence[str],
    *,
    scale: Scale = PRODUCTION,
    extra_rules: Mapping[str, str] | None = None,
    history: str | None = None,
) -> Iterator[Monitoring]:
    """Run a fake Slack, Alertmanager and Prometheus with the files generated from *config*.

    Prometheus scrapes *targets* (`host:port`) as job `mm2slo`. All Slack channels of *config* are
    sent to the fake; a config without channels gets one.
    """
    with FakeSlackWebhook(burst=20) as slack:
        secret = folder / "slack-webhook-url"
        secret.write_text(slack.url, encoding="utf-8")
        files = generated(_with_slack(config, str(secret)), scale)

        rules = {
            path.rpartition("/")[2]: text
            for path, text in files.items()
            if path.endswith(".rules.yml")
        }
        (folder / "alertmanager").mkdir()
        (folder / "prometheus").mkdir()
        with (
            alertmanager(folder / "alertmanager", files[ALERTMANAGER], config.alerting) as manager,
            prometheus(
                folder / "prometheus",
                {
                    "mm2slo": targets,
                    "alertmanager": [manager.listen],
                },
                rules={**rules, **(extra_rules or {})},
                alertmanager=manager.listen,
                scale=scale,
                history=history,
            ) as server,
        ):
            yield Monitoring(server, manager, slack)


def _with_slack(config: Config, secret: str) -> Config:
    channels = tuple(
        channel.model_copy(update={"webhook_url_file": secret, "channel": None})
        for channel in config.alerting.slack
    ) or (SlackChannel(name="mirroring", webhook_url_file=secret),)
    alerting: AlertingConfig = config.alerting.model_copy(update={"slack": channels})
    return config.model_copy(update={"alerting": alerting})
