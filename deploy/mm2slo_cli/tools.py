"""The tools of Prometheus and Alertmanager: where they are, how to get them, how they are run."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Final

from mm2slo_core.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

_PACKAGES: Final = {"promtool": "prometheus", "amtool": "prometheus-alertmanager"}
_TIMEOUT: Final = 300.0
"""Seconds; they take about one, of a machine that does nothing else."""


def missing(name: str, so: str = "") -> str:
    """Empty when the tool *name* is on PATH; else what to install, and *so* what follows."""
    if shutil.which(name) is not None:
        return ""
    return f"{name} is not installed{so}; on Debian: apt-get install {_PACKAGES[name]}"


def demand(name: str) -> None:
    """Raise UserError when the tool *name* is not installed."""
    if absent := missing(name):
        raise UserError(absent)


def run(name: str, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the tool *name* in *folder*; its exit code is the caller's to judge.

    Raises UserError when it is not installed.
    """
    demand(name)
    return subprocess.run(
        [name, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT,
    )
