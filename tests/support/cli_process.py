"""Runs `mm2slo` commands as processes, as a user starts them."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def run_mm2slo(log: Path, *arguments: str, exit_code: int = 0) -> Iterator[subprocess.Popen[bytes]]:
    """Run `mm2slo` with output to *log*; it must exit with *exit_code* after SIGTERM."""
    command = [sys.executable, "-m", "mm2slo_cli", *arguments]
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == exit_code, log.read_text(encoding="utf-8")
        finally:
            process.kill()
