"""Runs the audit with `spark-submit` as a user does."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyspark

import mm2slo_audit
from audit_scenario.audit_process import FAST_SPARK
from mm2slo_audit.spark.spark_properties import SparkOptions, connector_properties

_TIMEOUT: Final = 300.0


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Exit code and output of a command."""

    exit_code: int
    output: str
    """Standard output and standard error."""
    report: dict[str, Any]
    """The JSON report; empty if the command wrote none."""


def run_spark_submit(config: str, *options: str) -> CommandResult:
    """Run the audit with `spark-submit`, which gets master, jars and memory."""
    conf = {**connector_properties(SparkOptions()), **FAST_SPARK, "spark.driver.memory": "1g"}
    program = [
        str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
        *("--master", "local[2]"),
        *(part for each in conf.items() for part in ("--conf", "=".join(each))),
        str(Path(mm2slo_audit.__file__).with_name("__main__.py")),
    ]
    return _run(program, config, *options)


def _run(program: list[str], config: str, *options: str) -> CommandResult:
    with tempfile.TemporaryDirectory(prefix="mm2slo-command-") as name:
        folder = Path(name)
        (folder / "mm2slo.yaml").write_text(config, encoding="utf-8")
        report, records = folder / "report.json", folder / "records"
        run = subprocess.run(
            [
                *program,
                *("--config", str(folder / "mm2slo.yaml"), "--report", str(report)),
                *(
                    "--store",
                    f"sqlite:///{folder}/store.db",
                    "--directory",
                    str(records),
                ),
                *options,
            ],
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
        found = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
        return CommandResult(run.returncode, run.stdout + run.stderr, found)
