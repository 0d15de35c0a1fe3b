"""`mm2slo audit` as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from audited.auditing import QUICK

_TIMEOUT: Final = 300.0


@dataclass(frozen=True, slots=True)
class Finished:
    """What the command left behind."""

    exit_code: int
    said: str
    """On standard output."""
    report: dict[str, Any]
    """The JSON report; empty when there is none."""


def command(config: str, *options: str) -> Finished:
    """Run `mm2slo audit` with a configuration's text and *options*, a store of its own beside."""
    with tempfile.TemporaryDirectory(prefix="mm2slo-command-") as name:
        folder = Path(name)
        (folder / "mm2slo.yaml").write_text(config, encoding="utf-8")
        report, records = folder / "report.json", folder / "records"
        spark = [part for each in QUICK.items() for part in ("--spark-conf", "=".join(each))]
        run = subprocess.run(
            [
                *(sys.executable, "-m", "mm2slo_cli", "audit"),
                *("--config", str(folder / "mm2slo.yaml"), "--report", str(report)),
                *(
                    "--store",
                    f"sqlite:///{folder}/store.db",
                    "--directory",
                    str(records),
                ),
                *("--master", "local[2]", *spark, *options),
            ],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
        found = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
        return Finished(run.returncode, run.stdout + run.stderr, found)
