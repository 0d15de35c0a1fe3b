"""How a demo ends: every record of its traffic is audited, and the verdict printed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.console import Console

from mm2slo_core.user_errors import UserError
from mm2slo_kafka.kafka_errors import KafkaOperationError

if TYPE_CHECKING:
    from mm2slo_audit.run import RunReport
    from mm2slo_cli.demo.stage import Stage


def census(stage: Stage) -> None:
    """End the traffic, audit all of it, print table and verdict line.

    It is an encore: what keeps it from being given (no Maven repository, no audit extra) is said
    in one line and fails no demo.
    """
    try:
        stage.traffic.rest()
        report = _audit(stage)
    except (UserError, KafkaOperationError) as problem:
        sys.stderr.write(f"no audit of the demo's traffic: {problem}\n")
        return
    except ModuleNotFoundError as missing:
        sys.stderr.write(
            f"no audit of the demo's traffic: it needs {missing.name};"
            " run: pip install 'mm2slo[audit]'\n"
        )
        return
    _print(report)


def _audit(stage: Stage) -> RunReport:
    # Heavy, and needed at the end of a demo only.
    from mm2slo_audit.run import AuditOptions, Span, audit
    from mm2slo_audit.session import SparkOptions
    from mm2slo_cli.audit_run import Places, opened

    folder = stage.lab.runtime.root / "audit"
    folder.mkdir(exist_ok=True)
    places = Places(str(folder / "mm2slo.db"), str(folder / "records"))
    options = AuditOptions(span=Span(start=stage.began_at))
    with opened(stage.config, options, places, SparkOptions()) as ports:
        return audit(stage.config, options, ports)


def _print(report: RunReport) -> None:
    from mm2slo_audit.report import terminal_report

    terminal_report.write(Console(), report)
