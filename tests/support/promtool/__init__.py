"""Prometheus's own program for testing rules, and what it is given."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
RULE_TESTS: Final = ROOT / "tests" / "rules"

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed: make prometheus"
)


def run_rule_tests(*files: Path) -> None:
    """Run test files of rules; fails with promtool's words."""
    _run("test", "rules", *map(str, files))


def check_rules(*files: Path) -> None:
    """Load rule files, with every lint; fails with promtool's words."""
    _run("check", "rules", "--lint=all", "--lint-fatal", *map(str, files))


def _run(*arguments: str) -> None:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
