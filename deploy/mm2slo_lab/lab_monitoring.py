"""Prometheus and Alertmanager processes for the lab.

Rules, routes and templates are passed as text. Raises LabError if a program is not installed.
"""

import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import yaml

from mm2slo_lab.lab_topology import LabError
from mm2slo_lab.managed_process import (
    HOST,
    ManagedProcess,
    ProcessSpec,
    free_ports,
    request_json,
)

_MS = 1000


@dataclass(frozen=True, slots=True)
class Cadence:
    """Intervals of Prometheus in seconds."""

    scrape: float = 15.0
    evaluation: float = 30.0
    resend: float = 60.0
    """Firing alerts are sent again after this time; they resolve after four times as long."""

    def scaled(self, factor: float) -> Self:
        """Return the intervals multiplied by *factor*."""
        return type(self)(self.scrape * factor, self.evaluation * factor, self.resend * factor)


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
        answer = request_json(f"{self.url}/api/v1/query?{parameters}")
        vector: list[dict[str, Any]] = answer["data"]["result"]
        return vector

    def holds(self, expression: str) -> bool:
        """Whether the current instant vector has any series."""
        return bool(self.query(expression))

    def alerts(self) -> list[dict[str, Any]]:
        """Return pending and firing alerts."""
        found: list[dict[str, Any]] = request_json(f"{self.url}/api/v1/alerts")["data"]["alerts"]
        return found

    def reload(self) -> None:
        """Reload the configuration and the rules."""
        request_json(f"{self.url}/-/reload", "POST")


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


@dataclass(frozen=True, slots=True)
class Alertmanager:
    """A running Alertmanager."""

    url: str
    folder: Path
    process: ManagedProcess

    @property
    def listen(self) -> str:
        """Address for Prometheus, `host:port`."""
        return self.url.removeprefix("http://")

    def alerts(self) -> list[dict[str, Any]]:
        """Return all alerts with their status."""
        found: list[dict[str, Any]] = request_json(f"{self.url}/api/v2/alerts")
        return found


@contextmanager
def alertmanager(
    folder: Path,
    configuration: str,
    templates: Mapping[str, str],
    *,
    external_url: str | None = None,
) -> Iterator[Alertmanager]:
    """Run Alertmanager in *folder* with *templates*, texts by path as in the configuration.

    Links in messages use *external_url*, by default the listen address. Raises LabError when it is
    not installed, ProcessError when it does not start.
    """
    binary = find_program("alertmanager")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in templates.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    config = folder / "alertmanager.yml"
    config.write_text(configuration, encoding="utf-8")

    def command(listen: str) -> list[str]:
        return [
            binary,
            f"--config.file={config}",
            f"--storage.path={folder / 'data'}",
            f"--web.listen-address={listen}",
            f"--web.external-url={external_url or f'http://{listen}'}",
            # Empty: without peers. The default port of the gossip, 9094, would be taken when two
            # labs run (Alertmanager, "High availability").
            "--cluster.listen-address=",
            "--log.level=info",
        ]

    with run_server("alertmanager", folder, command) as (address, process):
        yield Alertmanager(address, folder, process)


_READY: Final = 60.0

_NAMES: Final = {
    # Name in Debian's package.
    "alertmanager": ("prometheus-alertmanager", "alertmanager"),
}
_PACKAGES: Final = {"prometheus": "prometheus", "promtool": "prometheus"}


def is_installed(name: str) -> bool:
    """Whether prometheus, promtool, alertmanager or amtool is on PATH."""
    return any(map(shutil.which, _NAMES.get(name, (name,))))


def find_program(name: str, consequence: str = "") -> str:
    """Return the path of such a program. Raises LabError with *consequence* if it is missing."""
    for each in _NAMES.get(name, (name,)):
        if path := shutil.which(each):
            return path
    package = _PACKAGES.get(name, "prometheus-alertmanager")
    raise LabError(f"{name} is not installed{consequence}; on Debian: apt-get install {package}")


@contextmanager
def run_server(
    name: str, folder: Path, command: Callable[[str], Sequence[str]]
) -> Iterator[tuple[str, ManagedProcess]]:
    """Run *command*, a function of the listen address; yields the URL once it is ready."""
    [port] = free_ports(1)
    listen = f"{HOST}:{port}"
    spec = ProcessSpec(name, tuple(command(listen)), folder / f"{name}.log")
    process = ManagedProcess(spec)
    process.start()
    try:
        address = f"http://{listen}"
        process.wait_until(lambda: _is_ready(address), "ready", _READY)
        yield address, process
    finally:
        process.stop(10.0)


def _is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/-/ready", timeout=2) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False
