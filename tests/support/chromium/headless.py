"""Headless Chromium: the installed program, its flags, and a page as a PNG."""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_TIMEOUT: Final = 120.0
"""Seconds; a screenshot takes about two on an idle machine."""
FLAGS: Final = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--hide-scrollbars",
    "--no-first-run",
)
"""For local pages of ours only, also in a container and as root."""


def find_chromium() -> str | None:
    """The path of the program, None if it is not installed."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


def save_screenshot(page: Path, target: Path, width: int, height: int) -> None:
    """Write the first *width* x *height* pixels of *page* to *target* as PNG."""
    program = find_chromium()
    if program is None:
        raise AssertionError("chromium is not installed: run make chromium")
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
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_TIMEOUT
        )
    assert target.exists(), done.stderr
