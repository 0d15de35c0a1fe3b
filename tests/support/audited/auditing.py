"""Audits of a lab in a process of their own: Spark wants to be the only one of a process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mm2slo_core.audit.audit_scope import NotAudited, Window
    from mm2slo_core.audit.conclusion import Conclusion
    from mm2slo_core.audit.unit_outcome import UnitOutcome

_TIMEOUT: Final = 30.0
QUICK: Final = {
    # Most of a short audit is compiling: the second compiler never pays for itself.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
    "spark.sql.shuffle.partitions": "2",
}


@dataclass(frozen=True, slots=True)
class Request:
    """What to audit."""

    config: str
    """mm2slo.yaml."""
    window: Window
    flows: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    sample: float = 1.0
    max_pending: int | None = None
    """ms; None: as configured."""
    evidence_cap: int = 100_000


@dataclass(frozen=True, slots=True)
class Audited:
    """What came of it."""

    outcomes: dict[str, UnitOutcome]
    """By target topic."""
    not_audited: tuple[NotAudited, ...]
    conclusion: Conclusion
    seconds: dict[str, float]
    """By stage."""
    unstamped: dict[str, UnitOutcome] = field(default_factory=dict)
    """Topics whose target stamps records, judged again as if the stamps said nothing."""


class Auditor:
    """Takes one request after the other."""

    def __init__(self, process: subprocess.Popen[str], folder: Path, log: Path) -> None:
        self._process = process
        self._folder = folder
        self._log = log

    def audit(self, request: Request) -> Audited:
        """Run the audit that *request* asks for. Raises RuntimeError with its last words."""
        asked, answered = self._folder / "request", self._folder / "answer"
        asked.write_bytes(pickle.dumps(request))
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        print(asked, answered, sep="\t", file=stdin, flush=True)
        # A JVM writes its warnings on standard output.
        if "done\n" not in stdout:
            raise RuntimeError(f"the audit failed:\n{self._log.read_text()[-6_000:]}")
        found: Any = pickle.loads(answered.read_bytes())  # noqa: S301 - written by our own child
        return cast("Audited", found)


@contextmanager
def auditor(
    master: str = "local[2]", conf: Mapping[str, str] = QUICK, jars: str | None = None
) -> Iterator[Auditor]:
    """Audits by a Spark of their own, which starts at once and in the background."""
    with tempfile.TemporaryDirectory(prefix="mm2slo-auditor-") as name:
        folder = Path(name)
        log, options = folder / "log", folder / "options"
        options.write_bytes(pickle.dumps((master, dict(conf), jars)))
        with log.open("w") as written:
            process = subprocess.Popen(
                [sys.executable, "-m", "audited.child", str(options)],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(_paths())},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=written,
                text=True,
            )
        with process:
            try:
                yield Auditor(process, folder, log)
                _end(process)
            finally:
                process.kill()


def audit(request: Request, master: str = "local[2]") -> Audited:
    """One audit, by a Spark of its own."""
    with auditor(master) as one:
        return one.audit(request)


def _paths() -> list[str]:
    """Where the child finds the tests' support, before what its parent was given."""
    given = os.environ.get("PYTHONPATH")
    return [str(Path(__file__).parents[1]), *([given] if given else [])]


def _end(process: subprocess.Popen[str]) -> None:
    """It ends with its input; Spark's JVM with it."""
    assert process.stdin is not None
    process.stdin.close()
    process.wait(_TIMEOUT)
