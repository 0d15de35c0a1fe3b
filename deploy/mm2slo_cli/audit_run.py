"""Runs an audit with Kafka, Spark, the results store and the terminal."""

from __future__ import annotations

import logging
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NoReturn

from rich.console import Console

from mm2slo_audit.report import terminal_report
from mm2slo_audit.report.report_file import write_report
from mm2slo_audit.run import Ports, audit
from mm2slo_audit.run.follow_loop import follow
from mm2slo_audit.run.kafka_scope_reader import KafkaScopeReader
from mm2slo_audit.run.run_progress import show_progress
from mm2slo_audit.run.spark_engine import SparkEngineSource
from mm2slo_cli.log_file import log_to_file
from mm2slo_cli.signals import Interrupted, interrupt_on_signals
from mm2slo_store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mm2slo_audit.run import AuditOptions, RunReport
    from mm2slo_audit.session import SparkOptions
    from mm2slo_core.config import Config

logger = logging.getLogger("mm2slo.audit")
_NOTHING: Final = 2


@dataclass(frozen=True, slots=True)
class ResultLocations:
    """Where results are stored."""

    store: str = field(repr=False)
    """URL or path; may contain a password."""
    directory: str


class Output:
    """Report file and, with --follow, the pause between runs in seconds."""

    def __init__(self, target: Path | None, pause: float | None) -> None:
        self.target = target
        self.pause = pause
        self.exit_code = 0

    def publish(self, report: RunReport) -> None:
        """Show the report, and write it to the report file if there is one.

        Without a terminal, --follow logs one line per report.
        """
        # With --follow, a window without records is normal.
        self.exit_code = max(
            self.exit_code, 0 if report.exit_code == _NOTHING else report.exit_code
        )
        console = Console()
        if self.pause is not None and not console.is_terminal:
            level = logging.WARNING if report.exit_code == 1 else logging.INFO
            fields = {"run_id": report.run_id}
            logger.log(level, "verdict: %s", report.conclusion.line, extra=fields)
        else:
            terminal_report.print_report(console, report)
        if self.target is not None:
            write_report(self.target, report)


def run_audit(
    config: Config,
    options: AuditOptions,
    locations: ResultLocations,
    spark: SparkOptions,
    output: Output,
) -> int:
    """Run one audit, or audits until a signal; returns the exit code."""
    with interrupt_on_signals() as interrupts:
        try:
            long_lived = output.pause is not None
            with open_ports(config, options, locations, spark, long_lived=long_lived) as ports:
                if output.pause is None:
                    report = audit(config, options, ports)
                else:
                    _follow(config, options, ports, output)
                # Cleanup must not be interrupted.
                interrupts.disable()
            output.publish(report)
        except Interrupted as signal:
            if output.pause is not None:
                return output.exit_code
            sys.stderr.write(f"{signal}: an interrupted run stores no results\n")
            return signal.exit_code
    return report.exit_code


def _follow(config: Config, options: AuditOptions, ports: Ports, output: Output) -> NoReturn:
    assert output.pause is not None  # noqa: S101 - for the type checker
    follow(config, options, ports, every=output.pause, on_report=output.publish, wait=time.sleep)
    raise AssertionError("only a signal ends --follow")


@contextmanager
def open_ports(
    config: Config,
    options: AuditOptions,
    locations: ResultLocations,
    spark: SparkOptions,
    *,
    long_lived: bool = False,
) -> Iterator[Ports]:
    """Open the ports of a run; *long_lived* if several runs use them."""
    with (
        # A service logs to standard output; one run has its report there.
        show_progress(Console(stderr=not long_lived)) as progress,
        Store.open(locations.store) as store,
        SparkEngineSource(config, spark, locations.directory, long_lived=long_lived) as engine,
    ):
        if long_lived:
            log_to_file("repl-analytics")
        yield Ports(
            scope_reader=KafkaScopeReader(config, options.max_pending),
            engine=engine,
            store=store,
            clock=lambda: time.time_ns() // 1_000_000,
            progress=progress,
        )
