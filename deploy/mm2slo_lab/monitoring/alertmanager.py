"""Alertmanager: alerts in as Prometheus posts them, messages out to receivers."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mm2slo_lab.monitoring.serving import get, program, server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mm2slo_lab.process import ManagedProcess


@dataclass(frozen=True, slots=True)
class Alertmanager:
    """A running Alertmanager."""

    url: str
    folder: Path
    process: ManagedProcess

    @property
    def config_file(self) -> Path:
        """Its configuration."""
        return self.folder / "alertmanager.yml"

    @property
    def listen(self) -> str:
        """Where Prometheus sends to, `host:port`."""
        return self.url.removeprefix("http://")

    def alerts(self) -> list[dict[str, Any]]:
        """What it knows, with the state of each alert and what silences it."""
        found: list[dict[str, Any]] = get(f"{self.url}/api/v2/alerts")
        return found


@contextmanager
def alertmanager(
    folder: Path,
    configuration: str,
    templates: Mapping[str, str],
    *,
    external_url: str | None = None,
) -> Iterator[Alertmanager]:
    """Run Alertmanager in *folder* with *templates*, texts by the path the configuration names.

    Messages name *external_url*, by default the address it listens on. Raises LabError when it is
    not installed, and ProcessError when it does not start.
    """
    binary = program("alertmanager")
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

    with server("alertmanager", folder, command) as (address, process):
        yield Alertmanager(address, folder, process)
