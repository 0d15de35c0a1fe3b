"""CI tries failed tests on clusters again, alone, and refuses everything else."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "deploy" / "scripts" / "retry-failed"
SLOW = "tests/integration/test_a.py::test_slow[x y]"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose pytest fails for every test that is named in `broken`."""
    for folder in ("deploy/scripts", ".venv/bin", "build"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(SCRIPT, tmp_path / "deploy" / "scripts")
    stub = tmp_path / ".venv" / "bin" / "pytest"
    stub.write_text('#!/bin/sh\n: >build/failed-tests.txt\n! grep -Fqx -- "$2" broken\n')
    stub.chmod(0o755)
    (tmp_path / "broken").touch()
    return tmp_path


def retry(checkout: Path, *failed: str) -> subprocess.CompletedProcess[str]:
    text = "".join(f"{line}\n" for line in failed)
    (checkout / "build" / "failed-tests.txt").write_text(text)
    command = [checkout / "deploy" / "scripts" / "retry-failed"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_retry_failed_lab_tests_that_pass_alone_are_named_flaky(checkout: Path) -> None:
    done = retry(checkout, f"lab {SLOW}", "lab b", "lab c")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"FLAKY: {SLOW}\nFLAKY: b\nFLAKY: c\n"
    assert (checkout / "build" / "flaky-tests.txt").read_text() == f"{SLOW}\nb\nc\n"


@pytest.mark.parametrize(
    ("failed", "reason"),
    [
        ((), "the run failed, and no test did"),
        (("lab a", "unit b"), "a test without a cluster failed: unit b"),
        (("lab a", "lab b", "lab c", "lab d"), "4 tests failed; at most 3 are tried again"),
        (("lab broken-one",), "failed twice: broken-one"),
        (("lab flaky-one",), "flaky twice: flaky-one"),
    ],
)
def test_retry_failed_is_red(checkout: Path, failed: tuple[str, ...], reason: str) -> None:
    (checkout / "broken").write_text("broken-one\n")
    (checkout / "build" / "flaky-tests.txt").write_text("flaky-one\n")
    done = retry(checkout, *failed)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"retry-failed: {reason}\n"
