"""Prometheus: scrapes targets, evaluates rules, sends to Alertmanager."""

from __future__ import annotations

import subprocess
import urllib.parse
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from mm2slo_lab.monitoring.serving import get, post, program, server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from mm2slo_lab.process import ManagedProcess

_MS = 1000


@dataclass(frozen=True, slots=True)
class Cadence:
    """Prometheus's own times, in seconds."""

    scrape: float = 15.0
    evaluation: float = 30.0
    resend: float = 60.0
    """An alert that fires is sent again after this; Alertmanager forgets it after four of it."""

    def scaled(self, factor: float) -> Cadence:
        """The same with every time shortened by *factor*."""
        return Cadence(self.scrape * factor, self.evaluation * factor, self.resend * factor)


PRODUCTION = Cadence()


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A running Prometheus."""

    url: str
    folder: Path
    process: ManagedProcess

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The instant vector now."""
        parameters = urllib.parse.urlencode({"query": expression})
        found: list[dict[str, Any]] = get(f"{self.url}/api/v1/query?{parameters}")["data"]["result"]
        return found

    def holds(self, expression: str) -> bool:
        """Whether the instant vector now has any series."""
        return bool(self.query(expression))

    def alerts(self) -> list[dict[str, Any]]:
        """Alerts that are pending or fire."""
        found: list[dict[str, Any]] = get(f"{self.url}/api/v1/alerts")["data"]["alerts"]
        return found

    def firing(self) -> set[str]:
        """The names of alerts that fire."""
        return {each["labels"]["alertname"] for each in self.alerts() if each["state"] == "firing"}

    def reload(self) -> None:
        """Read the configuration and the rules again."""
        post(f"{self.url}/-/reload")


@contextmanager
def prometheus(
    folder: Path,
    targets: Mapping[str, Sequence[str]],
    *,
    rules: Mapping[str, str] | None = None,
    alertmanager: str | None = None,
    cadence: Cadence = PRODUCTION,
    history: str | None = None,
) -> Iterator[Prometheus]:
    """Run Prometheus in *folder*, with the OpenMetrics text *history* already in its blocks.

    *targets* are `host:port` by job, *rules* texts of rule files by name, *alertmanager* a
    `host:port`. Raises LabError when it is not installed, and ProcessError when it does not start.
    """
    binary = program("prometheus")
    (folder / "rules").mkdir(parents=True, exist_ok=True)
    for name, text in (rules or {}).items():
        (folder / "rules" / name).write_text(text, encoding="utf-8")
    config = folder / "prometheus.yml"
    document = _configuration(targets, alertmanager, cadence)
    config.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    if history is not None:
        _write_blocks(folder, history)

    def command(listen: str) -> list[str]:
        return [
            binary,
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            "--storage.tsdb.retention.time=35d",
            f"--web.listen-address={listen}",
            "--web.enable-lifecycle",
            f"--rules.alert.resend-delay={_duration(cadence.resend)}",
            "--log.level=warn",
        ]

    with server("prometheus", folder, command) as (address, process):
        yield Prometheus(address, folder, process)


def _configuration(
    targets: Mapping[str, Sequence[str]], alertmanager: str | None, cadence: Cadence
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "global": {
            "scrape_interval": _duration(cadence.scrape),
            "scrape_timeout": _duration(min(10.0, cadence.scrape)),
            "evaluation_interval": _duration(cadence.evaluation),
        },
        "rule_files": ["rules/*.yml"],
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": list(addresses)}]}
            for job, addresses in targets.items()
        ],
    }
    if alertmanager is not None:
        managers = [{"static_configs": [{"targets": [alertmanager]}]}]
        document["alerting"] = {"alertmanagers": managers}
    return document


def _duration(seconds: float) -> str:
    return f"{max(round(seconds * _MS), 1)}ms"


def _write_blocks(folder: Path, history: str) -> None:
    text = folder / "history.txt"
    text.write_text(history, encoding="utf-8")
    command = [program("promtool"), "tsdb", "create-blocks-from", "openmetrics"]
    subprocess.run([*command, str(text), str(folder / "data")], check=True, capture_output=True)
