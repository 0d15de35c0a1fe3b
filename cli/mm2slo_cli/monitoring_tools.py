"""Runs promtool and amtool."""

import subprocess
from pathlib import Path
from typing import Final

from mm2slo_lab.lab_monitoring import find_program

_TIMEOUT: Final = 300.0
"""Seconds; a call takes about one on an idle machine."""


def run_tool(
    name: str, *arguments: str, folder: Path | None = None, consequence: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the tool *name* in *folder*; the caller checks the exit code.

    Raises LabError with *consequence* when it is not installed.
    """
    return subprocess.run(
        [find_program(name, consequence), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT,
    )
