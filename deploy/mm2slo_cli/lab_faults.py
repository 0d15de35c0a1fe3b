"""`mm2slo lab fault`: break something in the lab, and mend it."""

from typing import Annotated

import typer
from rich.console import Console

from mm2slo_cli.lab_terminal import on_cluster, serving, steps
from mm2slo_core.errors import UserError
from mm2slo_core.topology import Flow
from mm2slo_lab import faults, persisted

fault_app = typer.Typer(
    name="fault", help="Break something in the lab, and mend it.", no_args_is_help=True
)

_Cluster = Annotated[str, typer.Option(help="The cluster's alias.")]
_Topic = Annotated[str, typer.Option(help="The topic, by its name on the source.")]
_FlowLabel = Annotated[str, typer.Option(help="The flow, as in 'us->eu'.")]
_Partition = Annotated[int, typer.Option(min=0, help="The partition.")]
_Alias = Annotated[str, typer.Argument(metavar="CLUSTER", help="The cluster's alias.")]


@fault_app.command("stop-mm2")
def stop_mm2() -> None:
    """Shut MirrorMaker 2 down cleanly."""
    with persisted.changed() as lab, steps(Console(), "stopping MirrorMaker 2"):
        lab.mm2.stop()
    _say("MirrorMaker 2 is stopped; `fault start-mm2` starts it")


@fault_app.command("kill-mm2")
def kill_mm2() -> None:
    """End MirrorMaker 2 with SIGKILL: it will copy some records twice."""
    with persisted.changed() as lab:
        lab.mm2.kill()
    _say("MirrorMaker 2 is killed; `fault start-mm2` starts it")


@fault_app.command("pause-mm2")
def pause_mm2() -> None:
    """Freeze MirrorMaker 2."""
    with persisted.changed() as lab:
        lab.mm2.pause()
    _say("MirrorMaker 2 is frozen; `fault resume-mm2` lets it go on")


@fault_app.command("resume-mm2")
def resume_mm2() -> None:
    """Let a frozen MirrorMaker 2 go on."""
    with persisted.changed() as lab:
        lab.mm2.resume()
    _say("MirrorMaker 2 goes on")


@fault_app.command("start-mm2")
def start_mm2() -> None:
    """Start MirrorMaker 2 and wait until every flow copies."""
    with persisted.changed() as lab, steps(Console(), "starting MirrorMaker 2"):
        seconds = lab.mm2.start()
    _say(f"MirrorMaker 2 copies on every flow after {seconds or 0.0:.1f} s")


@fault_app.command("stop-cluster")
def stop_cluster(cluster: _Alias) -> None:
    """Shut a cluster down; its ports and data stay."""
    with persisted.changed() as lab, steps(Console(), f"stopping {cluster}"):
        lab.cluster(cluster).stop()
    _say(f"{cluster} is down; `fault start-cluster {cluster}` starts it")


@fault_app.command("start-cluster")
def start_cluster(cluster: _Alias) -> None:
    """Start a stopped cluster with the same ports and data."""
    with persisted.changed() as lab, steps(Console(), f"starting {cluster}"):
        lab.cluster(cluster).start()
    _say(f"{cluster} serves clients again")


@fault_app.command("delete-records")
def delete_records(
    cluster: _Cluster,
    topic: _Topic,
    before: Annotated[int, typer.Option(min=0, help="The first offset to keep.")],
    partition: _Partition = 0,
) -> None:
    """Delete the records below an offset, as retention would."""
    broker = serving(persisted.current(), cluster)
    with on_cluster(cluster, f"deleting records of {topic}"):
        starts = broker.admin.delete_records(topic, {partition: before})
    _say(f"{topic}-{partition} on {cluster} starts at offset {starts[partition]}")


@fault_app.command("shrink-retention")
def shrink_retention(
    cluster: _Cluster,
    topic: _Topic,
    retention_ms: Annotated[int, typer.Option(min=1, help="The new retention.ms.")],
) -> None:
    """Shorten a topic's retention; it is looked at every second, by whole segments."""
    broker = serving(persisted.current(), cluster)
    configs = {"retention.ms": str(retention_ms), "segment.ms": str(retention_ms)}
    with on_cluster(cluster, f"configuring {topic}"):
        broker.admin.set_topic_configs(topic, configs)
    _say(f"{topic} on {cluster} keeps {retention_ms} ms")


@fault_app.command("add-partitions")
def add_partitions(
    cluster: _Cluster,
    topic: _Topic,
    total: Annotated[int, typer.Option("--to", min=2, help="Partitions in all.")],
) -> None:
    """Let a topic grow."""
    broker = serving(persisted.current(), cluster)
    with on_cluster(cluster, f"adding partitions to {topic}"):
        broker.admin.add_partitions(topic, total)
    _say(f"{topic} on {cluster} has {total} partitions")


@fault_app.command("recreate-topic")
def recreate_topic(cluster: _Cluster, topic: _Topic) -> None:
    """Delete a topic and create it empty, with a new topic id."""
    broker = serving(persisted.current(), cluster)
    with on_cluster(cluster, f"creating {topic} anew"), steps(Console(), f"creating {topic} anew"):
        broker.admin.recreate_topic(topic)
    _say(f"{topic} on {cluster} is empty and has a new topic id")


@fault_app.command("foreign-record")
def foreign_record(
    flow: _FlowLabel,
    topic: _Topic,
    count: Annotated[int, typer.Option(min=1, help="How many records.")] = 1,
    partition: _Partition = 0,
) -> None:
    """Write into a copied topic, as only MirrorMaker 2 should."""
    found = _parsed(flow)
    with on_cluster(found.target, "writing a foreign record"):
        delivered = faults.foreign_records(persisted.current(), found, topic, count, partition)
    _say(
        f"{delivered.count} foreign records in partition {partition};"
        f" the copy ends at offset {delivered.next_offsets[partition]}"
    )


@fault_app.command("fail-task")
def fail_task(flow: _FlowLabel, topic: _Topic, partition: _Partition = 0) -> None:
    """Make the task that copies one partition fail."""
    found = _parsed(flow)
    with on_cluster(found.target, "failing a task"), steps(Console(), "waiting for a task to fail"):
        failed = faults.fail_task(persisted.current(), found, topic, partition)
    _say(f"failed: {', '.join(failed)}; `fault repair-task` mends it")


@fault_app.command("repair-task")
def repair_task(flow: _FlowLabel, topic: _Topic) -> None:
    """Undo fail-task; MirrorMaker 2 is restarted."""
    found = _parsed(flow)
    with (
        persisted.changed() as lab,
        on_cluster(found.target, "repairing a task"),
        steps(Console(), "restarting MirrorMaker 2"),
    ):
        faults.repair_task(lab, found, topic)
    _say(f"every task of {found} runs")


def _parsed(label: str) -> Flow:
    try:
        return Flow.parse(label)
    except ValueError as error:
        raise UserError(str(error)) from None


def _say(line: str) -> None:
    Console().print(line, highlight=False)
