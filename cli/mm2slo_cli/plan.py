"""`mm2slo plan`: sizes a flow from stated rates."""

import json
from dataclasses import MISSING, asdict, fields
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from mm2slo_cli.main import new_app
from mm2slo_core.mm2_config.capacity_plan import CapacityPlan, Workload, plan_capacity
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError

plan_app = new_app()
_INPUTS = {each.name: each for each in fields(Workload)}


def _option(name: str) -> Any:
    each = _INPUTS[name]
    assumed = "" if each.default in (MISSING, None) else f" (assumed: {each.default:.15g})"
    return typer.Option("--" + name.replace("_", "-"), help=each.metadata["meaning"] + assumed)


@plan_app.command(no_args_is_help=True)
def run(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    *,
    records_per_second: Annotated[float, _option("records_per_second")],
    record_size: Annotated[float | None, _option("record_size")] = None,
    bytes_per_second: Annotated[float | None, _option("bytes_per_second")] = None,
    partitions: Annotated[int, _option("partitions")],
    round_trip: Annotated[float, _option("round_trip")],
    outage: Annotated[float, _option("outage")],
    retention: Annotated[float | None, _option("retention")] = None,
    compression: Annotated[float | None, _option("compression")] = None,
    headroom: Annotated[float | None, _option("headroom")] = None,
    workers_at_source: Annotated[bool | None, _option("workers_at_source")] = None,
    task_bytes_per_second: Annotated[float | None, _option("task_bytes_per_second")] = None,
    tasks_per_worker: Annotated[int | None, _option("tasks_per_worker")] = None,
    flow: Annotated[str, typer.Option(help="the flow, for the names of the properties")] = "us->eu",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Size a flow from stated rates: tasks, workers, clients, bandwidth, catch-up, retention.

    Example: mm2slo plan --records-per-second 20000 --record-size 1000
    --partitions 60 --round-trip 80 --outage 60 --retention 24
    """
    stated = {k: v for k, v in context.params.items() if k in _INPUTS and v is not None}
    work = Workload(**stated)
    try:
        aliases = Flow.parse(flow)
    except ValueError as error:
        raise UserError(f"--flow {error}") from None
    plan = plan_capacity(work, aliases)
    assumed = {k: v for k, v in asdict(work).items() if k not in stated and v is not None}
    console = Console(highlight=False, markup=False)
    if as_json:
        content = {"inputs": stated, "assumptions": assumed, **asdict(plan)}
        console.print(json.dumps(content, indent=2), soft_wrap=True)
    else:
        _print(console, plan, assumed)


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
