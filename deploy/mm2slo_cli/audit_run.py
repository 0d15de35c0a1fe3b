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
from mm2slo_audit.run.run_progress import shown
from mm2slo_audit.run.spark_engine import SparkEngineSource
from mm2slo_cli.ending import Told, told_by_signals
from mm2slo_store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mm2slo_audit.run import AuditOptions, RunReport
    from mm2slo_audit.session import SparkOptions
    from mm2slo_core.config import Config

_NOTHING: Final = 2


@dataclass(frozen=True, slots=True)
class Places:
    """Where results are kept."""

    store: str = field(repr=False)
    """URL or path; may hold a password."""
    directory: str


class Output:
    """Where reports go, and after how many seconds the next run starts."""

    def __init__(self, target: Path | None, pause: float | None) -> None:
        self.target = target
        self.pause = pause
        self.worst = 0

    def tell(self, report: RunReport) -> None:
        """Print it, and write it where it was asked for."""
        # Following, a window without any record is no news.
        self.worst = max(self.worst, 0 if report.exit_code == _NOTHING else report.exit_code)
        terminal_report.write(Console(), report)
        if self.target is not None:
            write_report(self.target, report)


def execute(
    config: Config, options: AuditOptions, places: Places, spark: SparkOptions, output: Output
) -> int:
    """Everything from the first question to the last line; the exit code."""
    with told_by_signals() as ending:
        try:
            lasting = output.pause is not None
            with opened(config, options, places, spark, lasting=lasting) as ports:
                if output.pause is None:
                    report = audit(config, options, ports)
                else:
                    _follow(config, options, ports, output)
                # From here on everything is being ended anyway.
                ending.quietly()
            output.tell(report)
        except Told as told:
            if output.pause is not None:
                return output.worst
            sys.stderr.write(f"{told}: a run that does not come to its end stores no result\n")
            return told.exit_code
    return report.exit_code


def _follow(config: Config, options: AuditOptions, ports: Ports, output: Output) -> NoReturn:
    assert output.pause is not None  # noqa: S101 - for the type checker
    follow(config, options, ports, every=output.pause, told=output.tell, wait=time.sleep)
    raise AssertionError("following ends by a signal alone")


@contextmanager
def opened(
    config: Config,
    options: AuditOptions,
    places: Places,
    spark: SparkOptions,
    *,
    lasting: bool = False,
) -> Iterator[Ports]:
    """Kafka, Spark, the store and the terminal behind a run's ports; *lasting*: of many runs."""
    with (
        shown() as progress,
        Store.open(places.store) as store,
        SparkEngineSource(config, spark, places.directory, lasting=lasting) as engine,
    ):
        yield Ports(
            scope_reader=KafkaScopeReader(config, options.max_pending),
            engine=engine,
            store=store,
            clock=lambda: time.time_ns() // 1_000_000,
            progress=progress,
        )
