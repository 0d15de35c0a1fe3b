"""Runs Alertmanager."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mm2slo_lab.monitoring.monitoring_server import find_program, get_json, run_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mm2slo_lab.managed_process import ManagedProcess


@dataclass(frozen=True, slots=True)
class Alertmanager:
    """A running Alertmanager."""

    url: str
    folder: Path
    process: ManagedProcess

    @property
    def config_file(self) -> Path:
        return self.folder / "alertmanager.yml"

    @property
    def listen(self) -> str:
        """Address for Prometheus, `host:port`."""
        return self.url.removeprefix("http://")

    def alerts(self) -> list[dict[str, Any]]:
        """Return all alerts with their status."""
        found: list[dict[str, Any]] = get_json(f"{self.url}/api/v2/alerts")
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
            "--cluster.listen-address=",
            "--log.level=info",
        ]

    with run_server("alertmanager", folder, command) as (address, process):
        yield Alertmanager(address, folder, process)
