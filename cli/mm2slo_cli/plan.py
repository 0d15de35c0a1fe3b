"""`mm2slo plan`: sizes a flow from stated rates, or gives advice on a running one."""

import json
from dataclasses import MISSING, asdict, fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from mm2slo_cli.config_options import ConfigSource, config_options
from mm2slo_cli.main import new_app
from mm2slo_core.mm2_config.capacity_plan import (
    CapacityPlan,
    Workload,
    check_inputs,
    plan_capacity,
    round_trips,
)
from mm2slo_core.perf.perf_model import predict_task_rate
from mm2slo_core.perf.perf_report import read_measurement
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError

plan_app = new_app()
_INPUTS = {each.name: each for each in fields(Workload)}
_NEEDED = [each.name for each in fields(Workload) if each.default is MISSING]
_LIVE = ("record_size", "round_trip", "compression", "workers_at_source")
"""The inputs that advice on a running flow takes."""


def _option(name: str) -> Any:
    each = _INPUTS[name]
    assumed = "" if each.default in (MISSING, None) else f" (assumed: {each.default:.15g})"
    return typer.Option("--" + name.replace("_", "-"), help=each.metadata["meaning"] + assumed)


@plan_app.command(no_args_is_help=True)
@config_options()
def run(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    source: ConfigSource,
    *,
    records_per_second: Annotated[float | None, _option("records_per_second")] = None,
    record_size: Annotated[float | None, _option("record_size")] = None,
    bytes_per_second: Annotated[float | None, _option("bytes_per_second")] = None,
    partitions: Annotated[int | None, _option("partitions")] = None,
    round_trip: Annotated[float | None, _option("round_trip")] = None,
    outage: Annotated[float | None, _option("outage")] = None,
    retention: Annotated[float | None, _option("retention")] = None,
    compression: Annotated[float | None, _option("compression")] = None,
    headroom: Annotated[float | None, _option("headroom")] = None,
    workers_at_source: Annotated[bool | None, _option("workers_at_source")] = None,
    task_bytes_per_second: Annotated[float | None, _option("task_bytes_per_second")] = None,
    tasks_per_worker: Annotated[int | None, _option("tasks_per_worker")] = None,
    flow: Annotated[
        str | None,
        typer.Option(
            metavar="FLOW",
            help="The flow, for the names of the properties; with --connect the one to observe. "
            "[default: us->eu]",
        ),
    ] = None,
    measured: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json", help="A rate measured by mm2slo perf, for the rate of one task."
        ),
    ] = None,
    connect: Annotated[
        bool, typer.Option("--connect", help="Observe the running flow, and print advice.")
    ] = False,
    observe: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="With --connect: for how long; Ctrl-C ends it. [default: 60s]"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Size a flow from stated rates: tasks, workers, clients, bandwidth, catch-up, retention.

    Example: mm2slo plan --records-per-second 20000 --record-size 1000
    --partitions 60 --round-trip 80 --outage 60 --retention 24

    Or print advice on a running flow; writes nothing to the clusters:
    mm2slo plan --config mm2slo.yaml --flow 'us->eu' --connect --round-trip 80
    """
    stated = {k: v for k, v in context.params.items() if k in _INPUTS and v is not None}
    console = Console(highlight=False, markup=False)
    if connect:
        extra = [name for name in stated if name not in _LIVE]
        if extra := [*extra, *(["measured"] if measured else [])]:
            raise UserError(f"{_names(extra)} cannot be combined with --connect: it is observed")
        if flow is None:
            raise UserError("expected --flow with --connect: name the flow to observe")
        check_inputs(stated)
        from mm2slo_cli.live_plan import print_live_advice  # loads the exporter

        print_live_advice(console, source, _parse(flow), stated, observe or "60s", as_json=as_json)
        return
    if observe is not None:
        raise UserError("--observe needs --connect: only a running flow can be observed")
    if missing := [name for name in _NEEDED if name not in stated]:
        raise UserError(
            f"expected {_names(missing)}: state them to size a flow, or add --connect for advice "
            "on a running one"
        )
    notes = _use_measured(stated, measured)
    work = Workload(**stated)
    aliases = _parse(flow or "us->eu")
    plan = plan_capacity(work, aliases)
    plan = replace(plan, notes=(*notes, *plan.notes))
    assumed = {k: v for k, v in asdict(work).items() if k not in stated and v is not None}
    if as_json:
        content = {"inputs": stated, "assumptions": assumed, **asdict(plan)}
        console.print(json.dumps(content, indent=2), soft_wrap=True)
    else:
        _print(console, plan, assumed)


def _use_measured(stated: dict[str, Any], measured: Path | None) -> tuple[str, ...]:
    """State the rate of one task as it was measured; returns how that was found."""
    if measured is None:
        return ()
    if "task_bytes_per_second" in stated:
        raise UserError("--measured and --task-bytes-per-second exclude each other")
    at_source = stated.get("workers_at_source", False)
    trip, _ = round_trips(stated["round_trip"], workers_at_source=at_source)
    compression = stated.get("compression", 1.0)
    report = read_measurement(measured)
    found = predict_task_rate(report, trip * 1000, str(measured), compression)
    stated["task_bytes_per_second"] = found.rate
    return (f"rate of one task: {found.rate / 1e6:.3g} MB/s, {found.how}",)


def _names(inputs: list[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in inputs)


def _parse(flow: str) -> Flow:
    try:
        return Flow.parse(flow)
    except ValueError as error:
        raise UserError(f"--flow {error}") from None


def _print(console: Console, plan: CapacityPlan, assumed: dict[str, Any]) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Figure", no_wrap=True)
    table.add_column("Value", no_wrap=True)
    table.add_column("Formula (source)", overflow="fold")
    for each in plan.figures:
        value = f"{each.bound} {_readable(each.value, each.unit)}".strip()
        table.add_row(each.name, value, f"{each.formula} ({each.source})")
    console.print(table)
    options = (f"--{name.replace('_', '-')} {value:.15g}" for name, value in assumed.items())
    console.print(f"Assumed unless stated: {', '.join(options)}.")
    for note in plan.notes:
        console.print(f"note: {note}")
    console.print("\n# Dedicated mode; everything else keeps Kafka's default.")
    for key, setting in plan.properties.items():
        console.print(f"{key}={setting}", soft_wrap=True)


def _readable(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if value >= 1000 or value == int(value) else f"{value:.3g} {unit}"
