"""`mm2slo audit`: compares source and target records of a flow.

An audit runs with Kafka, Spark, the results store and the terminal.
"""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer
from rich.console import Console

from mm2slo_audit.audit_options import AuditOptions, TimeSpan
from mm2slo_audit.audit_ports import AuditPorts, RunReport
from mm2slo_audit.audit_run import audit, follow
from mm2slo_audit.record_probe import DEFAULT_RECORDS, write_probe_report
from mm2slo_audit.record_probe import probe as probe_records
from mm2slo_audit.report import terminal_report
from mm2slo_audit.report.report_file import check_report_path, write_report
from mm2slo_audit.run_progress import show_progress
from mm2slo_audit.scope.scope_reader import KafkaScopeReader
from mm2slo_audit.spark.spark_engine import SparkEngineSource
from mm2slo_audit.spark.spark_preparation import prepare as prepare_spark
from mm2slo_audit.spark.spark_preparation import write_summary
from mm2slo_audit.spark.spark_properties import SparkOptions
from mm2slo_cli.config_files import read_config
from mm2slo_cli.config_options import ConfigSource, config_options
from mm2slo_cli.main import new_app
from mm2slo_cli.option_values import now_ms, parse_key_values
from mm2slo_cli.service_process import Interrupted, interrupt_on_signals, log_to_file
from mm2slo_cli.terminal_progress import show_steps
from mm2slo_core.audit.audit_conclusion import DuplicateLimit
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.config.config_model import Config
from mm2slo_core.quantity_text import parse_duration
from mm2slo_core.user_errors import UserError
from mm2slo_store.store import Store

_JARS: Final = typer.Option(
    metavar="FOLDER",
    envvar="MM2SLO_JARS",
    help="Folder with the jars of the Kafka connector, for use without a Maven repository.",
)


class FailOn(StrEnum):
    """Value of `--fail-on`."""

    DUPLICATES = "duplicates"


audit_app = new_app(name="audit")


@audit_app.callback(invoke_without_command=True)
@config_options()
def run(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    *,
    source: ConfigSource,
    flow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FLOW", help="Audit only this flow, for example 'us->eu'; repeatable."
        ),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC", help="Audit only this topic (source or target name); repeatable."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Start of the window as an age, for example 1h."),
    ] = None,
    start: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Start of the window (ISO 8601).")
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME", help="End of the window (ISO 8601). [default: now]"),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="Share of records to audit; 100% is a census."),
    ] = None,
    salt: Annotated[
        int, typer.Option(help="Salt of the sample; change it to draw another sample.")
    ] = 0,
    max_pending: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Age at which a record without a copy is overdue."),
    ] = None,
    fail_on: Annotated[
        list[FailOn] | None,
        typer.Option(help="Also exit with 1 above audit.max_duplicate_ratio."),
    ] = None,
    wait: Annotated[
        bool | None,
        typer.Option(
            "--wait/--no-wait",
            help="Wait until the lease of a run that was killed expires."
            " [default: --wait without a terminal]",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Report file: .html, .md or .json."),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            "--follow",
            metavar="TIME",
            help="Repeat at this interval, for example 10m, until Ctrl-C.",
        ),
    ] = None,
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="Results store; overrides audit.store.")
    ] = None,
    directory: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Folder for record details; overrides audit.directory."),
    ] = None,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Spark master. [default: local[*]]")
    ] = None,
    jars: Annotated[str | None, _JARS] = None,
    spark_conf: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Spark property; repeatable."),
    ] = None,
) -> None:
    """Compare source and target records: loss, duplicates, order, key affinity and latency.

    Without --since or --from, an audit continues where the previous one was
    complete; the first one covers the last hour.

    Exit codes: 0 clean, 1 faults found, 2 nothing could be audited.
    """
    if context.invoked_subcommand is not None:
        return
    loaded = read_config(source)
    options = AuditOptions(
        flows=tuple(flow or ()),
        topics=tuple(topic or ()),
        span=TimeSpan.parse(since, start, end),
        sample=_sample(sample, loaded, salt),
        max_pending=None if max_pending is None else _seconds("--max-pending", max_pending),
        duplicates=DuplicateLimit(
            loaded.audit.max_duplicate_ratio, fails=FailOn.DUPLICATES in (fail_on or ())
        ),
        wait=not sys.stderr.isatty() if wait is None else wait,
    )
    loaded.select(options.flows)  # report an unknown flow before anything starts
    pause = None if every is None else _seconds("--follow", every)
    if pause is not None and (start is not None or end is not None):
        raise UserError("--follow continues where each run ended: leave out --from and --to")
    target = None if report is None else check_report_path(report)
    spark = SparkOptions.from_config(loaded.audit.spark)
    spark = replace(
        spark,
        master=master or spark.master,
        jars=jars or spark.jars,
        conf={**spark.conf, **parse_key_values(spark_conf)},
    )
    locations = ResultLocations(
        store or loaded.audit.store.reveal(), directory or loaded.audit.directory
    )
    raise typer.Exit(run_audit(loaded, options, locations, spark, AuditOutput(target, pause)))


@audit_app.command()
@config_options()
def probe(
    source: ConfigSource,
    flow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FLOW", help="Probe only this flow, for example 'us->eu'; repeatable."
        ),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC", help="Probe only this topic (source or target name); repeatable."
        ),
    ] = None,
    records: Annotated[
        int, typer.Option(min=1, help="Number of records to compare per topic.")
    ] = DEFAULT_RECORDS,
) -> None:
    """Compare sample records and suggest what to ignore when a transform changes records.

    Exit codes: 0 compared, 2 no record could be compared.
    """
    console = Console()
    with show_steps(Console(stderr=True), "probing") as report_step:
        probes, not_compared = probe_records(
            read_config(source), flow or [], topic or [], records=records, on_topic=report_step
        )
    write_probe_report(console, probes, not_compared)
    raise typer.Exit(0 if any(each.found.compared for each in probes) else 2)


@audit_app.command()
def prepare(
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Path of mm2slo.yaml, for audit.spark."),
    ] = None,
    jars: Annotated[str | None, _JARS] = None,
) -> None:
    """Test Spark and Java, download the connector, and speed up the start of later audits.

    Audits generated records with known faults, then writes a class data archive
    of Spark to the user's cache folder, for later audits on this machine. Run it
    again after an upgrade of Java or mm2slo.
    """
    spark = (
        SparkOptions()
        if config is None
        else SparkOptions.from_config(read_config(ConfigSource(config)).audit.spark)
    )
    with show_steps(Console(stderr=True), "preparing") as report_step:
        done = prepare_spark(replace(spark, jars=jars or spark.jars), report_step)
    write_summary(Console(), done)


def _sample(text: str | None, config: Config, salt: int) -> Sample:
    try:
        found = Sample(config.audit.sample) if text is None else Sample.parse(text)
        return replace(found, salt=salt)
    except ValueError as error:
        raise UserError(f"--sample: {error}") from None


def _seconds(option: str, text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise UserError(f"{option} {text!r} is not a positive duration: use for example 10m or 30s")
    return seconds


logger = logging.getLogger("mm2slo.audit")
_NOTHING: Final = 2


@dataclass(frozen=True, slots=True)
class ResultLocations:
    """Where results are stored."""

    store: str = field(repr=False)
    """URL or path; may contain a password."""
    directory: str


class AuditOutput:
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
            fields = {"run_id": report.header.id}
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
    output: AuditOutput,
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
                interrupts.enabled = False
            output.publish(report)
        except Interrupted as signal:
            if output.pause is not None:
                return output.exit_code
            sys.stderr.write(f"{signal}: an interrupted run stores no results\n")
            return signal.exit_code
    return report.exit_code


def _follow(
    config: Config, options: AuditOptions, ports: AuditPorts, output: AuditOutput
) -> NoReturn:
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
) -> Iterator[AuditPorts]:
    """Open the ports of a run; *long_lived* if several runs use them."""
    with (
        # A service logs to standard output; one run has its report there.
        show_progress(Console(stderr=not long_lived)) as progress,
        Store.open(locations.store) as store,
        SparkEngineSource(config, spark, locations.directory, long_lived=long_lived) as engine,
    ):
        if long_lived:
            log_to_file("repl-analytics")
        yield AuditPorts(
            scope_reader=KafkaScopeReader(config, options.max_pending),
            engine=engine,
            store=store,
            clock=now_ms,
            progress=progress,
        )
