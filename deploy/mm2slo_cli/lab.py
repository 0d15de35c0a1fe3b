"""`mm2slo lab`: Kafka clusters and MirrorMaker 2 on this machine, to try, show and break."""

import json
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from mm2slo_cli.lab_faults import fault_app
from mm2slo_cli.lab_terminal import counting, on_cluster, pairs, serving, steps
from mm2slo_core.errors import UserError
from mm2slo_core.topology import Flow
from mm2slo_kafka.traffic import Load, produce
from mm2slo_lab import persisted
from mm2slo_lab.lab import Lab
from mm2slo_lab.ports import HOST
from mm2slo_lab.process import ManagedProcess
from mm2slo_lab.topology import Engine, LabTopology, Security
from mm2slo_lab.versions import DEFAULT_VERSION

lab_app = typer.Typer(
    name="lab",
    help="Kafka clusters and MirrorMaker 2 on this machine, for trying and testing.",
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
        list[str] | None, typer.Option(help="A cluster's alias; repeatable. [default: us, eu]")
    ] = None,
    flow: Annotated[
        list[str] | None,
        typer.Option(help="A flow, as in 'us->eu'; repeatable. [default: both ways]"),
    ] = None,
    kafka_version: Annotated[
        str, typer.Option(help="A release line or an exact version.")
    ] = DEFAULT_VERSION,
    engine: Annotated[
        Engine, typer.Option(help="What runs the mirror connectors.")
    ] = Engine.DEDICATED,
    security: Annotated[
        Security, typer.Option(help="How clients connect; with SASL, ACLs hold, too.")
    ] = Security.PLAINTEXT,
    mm2_property: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE for MirrorMaker 2's file; repeatable.")
    ] = None,
    broker_property: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE for every broker; repeatable.")
    ] = None,
) -> None:
    """Start a lab; it runs until `mm2slo lab down`."""
    default = LabTopology()
    aliases = tuple(cluster) if cluster else default.clusters
    topology = LabTopology(
        clusters=aliases,
        flows=_flows(flow, aliases),
        kafka_version=kafka_version,
        engine=engine,
        security=security,
        mm2_properties=pairs(mm2_property),
        broker_properties=pairs(broker_property),
    )
    console = Console()
    with steps(console, "starting the lab") as tell:
        lab = persisted.up(topology, tell)
    _print_lab(console, lab)


@lab_app.command()
def down() -> None:
    """End every process of the lab and delete its data."""
    ran = persisted.down()
    Console().print(f"ended {', '.join(ran)}" if ran else "nothing ran; the data is deleted")


@lab_app.command()
def status(*, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show the processes of the lab."""
    lab = persisted.current()
    if as_json:
        typer.echo(json.dumps(_summary(lab), indent=2))
    else:
        _print_lab(Console(), lab)


@lab_app.command("produce")
def produce_records(
    *,
    cluster: Annotated[str, typer.Option(help="The cluster's alias.")],
    topic: Annotated[str, typer.Option(help="The topic; created when it does not exist.")],
    count: Annotated[int, typer.Option(min=1, help="How many records.")] = 1000,
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of a new topic.")] = 1,
    value_size: Annotated[int, typer.Option(min=1, help="Bytes of each value.")] = 100,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="Records per second; else all at once.")
    ] = None,
) -> None:
    """Produce records to a topic of the lab."""
    broker = serving(persisted.current(), cluster)
    console = Console()
    load = Load(count, value_size=value_size, rate=rate)
    with on_cluster(cluster, f"producing to {topic}"):
        if not broker.admin.partition_count(topic):
            broker.admin.create_topic(topic, partitions)
        with counting(console, f"producing to {topic}", count) as progress:
            delivered = produce(broker.librdkafka(), topic, load, progress)
    ends = ", ".join(f"{part}: {end}" for part, end in sorted(delivered.next_offsets.items()))
    console.print(f"{delivered.count} records are in {topic} on {cluster}; next offsets {ends}")


def _flows(labels: list[str] | None, aliases: tuple[str, ...]) -> tuple[Flow, ...]:
    """The flows asked for; without any, those between the first two clusters."""
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
        "config": str(persisted.config_file(lab)),
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
    # Paths stay on one line, to be copied.
    console.print(f"Configuration: {persisted.config_file(lab)}", soft_wrap=True, highlight=False)
    console.print(f"Logs: {lab.runtime.root / 'logs'}", soft_wrap=True, highlight=False)


def _state(process: ManagedProcess) -> str:
    if not process.running:
        return "stopped"
    return "paused" if process.paused else "running"


def _address(lab: Lab, name: str) -> str | None:
    """Where clients reach a process; None for one that nobody connects to."""
    if name in lab.topology.clusters:
        return lab.cluster(name).bootstrap_servers
    if name.startswith("connect-"):
        return f"http://{HOST}:{lab.connect(name.removeprefix('connect-')).rest_port}"
    return None
