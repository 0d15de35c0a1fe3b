"""Faults that need more than a signal: each says what it did, in figures, and how to undo it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_kafka.traffic import Load, produce
from mm2slo_lab.errors import LabError
from mm2slo_lab.tasks import failed_tasks
from mm2slo_lab.waiting import wait_for

if TYPE_CHECKING:
    from mm2slo_core.topology import Flow
    from mm2slo_kafka.traffic import Delivered
    from mm2slo_lab.lab import Lab

# Far above what any test record has, far below the record that fails the task.
_SMALL, _LARGE = 20_000, 100_000
_LIMIT = "max.message.bytes"


def foreign_records(
    lab: Lab, flow: Flow, topic: str, count: int = 1, partition: int | None = None
) -> Delivered:
    """Write *count* records into the copy of *topic*, as only MirrorMaker 2 should."""
    target = lab.cluster(flow.target)
    return produce(
        target.librdkafka(),
        lab.topology.remote_topic(flow, topic),
        Load(count, keys=("foreign",), partition=partition),
    )


def fail_task(lab: Lab, flow: Flow, topic: str, partition: int = 0) -> tuple[str, ...]:
    """Make the one task that copies *partition* of *topic* fail; the tasks that failed.

    The copy's record limit is lowered on the target, then a larger record comes: the producer
    is refused with RecordTooLargeException and, as `errors.tolerance` is none, the task ends.
    MirrorMaker 2 would restore the limit at its next config sync, ten minutes after its start.
    `repair_task` undoes it.

    Raises LabError when the topic is not copied yet, or no task fails.
    """
    source, target = lab.cluster(flow.source), lab.cluster(flow.target)
    remote = lab.topology.remote_topic(flow, topic)
    if not target.admin.partition_count(remote):
        raise LabError(f"{remote} is not on {flow.target} yet: produce to {topic} and wait for it")
    before = set(failed_tasks(lab, flow))
    target.admin.set_topic_configs(remote, {_LIMIT: str(_SMALL)})
    load = Load(1, keys=("too-large",), value_size=_LARGE, partition=partition)
    produce(source.librdkafka(), topic, load)
    wait_for(lambda: bool(set(failed_tasks(lab, flow)) - before), f"a failed task of {flow}", 60.0)
    return tuple(sorted(set(failed_tasks(lab, flow)) - before))


def repair_task(lab: Lab, flow: Flow, topic: str) -> None:
    """Undo `fail_task`: the limit goes back to its default and MirrorMaker 2 is restarted."""
    remote = lab.topology.remote_topic(flow, topic)
    lab.cluster(flow.target).admin.set_topic_configs(remote, {_LIMIT: None})
    lab.restart_mirroring(flow)
    wait_for(lambda: not failed_tasks(lab, flow), f"running tasks of {flow}", 60.0)
