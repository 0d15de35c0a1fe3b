"""Chromium without a window: where it is, how it is started, and a page as a picture."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING, Final

from mm2slo_core.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_TIMEOUT: Final = 120.0
"""Seconds; a picture takes about two, of a machine that does nothing else."""
FLAGS: Final = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--hide-scrollbars",
    "--no-first-run",
)
"""For a browser that shows local pages of ours alone, also in a container and as root."""


def found() -> str | None:
    """The program, if it is installed."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


def demand() -> str:
    """The program; UserError when it is not installed."""
    program = found()
    if program is None:
        raise UserError(
            "--png needs Chromium, which is not installed; on Debian: apt-get install chromium, "
            "or leave out --png and open the HTML files in any browser"
        )
    return program


def picture(page: Path, target: Path, width: int, height: int) -> None:
    """Write *page*, *width* x *height* pixels of it, to *target* as PNG; UserError if it fails."""
    program = demand()
    with tempfile.TemporaryDirectory(
        prefix="mm2slo-chromium-", ignore_cleanup_errors=True
    ) as profile:
        command = [
            program,
            *FLAGS,
            f"--user-data-dir={profile}",
            f"--window-size={width},{height}",
            f"--screenshot={target.resolve()}",
            page.resolve().as_uri(),
        ]
        target.unlink(missing_ok=True)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_TIMEOUT
            )
        except subprocess.TimeoutExpired:
            raise UserError(f"{program} took more than {_TIMEOUT:.0f} s for {page}") from None
    if not target.exists():
        said = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise UserError(f"{program} made no picture of {page}: {said[0]}")
