"""One server: found on PATH, started on a free port, waited for, ended."""

from __future__ import annotations

import json
import shutil
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from mm2slo_lab.errors import LabError
from mm2slo_lab.ports import HOST, free_ports
from mm2slo_lab.process import ManagedProcess, ProcessSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_READY: Final = 60.0
_NAMES: Final = {
    "prometheus": ("prometheus",),
    "promtool": ("promtool",),
    # Debian's package names the server after itself.
    "alertmanager": ("prometheus-alertmanager", "alertmanager"),
    "amtool": ("amtool",),
}
_PACKAGES: Final = {"prometheus": "prometheus", "promtool": "prometheus"}


def installed(name: str) -> bool:
    """Whether the program *name* is on PATH."""
    return any(shutil.which(each) for each in _NAMES[name])


def program(name: str) -> str:
    """The path of *name*: prometheus, promtool, alertmanager or amtool.

    Raises LabError with what to install.
    """
    found = next((path for each in _NAMES[name] if (path := shutil.which(each))), None)
    if found is None:
        package = _PACKAGES.get(name, "prometheus-alertmanager")
        raise LabError(f"{name} is not installed; on Debian: apt-get install {package}")
    return found


@contextmanager
def server(
    name: str, folder: Path, command: Callable[[str], Sequence[str]]
) -> Iterator[tuple[str, ManagedProcess]]:
    """Run *command* of a `host:port` to listen on; its address once it says that it is ready."""
    [port] = free_ports(1)
    listen = f"{HOST}:{port}"
    spec = ProcessSpec(name, tuple(command(listen)), folder / f"{name}.log")
    process = ManagedProcess(spec)
    process.start()
    try:
        address = f"http://{listen}"
        process.wait_until(lambda: _ready(address), "ready", _READY)
        yield address, process
    finally:
        process.stop(10.0)


def get(url: str) -> Any:
    """The JSON at *url*."""
    with urllib.request.urlopen(url, timeout=10) as reply:
        return json.load(reply)


def post(url: str, content: object = None) -> Any:
    """What *url* answers to *content* as JSON; None when it answers nothing."""
    body = b"" if content is None else json.dumps(content).encode()
    request = urllib.request.Request(
        url, data=body, headers={"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=10) as reply:
        answer = reply.read()
    return json.loads(answer) if answer.strip() else None


def _ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/-/ready", timeout=2) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False
