"""`mm2slo lab fault`: injects and clears faults in the lab."""

from typing import Annotated

import typer
from rich.console import Console

from mm2slo_cli.lab_terminal import kafka_errors_as_user_errors, running_broker, show_steps
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_lab import faults, persistent_lab

fault_app = typer.Typer(name="fault", help="Inject or clear a fault.", no_args_is_help=True)

_Cluster = Annotated[str, typer.Option(help="Cluster alias.")]
_Topic = Annotated[str, typer.Option(help="Topic name on the source.")]
_FlowLabel = Annotated[str, typer.Option(help="Flow, for example 'us->eu'.")]
_Partition = Annotated[int, typer.Option(min=0, help="Partition.")]
_Alias = Annotated[str, typer.Argument(metavar="CLUSTER", help="Cluster alias.")]


@fault_app.command("stop-mm2")
def stop_mm2() -> None:
    """Stop MirrorMaker 2 cleanly."""
    with persistent_lab.open_for_update() as lab, show_steps(Console(), "stopping MirrorMaker 2"):
        lab.mm2.stop()
    _print("stopped MirrorMaker 2; start it with `mm2slo lab fault start-mm2`")


@fault_app.command("kill-mm2")
def kill_mm2() -> None:
    """Kill MirrorMaker 2 (SIGKILL); it will replicate some records twice."""
    with persistent_lab.open_for_update() as lab:
        lab.mm2.kill()
    _print("killed MirrorMaker 2; start it with `mm2slo lab fault start-mm2`")


@fault_app.command("pause-mm2")
def pause_mm2() -> None:
    """Pause MirrorMaker 2 (SIGSTOP)."""
    with persistent_lab.open_for_update() as lab:
        lab.mm2.pause()
    _print("paused MirrorMaker 2; resume it with `mm2slo lab fault resume-mm2`")


@fault_app.command("resume-mm2")
def resume_mm2() -> None:
    """Resume MirrorMaker 2."""
    with persistent_lab.open_for_update() as lab:
        lab.mm2.resume()
    _print("resumed MirrorMaker 2")


@fault_app.command("start-mm2")
def start_mm2() -> None:
    """Start MirrorMaker 2 and wait until every flow replicates."""
    with persistent_lab.open_for_update() as lab, show_steps(Console(), "starting MirrorMaker 2"):
        seconds = lab.mm2.start()
    _print(f"started MirrorMaker 2; all flows replicate after {seconds or 0.0:.1f} s")


@fault_app.command("stop-cluster")
def stop_cluster(cluster: _Alias) -> None:
    """Stop a cluster; it keeps its ports and data."""
    with persistent_lab.open_for_update() as lab, show_steps(Console(), f"stopping {cluster}"):
        lab.cluster(cluster).stop()
    _print(f"stopped {cluster}; start it with `mm2slo lab fault start-cluster {cluster}`")


@fault_app.command("start-cluster")
def start_cluster(cluster: _Alias) -> None:
    """Start a stopped cluster with the same ports and data."""
    with persistent_lab.open_for_update() as lab, show_steps(Console(), f"starting {cluster}"):
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
    broker = running_broker(persistent_lab.attach(), cluster)
    with kafka_errors_as_user_errors(cluster, f"deleting records of {topic}"):
        starts = broker.admin.delete_records(topic, {partition: before})
    _print(f"{topic}-{partition} on {cluster} now starts at offset {starts[partition]}")


@fault_app.command("shrink-retention")
def shrink_retention(
    cluster: _Cluster,
    topic: _Topic,
    retention_ms: Annotated[int, typer.Option(min=1, help="New retention.ms.")],
) -> None:
    """Shorten the retention of a topic; brokers check it every second, per segment."""
    broker = running_broker(persistent_lab.attach(), cluster)
    configs = {"retention.ms": str(retention_ms), "segment.ms": str(retention_ms)}
    with kafka_errors_as_user_errors(cluster, f"configuring {topic}"):
        broker.admin.set_topic_configs(topic, configs)
    _print(f"set the retention of {topic} on {cluster} to {retention_ms} ms")


@fault_app.command("add-partitions")
def add_partitions(
    cluster: _Cluster,
    topic: _Topic,
    total: Annotated[int, typer.Option("--to", min=2, help="New partition count.")],
) -> None:
    """Add partitions to a topic."""
    broker = running_broker(persistent_lab.attach(), cluster)
    with kafka_errors_as_user_errors(cluster, f"adding partitions to {topic}"):
        broker.admin.add_partitions(topic, total)
    _print(f"{topic} on {cluster} now has {total} partitions")


@fault_app.command("recreate-topic")
def recreate_topic(cluster: _Cluster, topic: _Topic) -> None:
    """Delete and re-create a topic; it is empty and has a new topic id."""
    broker = running_broker(persistent_lab.attach(), cluster)
    with (
        kafka_errors_as_user_errors(cluster, f"re-creating {topic}"),
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
    found = _parse_flow(flow)
    with kafka_errors_as_user_errors(found.target, "producing a foreign record"):
        delivered = faults.foreign_records(persistent_lab.attach(), found, topic, count, partition)
    _print(
        f"produced {delivered.count} foreign records to partition {partition};"
        f" end offset {delivered.next_offsets[partition]}"
    )


@fault_app.command("fail-task")
def fail_task(flow: _FlowLabel, topic: _Topic, partition: _Partition = 0) -> None:
    """Make the task of one partition fail."""
    found = _parse_flow(flow)
    with (
        kafka_errors_as_user_errors(found.target, "failing a task"),
        show_steps(Console(), "waiting for a task to fail"),
    ):
        failed = faults.fail_task(persistent_lab.attach(), found, topic, partition)
    _print(f"failed: {', '.join(failed)}; repair it with `mm2slo lab fault repair-task`")


@fault_app.command("repair-task")
def repair_task(flow: _FlowLabel, topic: _Topic) -> None:
    """Undo fail-task and restart MirrorMaker 2."""
    found = _parse_flow(flow)
    with (
        persistent_lab.open_for_update() as lab,
        kafka_errors_as_user_errors(found.target, "repairing a task"),
        show_steps(Console(), "restarting MirrorMaker 2"),
    ):
        faults.repair_task(lab, found, topic)
    _print(f"all tasks of {found} are running")


def _parse_flow(label: str) -> Flow:
    try:
        return Flow.parse(label)
    except ValueError as error:
        raise UserError(str(error)) from None


def _print(line: str) -> None:
    Console().print(line, highlight=False)
