"""`mm2slo perf`: measures what the replication can do, and whether a setting changes it.

On a lab of its own by default, where settings of MirrorMaker 2 and the way between the clusters
can be changed; on clusters of yours as they are, with topics of its own, after the flow's name was
typed.
"""

import logging
import os
import platform
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from mm2slo_audit.audit_options import AuditOptions, TimeSpan
from mm2slo_audit.report.report_file import check_report_path, write_formatted
from mm2slo_audit.spark.spark_properties import SparkOptions
from mm2slo_cli.audit import AuditOutput, ResultLocations, run_audit
from mm2slo_cli.config_files import read_config
from mm2slo_cli.config_options import ConfigSource, config_options
from mm2slo_cli.cutover import option_duration
from mm2slo_cli.main import new_app
from mm2slo_cli.option_values import (
    confirm_flow,
    parse_flow,
    parse_key_values,
)
from mm2slo_cli.perf_bench import UNLIMITED, PerfBench
from mm2slo_cli.terminal_progress import show_steps
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.perf.perf_report import (
    PerfCellResult,
    PerfReport,
    compare,
    good_runs,
    perf_html,
    perf_markdown,
    ratio_text,
    read_measurement,
)
from mm2slo_core.perf.perf_schedule import (
    KEPT_BYTES,
    RECORD_OVERHEAD,
    TOPIC,
    PerfCell,
    PerfLoad,
    PerfMode,
    blocks,
    expected_seconds,
    factor_cell,
)
from mm2slo_core.quantity_text import duration_label
from mm2slo_core.topic_selection import replicated_topics
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.kafka_errors import KafkaOperationError
from mm2slo_kafka.perf_generator import generator_rate

perf_app = new_app(no_args_is_help=True)

_LAB: Final = "a lab on this machine"
_LAB_FLOW: Final = Flow("us", "eu")
_INTERNAL_REST: Final = {
    # Without it dedicated mode has no exactly-once support (KIP-710).
    "dedicated.mode.enable.internal.rest": "true",
    "listeners": "http://127.0.0.1:0",
}
_SPARE: Final = 0.8
_FORMATS: Final[dict[str, Callable[[PerfReport], str]]] = {
    ".html": perf_html,
    ".md": perf_markdown,
    ".json": PerfReport.as_json,
}

_Mode = Annotated[PerfMode, typer.Option(help="latency at a rate, highest rate, or catch-up.")]
_Rate = Annotated[
    float | None,
    typer.Option(
        min=0.1, help="Records/s; of sustained and drain the most to try. [default: 1000; no limit]"
    ),
]
_Size = Annotated[int, typer.Option(min=1, max=1_000_000, help="Bytes of a record.")]
_Partitions = Annotated[int, typer.Option(min=1, max=1000, help="Of the topic.")]
_Length = Annotated[str, typer.Option(metavar="DURATION", help="Of one measurement.")]
_RoundTrip = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=2000,
        help="ms between MirrorMaker 2 and the source: made on the lab, else stated for mm2slo "
        "plan. [default: 0 on the lab]",
    ),
]
_Tasks = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=1000,
        help="tasks.max: set on the lab, else stated for mm2slo plan. [default: 1 on the lab]",
    ),
]
_Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Lab: a property of MirrorMaker 2; repeatable"),
]
_Bound = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="sustained: p99 stays within it. [default: 1s]"),
]
_MaxBytes = Annotated[
    float | None,
    typer.Option(min=1e5, help="Written in one run at most. [default: 2e9, on the lab 2e10]"),
]
_Reports = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Report: .html, .md or .json; repeatable."),
]


@perf_app.callback()
def _group() -> None:
    """Measure what the replication can do."""


@perf_app.command("run")
@config_options()
def run(  # noqa: PLR0913 - one parameter per option
    source: ConfigSource,
    *,
    flow: Annotated[
        str | None, typer.Option(metavar="FLOW", help="For example 'us->eu'. [default: the lab's]")
    ] = None,
    mode: _Mode = PerfMode.LATENCY,
    rate: _Rate = None,
    record_size: _Size = 1000,
    partitions: _Partitions = 5,
    length: _Length = "10s",
    repeats: Annotated[int, typer.Option(min=1, max=100, help="Runs.")] = 1,
    tasks: _Tasks = None,
    round_trip: _RoundTrip = None,
    settings: _Settings = None,
    copy_partitions: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            help="Lab: make the copy before, with so many, on a target where MirrorMaker 2 may "
            "not alter topics.",
        ),
    ] = None,
    p99: _Bound = None,
    max_bytes: _MaxBytes = None,
    audit: Annotated[
        bool, typer.Option("--audit", help="Also compare all records by an audit (Spark).")
    ] = False,
    wait: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="Until MirrorMaker 2 copies a new topic. [default: 15m]"
        ),
    ] = None,
    confirm: Annotated[
        str | None,
        typer.Option(metavar="FLOW", help="Its name again, instead of typing it when asked."),
    ] = None,
    report: _Reports = None,
) -> None:
    """Measure latency, the highest rate, or catch-up.

    Without a configuration on a lab of its own. For example:
    mm2slo perf run --mode sustained --round-trip 80 --report rate.json
    """
    own = _lab_settings(settings)
    load = _load(
        mode,
        rate,
        record_size=record_size,
        partitions=partitions,
        length=length,
        p99=p99,
        max_bytes=max_bytes or (2e9 if source else 2e10),
    )
    load = replace(load, copy_partitions=copy_partitions)
    files = [check_report_path(each, _FORMATS) for each in report or ()]
    if source and (own or copy_partitions):
        raise UserError(
            "--set and --copy-partitions are for the lab: clusters of yours stay as they are"
        )
    if round_trip and copy_partitions:
        raise UserError("--copy-partitions needs a lab with logins, which has no --round-trip")
    if source and not flow:
        raise UserError("--flow is missing: expected the flow to measure, as in --flow 'us->eu'")
    if source and mode is PerfMode.DRAIN:
        raise UserError(
            "--mode drain writes a backlog as fast as it can: expected the lab, or another mode"
        )
    if source and rate is None:
        raise UserError("--rate is missing: on clusters of yours state the most records/s to send")
    if not source and (flow or wait or confirm):
        raise UserError("--flow, --wait and --confirm are for clusters of yours: expected --config")
    _check_generator(load)
    seconds = option_duration("--wait", wait or "15m")
    cell = PerfCell("measured", load, round_trip, tasks, own)
    if not source:
        _measure([_on_lab(cell)], repeats, files, audit=audit)
        return
    config, measured = read_config(source), parse_flow(flow or "")
    config.as_settings().select([measured.label])
    others = [
        each.flow.target
        for each in config.as_settings().flows
        if each.flow.source == measured.source and replicated_topics(each, [TOPIC])
    ]
    confirm_flow(
        f"This writes up to {load.max_bytes * repeats / 1e6:,.0f} MB to {TOPIC}.* on "
        f"{measured.source}, and as much is copied to {', '.join(others) or measured.target}",
        measured,
        confirm,
    )
    servers = (
        config.clusters[each].bootstrap_servers for each in (measured.source, measured.target)
    )
    found = _new_report(measured, " to ".join(servers), [cell])
    with show_steps(Console(stderr=True), "perf") as say:
        bench = PerfBench(config, measured, say, seconds)
        bench.notes += [
            f"{each} may have copies of the topics: delete {TOPIC}.* there"
            for each in others
            if each != measured.target
        ]
        if audit:
            bench.after = _auditor(bench)
        _run_all(found, bench, lambda _cell: None, repeats=repeats, files=files)


@perf_app.command("matrix", no_args_is_help=True)
def matrix(  # noqa: PLR0913 - one parameter per option
    *,
    factor: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=V1,V2",
            help="What to change, one at a time: tasks, partitions, record-size, rate, batch, "
            "linger, compression, max.poll.records, fetch.min.bytes, exactly-once, "
            "max.partition.fetch.bytes or round-trip. Repeatable.",
        ),
    ],
    mode: _Mode = PerfMode.LATENCY,
    rate: _Rate = None,
    record_size: _Size = 1000,
    partitions: _Partitions = 5,
    length: _Length = "10s",
    repeats: Annotated[int, typer.Option(min=2, max=100, help="Runs of each cell.")] = 5,
    tasks: _Tasks = None,
    round_trip: _RoundTrip = None,
    settings: _Settings = None,
    p99: _Bound = None,
    max_bytes: _MaxBytes = None,
    report: _Reports = None,
) -> None:
    """Change one factor at a time on a lab, and show what that changes.

    Each block runs all cells, forwards and backwards in turn, with a restart
    of MirrorMaker 2 before each. For example:
    mm2slo perf matrix --factor linger=0,100 --factor tasks=1,2,5
    """
    load = _load(
        mode,
        rate,
        record_size=record_size,
        partitions=partitions,
        length=length,
        p99=p99,
        max_bytes=max_bytes or 2e10,
    )
    base = _on_lab(PerfCell("base", load, round_trip, tasks, _lab_settings(settings)))
    cells = [base]
    for each in factor:
        name, _, values = each.partition("=")
        if not values:
            raise UserError(f"--factor {each!r}: expected NAME=VALUE,VALUE, as in linger=0,100")
        cells += [factor_cell(base, name, value, _LAB_FLOW.label) for value in values.split(",")]
    for cell in cells:
        _check_generator(cell.load)
    _measure(cells, repeats, [check_report_path(each, _FORMATS) for each in report or ()])


@perf_app.command("compare", no_args_is_help=True)
def compare_files(
    base: Annotated[Path, typer.Argument(metavar="A.json", help="What to compare with.")],
    other: Annotated[Path, typer.Argument(metavar="B.json")],
) -> None:
    """Compare the first cells of two measurements, run by run in their order.

    Runs that alternated show smaller differences: see `mm2slo perf matrix`.
    """
    first, second = (read_measurement(each).cells[0] for each in (base, other))
    one, two = first.cell.load, second.cell.load
    if one.mode is not two.mode:
        raise UserError(f"{base} measured {one.mode}, {other} {two.mode}: expected one mode")
    differing = [
        f"{each.name} {getattr(one, each.name):g} and {getattr(two, each.name):g}"
        for each in fields(PerfLoad)
        if each.name in {"record_size", "partitions", "rate", "seconds"}
        and getattr(one, each.name) != getattr(two, each.name)
    ]
    if differing:
        typer.echo(f"note: the loads differ: {', '.join(differing)}", err=True)
    for name, ratio in compare(first, second).items():
        typer.echo(f"{name}: {ratio_text(ratio)}")


def _lab_settings(given: list[str] | None) -> dict[str, str]:
    found = parse_key_values(given)
    if any(each.endswith("tasks.max") for each in found):
        raise UserError("--set tasks.max: expected --tasks, which reports and plans know")
    return found


def _on_lab(cell: PerfCell) -> PerfCell:
    return replace(cell, round_trip_ms=cell.round_trip_ms or 0.0, tasks=cell.tasks or 1)


def _load(
    mode: PerfMode,
    rate: float | None,
    *,
    record_size: int,
    partitions: int,
    length: str,
    p99: str | None,
    max_bytes: float,
) -> PerfLoad:
    seconds = option_duration("--length", length)
    if seconds < 1:
        raise UserError(f"--length {length!r} is too short: expected at least 1s")
    if p99 and mode is not PerfMode.SUSTAINED:
        raise UserError(f"--p99 bounds --mode {PerfMode.SUSTAINED}; this is --mode {mode}")
    return PerfLoad(
        mode=mode,
        rate=rate or (1000.0 if mode is PerfMode.LATENCY else UNLIMITED),
        record_size=record_size,
        partitions=partitions,
        seconds=seconds,
        p99=option_duration("--p99", p99 or "1s"),
        max_bytes=max_bytes,
    )


def _check_generator(load: PerfLoad) -> None:
    """Raises UserError for a rate that cannot be sent from here, before anything is sent."""
    if load.mode is not PerfMode.LATENCY:
        return
    size = load.record_size + RECORD_OVERHEAD
    needed = load.rate * size * (load.seconds + 3 * load.window)
    if needed > load.max_bytes:
        raise UserError(
            f"--rate {load.rate:g} for --length {load.seconds:g}s writes {needed / 1e6:,.0f} MB "
            f"with the warm-up, more than --max-bytes ({load.max_bytes / 1e6:,.0f} MB)"
        )
    most = generator_rate(load.record_size)
    if load.rate > _SPARE * most:
        raise UserError(
            f"--rate {load.rate:g} is too high: this machine generates about {most:,.0f} "
            f"records/s of {load.record_size} bytes; expected at most {_SPARE * most:,.0f}"
        )


def _machine() -> str:
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return (
        f"{os.cpu_count()} CPUs, {pages / 2**30:.0f} GiB, {platform.system()} "
        f"{platform.machine()}, Python {platform.python_version()}"
    )


def _new_report(flow: Flow, place: str, cells: Sequence[PerfCell]) -> PerfReport:
    return PerfReport(
        flow=flow.label,
        place=place,
        machine=_machine(),
        version=version("mm2slo"),
        started_at=time.time(),
        cells=[PerfCellResult(cell=each) for each in cells],
    )


def _measure(
    cells: Sequence[PerfCell], repeats: int, files: Sequence[Path], *, audit: bool = False
) -> None:
    """All cells on a lab of their own."""
    logging.basicConfig(level=logging.ERROR)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: it cleans up
    console = Console(stderr=True)
    length = duration_label(round(expected_seconds(cells, repeats)))
    console.print(f"{len(cells)} x {repeats} runs, about {length}", highlight=False)
    report = _new_report(_LAB_FLOW, _LAB, cells)
    if any(each.round_trip_ms for each in cells):
        report.notes.append(
            "The lab's round trip has no TCP window. A real connection carries at most "
            "receive.buffer.bytes (64 KiB by default) per round trip: raise it as well."
        )
    with show_steps(console, "perf") as say, _lab(cells, say) as (bench, prepare):
        if audit:
            bench.after = _auditor(bench)
        _run_all(report, bench, prepare, repeats=repeats, files=files)


@contextmanager
def _lab(
    cells: Sequence[PerfCell], say: Callable[[str], None]
) -> Iterator[tuple[PerfBench, Callable[[PerfCell], None]]]:
    from mm2slo_lab.lab_topology import APP, LabSecurity, LabTopology  # not needed elsewhere
    from mm2slo_lab.running_lab import Lab

    source, target = _LAB_FLOW.source, _LAB_FLOW.target
    is_fixed = any(each.load.copy_partitions for each in cells)
    security = LabSecurity.SASL_PLAINTEXT if is_fixed else LabSecurity.PLAINTEXT
    topology = LabTopology(
        flows=(_LAB_FLOW,), security=security, far=not is_fixed, mm2_heap=768, broker_heap=512
    )
    with Lab.start(topology, progress=say) as lab:
        needed, free = 3 * KEPT_BYTES, _free_bytes(lab.runtime.root)
        if free < needed:
            raise UserError(
                f"{lab.runtime.root} has {free / 1e9:,.1f} GB free; expected {needed / 1e9:,.1f} "
                "for both clusters: make room, or set TMPDIR"
            )
        fixed: dict[str, str] = {}
        if is_fixed:
            client = lab.cluster(target).java(APP)
            fixed = {f"{target}.{key}": value for key, value in client.items()}
            for kind, operation in _ALL_BUT_ALTER:
                name = "kafka-cluster" if kind == "BROKER" else "*"
                lab.cluster(target).admin.grant(APP.name, kind, name, operation)

        def prepare(cell: PerfCell) -> None:
            say(f"{cell.name}: restarting MirrorMaker 2")
            lab.mm2.stop()
            servers = lab.cluster(source).bootstrap_servers
            if not is_fixed:
                servers = lab.set_round_trip(source, cell.round_trip_ms or 0)
            given = {"tasks.max": str(cell.tasks), **_INTERNAL_REST, **fixed, **cell.properties}
            lab.mm2.configure({f"{source}.bootstrap.servers": servers, **given})
            lab.mm2.start()

        yield PerfBench(load_config(lab.config_yaml()), _LAB_FLOW, say, 120, is_lab=True), prepare


_ALL_BUT_ALTER: Final = (
    *(("TOPIC", each) for each in ("READ", "WRITE", "CREATE", "DESCRIBE", "DESCRIBE_CONFIGS")),
    *(("GROUP", each) for each in ("READ", "DESCRIBE")),
    *(("BROKER", each) for each in ("CREATE", "DESCRIBE")),
)
"""What MirrorMaker 2 may do on the target of `--copy-partitions`."""


def _free_bytes(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def _run_all(
    report: PerfReport,
    bench: PerfBench,
    prepare: Callable[[PerfCell], None],
    *,
    repeats: int,
    files: Sequence[Path],
) -> None:
    """Run all blocks; what was measured is reported, however it ends."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: it cleans up
    try:
        for number, block in enumerate(blocks(report.cells, repeats), 1):
            for result in block:
                bench.say(f"{result.cell.name}, run {number} of {repeats}")
                _run_one(bench, result, prepare)
                if bench.interrupted:
                    raise KeyboardInterrupt
            _write(report, files)
    except KeyboardInterrupt:
        report.notes.append("interrupted: has what was measured until then")
    except (KafkaOperationError, TimeoutError) as error:
        report.notes.append(f"ended early: {error}")
        raise UserError(str(error)) from None
    finally:
        report.notes += bench.notes
        if any(each.runs for each in report.cells):
            typer.echo(perf_markdown(report))
        else:
            typer.echo("\n".join(bench.notes), nl=bool(bench.notes))
        _write(report, files)
    if not all(good_runs(each.runs) for each in report.cells):
        raise typer.Exit(1)


def _run_one(bench: PerfBench, result: PerfCellResult, prepare: Callable[[PerfCell], None]) -> None:
    """On the lab a rejected run is tried once more; one that has to show problems is not."""
    prepare(result.cell)
    found = bench.run(result.cell)
    result.runs.append(found)
    may_retry = bench.is_lab and not bench.interrupted and not result.cell.load.copy_partitions
    if found.problems and may_retry:
        prepare(result.cell)
        again = bench.run(result.cell)
        if not again.problems:
            result.retried += 1
            result.runs[-1] = again


def _write(report: PerfReport, files: Sequence[Path]) -> None:
    for file in files:
        write_formatted(file, report, _FORMATS)


def _auditor(bench: PerfBench) -> Callable[[str], None]:
    """Compares the records of a run by the audit, which prints what it found."""

    def audit(topic: str) -> None:
        with tempfile.TemporaryDirectory(prefix="mm2slo-perf-") as folder:
            options = AuditOptions(
                flows=(bench.flow.label,), topics=(topic,), span=TimeSpan.parse("1h", None, None)
            )
            locations = ResultLocations(f"sqlite:///{folder}/audit.db", folder)
            spark = SparkOptions.from_config(bench.config.audit.spark)
            if code := run_audit(bench.config, options, locations, spark, AuditOutput(None, None)):
                bench.notes.append(f"the audit of {topic} is not clean: exit code {code}")

    return audit
