"""Runs a server of Prometheus or Alertmanager on a free port."""

from __future__ import annotations

import json
import shutil
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from mm2slo_lab.lab_errors import LabError
from mm2slo_lab.managed_process import ManagedProcess, ProcessSpec
from mm2slo_lab.ports import HOST, free_ports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_READY: Final = 60.0
_NAMES: Final = {
    "prometheus": ("prometheus",),
    "promtool": ("promtool",),
    # Name in Debian's package.
    "alertmanager": ("prometheus-alertmanager", "alertmanager"),
    "amtool": ("amtool",),
}
_PACKAGES: Final = {"prometheus": "prometheus", "promtool": "prometheus"}


def is_installed(name: str) -> bool:
    """Whether the program *name* is on PATH."""
    return any(shutil.which(each) for each in _NAMES[name])


def find_program(name: str) -> str:
    """Return the path of prometheus, promtool, alertmanager or amtool.

    Raises LabError if it is not installed.
    """
    found = next((path for each in _NAMES[name] if (path := shutil.which(each))), None)
    if found is None:
        package = _PACKAGES.get(name, "prometheus-alertmanager")
        raise LabError(f"{name} is not installed; on Debian: apt-get install {package}")
    return found


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


def get_json(url: str) -> Any:
    """Return the JSON at *url*."""
    with urllib.request.urlopen(url, timeout=60) as reply:
        return json.load(reply)


def post_json(url: str, content: object = None) -> Any:
    """Post *content* as JSON; returns the JSON response, or None if it is empty."""
    body = b"" if content is None else json.dumps(content).encode()
    request = urllib.request.Request(
        url, data=body, headers={"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        response = reply.read()
    return json.loads(response) if response.strip() else None


def _is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/-/ready", timeout=2) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False
