"""Runs `mm2slo` in the process of a test."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from mm2slo_cli import main as cli

if TYPE_CHECKING:
    Run = Callable[[str], tuple[int, str, str]]


@pytest.fixture
def mm2slo(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `mm2slo` with the arguments in a text, in 80 columns; exit code, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "80")

    def run(arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["mm2slo", *shlex.split(arguments)])
        try:
            code = cli.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        return code, *capsys.readouterr()

    return run
