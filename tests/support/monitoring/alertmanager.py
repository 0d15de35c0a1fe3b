"""Runs Alertmanager, and posts alerts to it as Prometheus does."""

import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from mm2slo_alerts.alertmanager_config import TEMPLATES
from mm2slo_alerts.slack_template import message_template
from mm2slo_core.config.alerting_config import AlertingConfig
from mm2slo_lab.lab_monitoring import Alertmanager as Running
from mm2slo_lab.lab_monitoring import alertmanager as running
from mm2slo_lab.lab_monitoring import find_program, post_json

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


class Alertmanager(Running):
    """A running Alertmanager that tests post alerts to."""

    __slots__ = ()

    def post(self, *alerts: Mapping[str, Any]) -> None:
        """Post *alerts* (see `alert`) in one request, so that they are grouped."""
        post_json(f"{self.url}/api/v2/alerts", alerts)

    def fire(
        self,
        labels: Mapping[str, str],
        annotations: Mapping[str, str] | None = None,
        *,
        since: datetime | None = None,
    ) -> None:
        """Post a firing alert."""
        self.post(alert(labels, annotations, since=since))

    def resolve(
        self,
        labels: Mapping[str, str],
        annotations: Mapping[str, str] | None = None,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> None:
        """Post a resolved alert, which ends now by default."""
        self.post(alert(labels, annotations, since=since, until=until or datetime.now(UTC)))

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
    with running(folder, configuration, templates, external_url=EXTERNAL_URL) as server:
        yield Alertmanager(server.url, server.folder, server.process)
