"""`mm2slo lab`: Kafka clusters and MirrorMaker 2 on this machine."""

import json
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from mm2slo_cli.lab_faults import fault_app
from mm2slo_cli.lab_terminal import (
    count_progress,
    kafka_errors_as_user_errors,
    parse_key_values,
    running_broker,
    show_steps,
)
from mm2slo_core.audit.confidence_bounds import plural
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.traffic import Load, produce
from mm2slo_lab import persistent_lab
from mm2slo_lab.kafka_versions import DEFAULT_VERSION
from mm2slo_lab.lab import Lab
from mm2slo_lab.lab_topology import Engine, LabTopology, Security
from mm2slo_lab.managed_process import ManagedProcess
from mm2slo_lab.ports import HOST

lab_app = typer.Typer(
    name="lab",
    help="Run Kafka clusters and MirrorMaker 2 on this machine, for experiments and tests.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
lab_app.add_typer(fault_app)
_MIB = 2**20


@lab_app.command()
def up(
    *,
    cluster: Annotated[
        list[str] | None, typer.Option(help="Cluster alias; repeatable. [default: us, eu]")
    ] = None,
    flow: Annotated[
        list[str] | None,
        typer.Option(help="Flow, for example 'us->eu'; repeatable. [default: both directions]"),
    ] = None,
    kafka_version: Annotated[
        str, typer.Option(help="Kafka release line (4.4.x) or exact version.")
    ] = DEFAULT_VERSION,
    engine: Annotated[
        Engine, typer.Option(help="Process that runs the mirror connectors.")
    ] = Engine.DEDICATED,
    security: Annotated[
        Security, typer.Option(help="Protocol of the listeners; with SASL, ACLs are enforced.")
    ] = Security.PLAINTEXT,
    mm2_property: Annotated[
        list[str] | None, typer.Option(help="MirrorMaker 2 property, KEY=VALUE; repeatable.")
    ] = None,
    broker_property: Annotated[
        list[str] | None, typer.Option(help="Broker property, KEY=VALUE; repeatable.")
    ] = None,
) -> None:
    """Start a lab. It runs until `mm2slo lab down`."""
    default = LabTopology()
    aliases = tuple(cluster) if cluster else default.clusters
    topology = LabTopology(
        clusters=aliases,
        flows=_flows(flow, aliases),
        kafka_version=kafka_version,
        engine=engine,
        security=security,
        mm2_properties=parse_key_values(mm2_property),
        broker_properties=parse_key_values(broker_property),
    )
    console = Console()
    with show_steps(console, "starting the lab") as report_step:
        lab = persistent_lab.up(topology, report_step)
    _print_lab(console, lab)


@lab_app.command()
def down() -> None:
    """Stop the lab and delete its data."""
    ran = persistent_lab.down()
    Console().print(f"stopped {', '.join(ran)}" if ran else "no process was running; data deleted")


@lab_app.command()
def status(*, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show the processes of the lab."""
    lab = persistent_lab.attach()
    if as_json:
        typer.echo(json.dumps(_summary(lab), indent=2))
    else:
        _print_lab(Console(), lab)


@lab_app.command("produce")
def produce_records(
    *,
    cluster: Annotated[str, typer.Option(help="Cluster alias.")],
    topic: Annotated[str, typer.Option(help="Topic; created if it does not exist.")],
    count: Annotated[int, typer.Option(min=1, help="Number of records.")] = 1000,
    partitions: Annotated[int, typer.Option(min=1, help="Partition count of a new topic.")] = 1,
    value_size: Annotated[int, typer.Option(min=1, help="Size of each value in bytes.")] = 100,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="Records per second. [default: unlimited]")
    ] = None,
) -> None:
    """Produce records to a topic of the lab."""
    broker = running_broker(persistent_lab.attach(), cluster)
    console = Console()
    load = Load(count, value_size=value_size, rate=rate)
    with kafka_errors_as_user_errors(cluster, f"producing to {topic}"):
        if not broker.admin.partition_count(topic):
            broker.admin.create_topic(topic, partitions)
        with count_progress(console, f"producing to {topic}", count) as progress:
            delivered = produce(broker.librdkafka(), topic, load, progress)
    ends = ", ".join(f"{part}: {end}" for part, end in sorted(delivered.next_offsets.items()))
    sent = plural(delivered.count, "record")
    console.print(f"produced {sent} to {topic} on {cluster}; end offsets {ends}")


def _flows(labels: list[str] | None, aliases: tuple[str, ...]) -> tuple[Flow, ...]:
    """Parse the flows; the default is both directions between the first two clusters."""
    if labels:
        try:
            return tuple(Flow.parse(label) for label in labels)
        except ValueError as error:
            raise UserError(str(error)) from None
    if len(aliases) == 1:
        return ()
    flow = Flow(aliases[0], aliases[1])
    return (flow, flow.reverse)


def _summary(lab: Lab) -> dict[str, object]:
    return {
        "kafka_version": lab.topology.kafka_version,
        "flows": [flow.label for flow in lab.topology.flows],
        "config": str(persistent_lab.config_file(lab)),
        "processes": {
            name: {
                "state": _state(process),
                "pid": None if process.handle is None else process.handle.pid,
                "address": _address(lab, name),
                "rss_bytes": process.rss,
                "log": str(process.spec.log_file),
            }
            for name, process in lab.processes.items()
        },
    }


def _print_lab(console: Console, lab: Lab) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Process")
    table.add_column("State")
    table.add_column("PID", justify="right")
    table.add_column("Address")
    table.add_column("Memory", justify="right")
    for name, process in lab.processes.items():
        rss, handle = process.rss, process.handle
        table.add_row(
            name,
            _state(process),
            "-" if handle is None else str(handle.pid),
            _address(lab, name) or "-",
            "-" if rss is None else f"{rss / _MIB:.0f} MiB",
        )
    console.print(table)
    flows = ", ".join(flow.label for flow in lab.topology.flows) or "none"
    console.print(f"Flows: {flows}", highlight=False)
    # Paths stay on one line, so that they can be copied.
    console.print(
        f"Configuration: {persistent_lab.config_file(lab)}", soft_wrap=True, highlight=False
    )
    console.print(f"Logs: {lab.runtime.root / 'logs'}", soft_wrap=True, highlight=False)


def _state(process: ManagedProcess) -> str:
    if not process.running:
        return "stopped"
    return "paused" if process.paused else "running"


def _address(lab: Lab, name: str) -> str | None:
    """Address of a process; None for one without clients."""
    if name in lab.topology.clusters:
        return lab.cluster(name).bootstrap_servers
    if name.startswith("connect-"):
        return f"http://{HOST}:{lab.connect(name.removeprefix('connect-')).rest_port}"
    return None
