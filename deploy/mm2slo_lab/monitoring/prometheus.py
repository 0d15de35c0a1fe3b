"""Runs Prometheus."""

from __future__ import annotations

import subprocess
import urllib.parse
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from mm2slo_lab.monitoring.monitoring_server import find_program, get_json, post_json, run_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from mm2slo_lab.managed_process import ManagedProcess

_MS = 1000


@dataclass(frozen=True, slots=True)
class Cadence:
    """Intervals of Prometheus in seconds."""

    scrape: float = 15.0
    evaluation: float = 30.0
    resend: float = 60.0
    """Firing alerts are sent again after this time; they resolve after four times as long."""

    def scaled(self, factor: float) -> Cadence:
        """Return the intervals multiplied by *factor*."""
        return Cadence(self.scrape * factor, self.evaluation * factor, self.resend * factor)


PRODUCTION = Cadence()


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A running Prometheus."""

    url: str
    folder: Path
    process: ManagedProcess

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the current instant vector."""
        parameters = urllib.parse.urlencode({"query": expression})
        found: list[dict[str, Any]] = get_json(f"{self.url}/api/v1/query?{parameters}")["data"][
            "result"
        ]
        return found

    def holds(self, expression: str) -> bool:
        """Whether the current instant vector has any series."""
        return bool(self.query(expression))

    def alerts(self) -> list[dict[str, Any]]:
        """Return pending and firing alerts."""
        found: list[dict[str, Any]] = get_json(f"{self.url}/api/v1/alerts")["data"]["alerts"]
        return found

    def firing(self) -> set[str]:
        """Return the names of firing alerts."""
        return {each["labels"]["alertname"] for each in self.alerts() if each["state"] == "firing"}

    def reload(self) -> None:
        """Reload the configuration and the rules."""
        post_json(f"{self.url}/-/reload")


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
    """Run Prometheus in *folder*; *history* (OpenMetrics text) is loaded as blocks.

    *targets* are `host:port` by job, *rules* texts of rule files by name, *alertmanager* is a
    `host:port`. Raises LabError when it is not installed, ProcessError when it does not start.
    """
    binary = find_program("prometheus")
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

    with run_server("prometheus", folder, command) as (address, process):
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
    command = [find_program("promtool"), "tsdb", "create-blocks-from", "openmetrics"]
    subprocess.run([*command, str(text), str(folder / "data")], check=True, capture_output=True)
