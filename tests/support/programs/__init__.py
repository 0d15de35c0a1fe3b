"""Commands of the project as processes of their own, as a user starts them."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def program(log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """`mm2slo` with *arguments*; it must end well when it is told to. Its output is in *log*."""
    command = [sys.executable, "-m", "mm2slo_cli", *arguments]
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0, log.read_text(encoding="utf-8")
        finally:
            process.kill()
