"""`mm2slo lab`: Kafka clusters and MirrorMaker 2 on this machine, and faults in them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from mm2slo_cli.main import new_app
from mm2slo_cli.option_values import parse_flow, parse_key_values
from mm2slo_cli.terminal_progress import (
    count_progress,
    kafka_errors_as_user_errors,
    show_steps,
)
from mm2slo_core.audit.confidence_bounds import plural
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_lab import lab_faults, running_lab
from mm2slo_lab.broker import Broker
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.lab_topology import DEFAULT_VERSION, LabEngine, LabSecurity, LabTopology
from mm2slo_lab.managed_process import HOST, ManagedProcess
from mm2slo_lab.running_lab import Lab

lab_app = new_app(
    name="lab",
    help="Run Kafka clusters and MirrorMaker 2 on this machine, for experiments and tests.",
    no_args_is_help=True,
)
fault_app = typer.Typer(name="fault", help="Inject or clear a fault.", no_args_is_help=True)
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
        LabEngine, typer.Option(help="Process that runs the mirror connectors.")
    ] = LabEngine.DEDICATED,
    security: Annotated[
        LabSecurity, typer.Option(help="Protocol of the listeners; with SASL, ACLs are enforced.")
    ] = LabSecurity.PLAINTEXT,
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
        lab = running_lab.start_persistent_lab(topology, report_step)
    _print_lab(console, lab)


@lab_app.command()
def down() -> None:
    """Stop the lab and delete its data."""
    ran = running_lab.stop_persistent_lab()
    Console().print(f"stopped {', '.join(ran)}" if ran else "no process was running; data deleted")


@lab_app.command()
def status(*, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show the processes of the lab."""
    lab = running_lab.attach_persistent_lab()
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
    console = Console()
    load = Load(count, value_size=value_size, rate=rate)
    with _running_broker(cluster, f"producing to {topic}") as broker:
        if not broker.admin.partition_count(topic):
            broker.admin.create_topic(topic, partitions)
        with count_progress(console, f"producing to {topic}", count) as progress:
            delivered = produce(broker.librdkafka(), topic, load, progress)
    ends = ", ".join(f"{part}: {end}" for part, end in sorted(delivered.next_offsets.items()))
    sent = plural(delivered.count, "record")
    console.print(f"produced {sent} to {topic} on {cluster}; end offsets {ends}")


@contextmanager
def _running_broker(alias: str, operation: str) -> Iterator[Broker]:
    """A cluster of the lab, for *operation*.

    Raises UserError when it is not running, where Kafka would time out, and for its errors.
    """
    broker = running_lab.attach_persistent_lab().cluster(alias)
    if not broker.running or broker.process.paused:
        raise UserError(
            f"{alias} is not running: start it with `mm2slo lab fault start-cluster {alias}`"
        )
    with kafka_errors_as_user_errors(alias, operation):
        yield broker


def _flows(labels: list[str] | None, aliases: tuple[str, ...]) -> tuple[Flow, ...]:
    """Parse the flows; the default is both directions between the first two clusters."""
    if labels:
        return tuple(map(parse_flow, labels))
    if len(aliases) == 1:
        return ()
    flow = Flow(aliases[0], aliases[1])
    return (flow, flow.reverse)


def _summary(lab: Lab) -> dict[str, object]:
    return {
        "kafka_version": lab.topology.kafka_version,
        "flows": [flow.label for flow in lab.topology.flows],
        "config": str(running_lab.lab_config_file(lab)),
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
        f"Configuration: {running_lab.lab_config_file(lab)}", soft_wrap=True, highlight=False
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


_Cluster = Annotated[str, typer.Option(help="Cluster alias.")]
_Topic = Annotated[str, typer.Option(help="Topic name on the source.")]
_FlowLabel = Annotated[str, typer.Option(help="Flow, for example 'us->eu'.")]
_Partition = Annotated[int, typer.Option(min=0, help="Partition.")]
_Alias = Annotated[str, typer.Argument(metavar="CLUSTER", help="Cluster alias.")]


@fault_app.command("stop-mm2")
def stop_mm2() -> None:
    """Stop MirrorMaker 2 cleanly."""
    with running_lab.open_lab_for_update() as lab, show_steps(Console(), "stopping MirrorMaker 2"):
        lab.mm2.stop()
    _print("stopped MirrorMaker 2; start it with `mm2slo lab fault start-mm2`")


@fault_app.command("kill-mm2")
def kill_mm2() -> None:
    """Kill MirrorMaker 2 (SIGKILL); it will replicate some records twice."""
    with running_lab.open_lab_for_update() as lab:
        lab.mm2.kill()
    _print("killed MirrorMaker 2; start it with `mm2slo lab fault start-mm2`")


@fault_app.command("pause-mm2")
def pause_mm2() -> None:
    """Pause MirrorMaker 2 (SIGSTOP)."""
    with running_lab.open_lab_for_update() as lab:
        lab.mm2.pause()
    _print("paused MirrorMaker 2; resume it with `mm2slo lab fault resume-mm2`")


@fault_app.command("resume-mm2")
def resume_mm2() -> None:
    """Resume MirrorMaker 2."""
    with running_lab.open_lab_for_update() as lab:
        lab.mm2.resume()
    _print("resumed MirrorMaker 2")


@fault_app.command("start-mm2")
def start_mm2() -> None:
    """Start MirrorMaker 2 and wait until every flow replicates."""
    with running_lab.open_lab_for_update() as lab, show_steps(Console(), "starting MirrorMaker 2"):
        seconds = lab.mm2.start()
    _print(f"started MirrorMaker 2; all flows replicate after {seconds or 0.0:.1f} s")


@fault_app.command("stop-cluster")
def stop_cluster(cluster: _Alias) -> None:
    """Stop a cluster; it keeps its ports and data."""
    with running_lab.open_lab_for_update() as lab, show_steps(Console(), f"stopping {cluster}"):
        lab.cluster(cluster).stop()
    _print(f"stopped {cluster}; start it with `mm2slo lab fault start-cluster {cluster}`")


@fault_app.command("start-cluster")
def start_cluster(cluster: _Alias) -> None:
    """Start a stopped cluster with the same ports and data."""
    with running_lab.open_lab_for_update() as lab, show_steps(Console(), f"starting {cluster}"):
        lab.cluster(cluster).start()
    _print(f"started {cluster}")


@fault_app.command("delete-records")
def delete_records(
    cluster: _Cluster,
    topic: _Topic,
    before: Annotated[int, typer.Option(min=0, help="First offset to keep.")],
    partition: _Partition = 0,
) -> None:
    """Delete the records before an offset, as retention would."""
    with _running_broker(cluster, f"deleting records of {topic}") as broker:
        starts = broker.admin.delete_records(topic, {partition: before})
    _print(f"{topic}-{partition} on {cluster} now starts at offset {starts[partition]}")


@fault_app.command("shrink-retention")
def shrink_retention(
    cluster: _Cluster,
    topic: _Topic,
    retention_ms: Annotated[int, typer.Option(min=1, help="New retention.ms.")],
) -> None:
    """Shorten the retention of a topic; brokers check it every second, per segment."""
    configs = {"retention.ms": str(retention_ms), "segment.ms": str(retention_ms)}
    with _running_broker(cluster, f"configuring {topic}") as broker:
        broker.admin.set_topic_configs(topic, configs)
    _print(f"set the retention of {topic} on {cluster} to {retention_ms} ms")


@fault_app.command("add-partitions")
def add_partitions(
    cluster: _Cluster,
    topic: _Topic,
    total: Annotated[int, typer.Option("--to", min=2, help="New partition count.")],
) -> None:
    """Add partitions to a topic."""
    with _running_broker(cluster, f"adding partitions to {topic}") as broker:
        broker.admin.add_partitions(topic, total)
    _print(f"{topic} on {cluster} now has {total} partitions")


@fault_app.command("recreate-topic")
def recreate_topic(cluster: _Cluster, topic: _Topic) -> None:
    """Delete and re-create a topic; it is empty and has a new topic id."""
    with (
        _running_broker(cluster, f"re-creating {topic}") as broker,
        show_steps(Console(), f"re-creating {topic}"),
    ):
        broker.admin.recreate_topic(topic)
    _print(f"re-created {topic} on {cluster}")


@fault_app.command("foreign-record")
def foreign_record(
    flow: _FlowLabel,
    topic: _Topic,
    count: Annotated[int, typer.Option(min=1, help="How many records.")] = 1,
    partition: _Partition = 0,
) -> None:
    """Produce to a target topic, as only MirrorMaker 2 should."""
    found = parse_flow(flow)
    with kafka_errors_as_user_errors(found.target, "producing a foreign record"):
        delivered = lab_faults.foreign_records(
            running_lab.attach_persistent_lab(), found, topic, count, partition
        )
    _print(
        f"produced {delivered.count} foreign records to partition {partition};"
        f" end offset {delivered.next_offsets[partition]}"
    )


@fault_app.command("fail-task")
def fail_task(flow: _FlowLabel, topic: _Topic, partition: _Partition = 0) -> None:
    """Make the task of one partition fail."""
    found = parse_flow(flow)
    with (
        kafka_errors_as_user_errors(found.target, "failing a task"),
        show_steps(Console(), "waiting for a task to fail"),
    ):
        failed = lab_faults.fail_mirror_task(
            running_lab.attach_persistent_lab(), found, topic, partition
        )
    _print(f"failed: {', '.join(failed)}; repair it with `mm2slo lab fault repair-task`")


@fault_app.command("repair-task")
def repair_task(flow: _FlowLabel, topic: _Topic) -> None:
    """Undo fail-task and restart MirrorMaker 2."""
    found = parse_flow(flow)
    with (
        running_lab.open_lab_for_update() as lab,
        kafka_errors_as_user_errors(found.target, "repairing a task"),
        show_steps(Console(), "restarting MirrorMaker 2"),
    ):
        lab_faults.repair_mirror_task(lab, found, topic)
    _print(f"all tasks of {found} are running")


def _print(line: str) -> None:
    Console().print(line, highlight=False)
