"""`mm2slo audit`: compares source and target records of a flow."""

import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from mm2slo_audit.preparation import prepare as prepare_spark
from mm2slo_audit.preparation.preparation_summary import write_summary
from mm2slo_audit.probe import probe as probe_records
from mm2slo_audit.probe import write_probe_report
from mm2slo_audit.probe.record_probe import RECORDS
from mm2slo_audit.report.report_file import check_report_path
from mm2slo_audit.run import AuditOptions, Span
from mm2slo_audit.session import SparkOptions
from mm2slo_cli.audit_run import Output, ResultLocations, run_audit
from mm2slo_cli.config_files import read_config
from mm2slo_cli.config_options import ConfigSource, config_options
from mm2slo_cli.lab_terminal import parse_key_values, show_steps
from mm2slo_core.audit.conclusion import DuplicateLimit
from mm2slo_core.audit.record_sample import Sample
from mm2slo_core.config import Config
from mm2slo_core.config.durations import parse_duration
from mm2slo_core.user_errors import UserError

_JARS: Final = typer.Option(
    metavar="FOLDER",
    envvar="MM2SLO_JARS",
    help="Folder with the jars of the Kafka connector, for use without a Maven repository.",
)


class FailOn(StrEnum):
    """Value of `--fail-on`."""

    DUPLICATES = "duplicates"


audit_app = typer.Typer(
    name="audit",
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    add_completion=False,
)


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
        span=Span.parse(since, start, end),
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
    raise typer.Exit(run_audit(loaded, options, locations, spark, Output(target, pause)))


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
    ] = RECORDS,
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
