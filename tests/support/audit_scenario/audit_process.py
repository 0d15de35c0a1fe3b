"""Audits of a lab in a child process, because a process can run only one Spark."""

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from mm2slo_core.audit.audit_conclusion import Conclusion
from mm2slo_core.audit.audit_scope import NotAudited, Window
from mm2slo_core.audit.unit_outcome import UnitOutcome

_TIMEOUT: Final = 30.0
FAST_SPARK: Final = {
    # Short audits spend most time compiling; the second compiler does not pay off.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
    "spark.sql.shuffle.partitions": "2",
}


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """Scope of an audit."""

    config: str
    """Text of mm2slo.yaml."""
    window: Window
    flows: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    sample: float = 1.0
    max_pending: int | None = None
    """In ms; None: as configured."""
    evidence_cap: int = 100_000


@dataclass(frozen=True, slots=True)
class AuditResult:
    """Result of an audit."""

    outcomes: dict[str, UnitOutcome]
    """By target topic."""
    not_audited: tuple[NotAudited, ...]
    conclusion: Conclusion
    seconds: dict[str, float]
    """Duration by stage."""
    notes: tuple[str, ...] = ()
    """Where running connectors differ from the configuration."""
    unstamped: dict[str, UnitOutcome] = field(default_factory=dict)
    """Topics with append times on the target, judged again without these."""


class AuditProcess:
    """A child process that audits, one request at a time."""

    def __init__(self, process: subprocess.Popen[str], folder: Path, log: Path) -> None:
        self._process = process
        self._folder = folder
        self._log = log

    def audit(self, request: AuditRequest) -> AuditResult:
        """Run an audit. Raises RuntimeError with the end of the process's log."""
        request_file, result_file = self._folder / "request", self._folder / "answer"
        request_file.write_bytes(pickle.dumps(request))
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        print(request_file, result_file, sep="\t", file=stdin, flush=True)
        # The JVM also writes warnings to standard output.
        if "done\n" not in stdout:
            raise RuntimeError(f"the audit failed:\n{self._log.read_text()[-6_000:]}")
        found: Any = pickle.loads(result_file.read_bytes())  # noqa: S301 - written by our own child
        return cast("AuditResult", found)


@contextmanager
def audit_process(
    master: str = "local[2]", conf: Mapping[str, str] = FAST_SPARK
) -> Iterator[AuditProcess]:
    """Start a process with Spark in the background; it takes requests until the block ends."""
    with tempfile.TemporaryDirectory(prefix="mm2slo-audit-process-") as name:
        folder = Path(name)
        log, options = folder / "log", folder / "options"
        options.write_bytes(pickle.dumps((master, dict(conf))))
        with log.open("w") as written:
            process = subprocess.Popen(
                [sys.executable, "-m", "audit_scenario.audit_worker", str(options)],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(_python_path())},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=written,
                text=True,
            )
        with process:
            try:
                yield AuditProcess(process, folder, log)
                _wait_exit(process)
            finally:
                process.kill()


def audit(request: AuditRequest, master: str = "local[2]") -> AuditResult:
    """Run one audit in a new process."""
    with audit_process(master) as one:
        return one.audit(request)


def _python_path() -> list[str]:
    """The tests' support, then the parent's path."""
    given = os.environ.get("PYTHONPATH")
    return [str(Path(__file__).parents[1]), *([given] if given else [])]


def _wait_exit(process: subprocess.Popen[str]) -> None:
    """Close its input, which ends the process and Spark's JVM."""
    assert process.stdin is not None
    process.stdin.close()
    process.wait(_TIMEOUT)
