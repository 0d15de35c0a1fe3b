"""Audits all records of the demo and prints the result."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.console import Console

from mm2slo_core.user_errors import UserError
from mm2slo_kafka.kafka_errors import KafkaOperationError

if TYPE_CHECKING:
    from mm2slo_audit.run import RunReport
    from mm2slo_cli.demo.demo_environment import DemoEnvironment


def audit_traffic(environment: DemoEnvironment) -> None:
    """Stop the traffic, audit all of it, and print the report.

    A failure (no Maven repository, extra `audit` not installed) is one line on stderr and does not
    fail the demo.
    """
    try:
        environment.traffic.finish()
        report = _audit(environment)
    except (UserError, KafkaOperationError) as problem:
        sys.stderr.write(f"the demo's traffic was not audited: {problem}\n")
        return
    except ModuleNotFoundError as missing:
        sys.stderr.write(
            f"the demo's traffic was not audited: {missing.name} is not installed;"
            " run in a checkout of mm2slo: pip install '.[audit]'\n"
        )
        return
    _print(report)


def _audit(environment: DemoEnvironment) -> RunReport:
    # Imported late: heavy, and needed only at the end.
    from mm2slo_audit.run import AuditOptions, Span, audit
    from mm2slo_audit.session import SparkOptions
    from mm2slo_cli.audit_run import ResultLocations, open_ports

    folder = environment.lab.runtime.root / "audit"
    folder.mkdir(exist_ok=True)
    locations = ResultLocations(str(folder / "mm2slo.db"), str(folder / "records"))
    options = AuditOptions(span=Span(start=environment.started_at))
    with open_ports(environment.config, options, locations, SparkOptions()) as ports:
        return audit(environment.config, options, ports)


def _print(report: RunReport) -> None:
    from mm2slo_audit.report import terminal_report

    terminal_report.print_report(Console(), report)
