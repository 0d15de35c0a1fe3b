"""Runs `mm2slo` commands as a user starts them, as processes or in this one."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mm2slo_cli.main import main


def run_main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run `mm2slo` in this process; returns its exit code."""
    monkeypatch.setattr(sys, "argv", ["mm2slo", *arguments])
    try:
        return main()
    except SystemExit as ended:
        return int(ended.code or 0)


class CommandRun:
    """Runs one command of `mm2slo` in a folder of its own; calls return exit code and output."""

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        command: str,
        config: str,
    ) -> None:
        """*config*: the content of `mm2slo.yaml`."""
        monkeypatch.chdir(folder)
        Path("mm2slo.yaml").write_text(config)
        self._monkeypatch, self._capsys, self._command = monkeypatch, capsys, command

    def __call__(self, *arguments: str) -> tuple[int, str]:
        code = run_main(self._monkeypatch, self._command, *arguments)
        printed = self._capsys.readouterr()
        return code, printed.out + printed.err


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
