"""Prometheus, Alertmanager and receivers of their messages, as local processes.

`monitoring` starts all of them from the generated files; each can be started alone. They listen on
free loopback ports, and end with their context or with this process.
"""

import json
import subprocess
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from fake_slack import FakeSlackWebhook
from recording_server import Answer, RecordingServer, Request

from mm2slo_alerts.alert_files import ALERTMANAGER, generated
from mm2slo_alerts.alert_rules import PRODUCTION, Scale
from mm2slo_alerts.alertmanager_config import TEMPLATES
from mm2slo_alerts.slack_template import message_template
from mm2slo_core.config.alerting_config import AlertingConfig, SlackChannel
from mm2slo_core.config.config_model import Config
from mm2slo_lab import lab_monitoring
from mm2slo_lab.lab_monitoring import Cadence, Prometheus, find_program
from mm2slo_lab.managed_process import request_json

DAY: Final = 86_400
_AT_ONCE: Final = 2


def write_history_blocks(
    lines: Callable[[int, int], Iterable[str]], start: int, end: int, folder: Path
) -> None:
    """Write blocks of [start, end) with promtool, for a Prometheus in *folder*.

    *lines* returns the OpenMetrics lines of a part of a day. Times are epoch seconds.
    """
    blocks = folder / "data"
    blocks.mkdir()

    def write(day: int) -> None:
        source = folder / f"{day}.om"
        with source.open("w", encoding="utf-8") as text:
            text.writelines(f"{line}\n" for line in lines(max(day, start), min(day + DAY, end)))
            text.write("# EOF\n")
        command = "promtool tsdb create-blocks-from openmetrics --quiet --max-block-duration=24h"
        subprocess.run([*command.split(), str(source), str(blocks)], check=True)
        source.unlink()

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(write, range(start // DAY * DAY, end, DAY)))


@contextmanager
def prometheus(
    folder: Path,
    targets: Mapping[str, Sequence[str]],
    *,
    rules: Mapping[str, str] | None = None,
    alertmanager: str | None = None,
    scale: Scale = PRODUCTION,
    history: str | None = None,
) -> Iterator[Prometheus]:
    """Run Prometheus in *folder*, with its intervals scaled like those of the rules."""
    with lab_monitoring.prometheus(
        folder,
        targets,
        rules=rules,
        alertmanager=alertmanager,
        cadence=Cadence().scaled(scale.factor),
        history=history,
    ) as server:
        yield server


def own_metrics(server: Prometheus, name: str) -> dict[str, float]:
    """Values of metric *name* by rule group, without its file; "" for other metrics."""
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=60) as reply:
        lines = reply.read().decode().splitlines()
    found: dict[str, float] = {}
    for line in lines:
        key, _, value = line.rpartition(" ")
        if key == name or key.startswith(f"{name}{{"):
            group = key.partition('rule_group="')[2].partition('"')[0].rpartition(";")[2]
            found[group] = found.get(group, 0.0) + float(value)
    return found


EXTERNAL_URL: Final = "http://alertmanager.example"
"""Address in messages; with the free port they would differ from run to run."""


def alert(
    labels: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
) -> dict[str, Any]:
    """An alert as Prometheus posts it: firing for five minutes, or resolved at *until*."""
    now = datetime.now(UTC)
    start = since or (now if until is None else until - timedelta(milliseconds=1))
    return {
        "labels": dict(labels),
        "annotations": dict(annotations or {}),
        "startsAt": start.isoformat(),
        "endsAt": (until or now + timedelta(minutes=5)).isoformat(),
        "generatorURL": "http://prometheus.example/graph",
    }


class Alertmanager(lab_monitoring.Alertmanager):
    """A running Alertmanager that tests post alerts to."""

    __slots__ = ()

    def post(self, *alerts: Mapping[str, Any]) -> None:
        """Post *alerts* (see `alert`) in one request, so that they are grouped."""
        request_json(f"{self.url}/api/v2/alerts", "POST", alerts)

    def metric(self, name: str, **labels: str) -> float:
        """Sum of one of Alertmanager's metrics over series with *labels*."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=60) as reply:
            lines = reply.read().decode().splitlines()
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        return sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith((f"{name}{{", f"{name} ")) and all(part in line for part in wanted)
        )

    def amtool(self, *arguments: str) -> str:
        """Run amtool and return its output; the exit code must be 0."""
        done = subprocess.run(
            [find_program("amtool"), *arguments, f"--alertmanager.url={self.url}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@contextmanager
def alertmanager(
    folder: Path, configuration: str, config: AlertingConfig | None = None
) -> Iterator[Alertmanager]:
    """Run Alertmanager in *folder* with the text *configuration* and the Slack template."""
    templates = {TEMPLATES: message_template(config or AlertingConfig())}
    with lab_monitoring.alertmanager(
        folder, configuration, templates, external_url=EXTERNAL_URL
    ) as server:
        yield Alertmanager(server.url, server.folder, server.process)


_KEYS = {
    *("version", "groupKey", "truncatedAlerts", "status", "receiver", "groupLabels"),
    *("commonLabels", "commonAnnotations", "externalURL", "alerts"),
}


class WebhookReceiver(RecordingServer):
    """Accepts messages at `url`; with *token*, only those that carry it."""

    def __init__(self, token: str | None = None) -> None:
        self.messages: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self._token = token
        super().__init__(self._answer)

    @property
    def url(self) -> str:
        """Address to post to."""
        return f"{self.address}/alerts"

    def _answer(self, request: Request) -> Answer:
        if self._token and request.headers.get("authorization") != f"Bearer {self._token}":
            self.refused.append(request.headers.get("authorization", "no authorization"))
            return Answer(401, "unauthorized")
        payload = json.loads(request.body)
        if set(payload) != _KEYS or payload["version"] != "4":
            self.refused.append(f"keys {sorted(payload)}")
            return Answer(400, "bad request")
        self.messages.append(payload)
        return Answer()


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
                rules=rules,
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
