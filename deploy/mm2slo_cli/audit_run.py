"""Composes a run of the audit: Kafka, Spark, the store and the terminal."""

from __future__ import annotations

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
from mm2slo_cli.signals import Interrupted, interrupt_on_signals
from mm2slo_store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mm2slo_audit.run import AuditOptions, RunReport
    from mm2slo_audit.session import SparkOptions
    from mm2slo_core.config import Config

_NOTHING: Final = 2


@dataclass(frozen=True, slots=True)
class ResultLocations:
    """Where results are kept."""

    store: str = field(repr=False)
    """URL or path; may hold a password."""
    directory: str


class Output:
    """Where reports go, and after how many seconds the next run starts."""

    def __init__(self, target: Path | None, pause: float | None) -> None:
        self.target = target
        self.pause = pause
        self.exit_code = 0

    def publish(self, report: RunReport) -> None:
        """Print it, and write it where it was asked for."""
        # Following, a window without any record is no news.
        self.exit_code = max(
            self.exit_code, 0 if report.exit_code == _NOTHING else report.exit_code
        )
        terminal_report.print_report(Console(), report)
        if self.target is not None:
            write_report(self.target, report)


def run_audit(
    config: Config,
    options: AuditOptions,
    locations: ResultLocations,
    spark: SparkOptions,
    output: Output,
) -> int:
    """Everything from the first question to the last line; the exit code."""
    with interrupt_on_signals() as interrupts:
        try:
            long_lived = output.pause is not None
            with open_ports(config, options, locations, spark, long_lived=long_lived) as ports:
                if output.pause is None:
                    report = audit(config, options, ports)
                else:
                    _follow(config, options, ports, output)
                # From here on everything is being ended anyway.
                interrupts.disable()
            output.publish(report)
        except Interrupted as told:
            if output.pause is not None:
                return output.exit_code
            sys.stderr.write(f"{told}: a run that does not come to its end stores no result\n")
            return told.exit_code
    return report.exit_code


def _follow(config: Config, options: AuditOptions, ports: Ports, output: Output) -> NoReturn:
    assert output.pause is not None  # noqa: S101 - for the type checker
    follow(config, options, ports, every=output.pause, on_report=output.publish, wait=time.sleep)
    raise AssertionError("following ends by a signal alone")


@contextmanager
def open_ports(
    config: Config,
    options: AuditOptions,
    locations: ResultLocations,
    spark: SparkOptions,
    *,
    long_lived: bool = False,
) -> Iterator[Ports]:
    """Kafka, Spark, the store and the terminal behind a run's ports; *long_lived*: of many runs."""
    with (
        show_progress() as progress,
        Store.open(locations.store) as store,
        SparkEngineSource(config, spark, locations.directory, long_lived=long_lived) as engine,
    ):
        yield Ports(
            scope_reader=KafkaScopeReader(config, options.max_pending),
            engine=engine,
            store=store,
            clock=lambda: time.time_ns() // 1_000_000,
            progress=progress,
        )
