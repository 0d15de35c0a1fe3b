"""Finds and runs promtool and amtool."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

from mm2slo_core.user_errors import UserError

_PACKAGES: Final = {"promtool": "prometheus", "amtool": "prometheus-alertmanager"}

_TIMEOUT: Final = 300.0
"""Seconds; a call takes about one on an idle machine."""


def missing_tool(name: str, so: str = "") -> str:
    """Return "" if the tool is on PATH, else a message with *so* as its consequence."""
    if shutil.which(name) is not None:
        return ""
    return f"{name} is not installed{so}; on Debian: apt-get install {_PACKAGES[name]}"


def require_tool(name: str) -> None:
    """Raise UserError when the tool *name* is not installed."""
    if absent := missing_tool(name):
        raise UserError(absent)


def run_tool(
    name: str, *arguments: str, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the tool *name* in *folder*; the caller checks the exit code.

    Raises UserError when it is not installed.
    """
    require_tool(name)
    return subprocess.run(
        [name, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT,
    )
