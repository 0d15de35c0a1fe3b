"""Faults that need more than a signal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mm2slo_kafka.traffic import Load, produce
from mm2slo_lab.condition_wait import wait_for
from mm2slo_lab.lab_errors import LabError
from mm2slo_lab.task_states import failed_tasks

if TYPE_CHECKING:
    from mm2slo_core.topology import Flow
    from mm2slo_kafka.traffic import Delivered
    from mm2slo_lab.lab import Lab

# Larger than any test record, smaller than the record that fails the task.
_SMALL, _LARGE = 20_000, 100_000
_LIMIT = "max.message.bytes"
_SEND_AGAIN = 15.0


def foreign_records(
    lab: Lab, flow: Flow, topic: str, count: int = 1, partition: int | None = None
) -> Delivered:
    """Produce *count* records to the target topic of *topic*, as only MirrorMaker 2 should."""
    target = lab.cluster(flow.target)
    return produce(
        target.librdkafka(),
        lab.topology.remote_topic(flow, topic),
        Load(count, keys=("foreign",), partition=partition),
    )


def fail_task(lab: Lab, flow: Flow, topic: str, partition: int = 0) -> tuple[str, ...]:
    """Fail the task that replicates *partition* of *topic*; returns the failed tasks.

    Lowers the record limit of the target topic, then produces two larger records: the producer of
    MirrorMaker 2 gets RecordTooLargeException and, with `errors.tolerance` none, the task fails.
    MirrorMaker 2 restores the limit at its next config sync, an hour after its start.
    `repair_task` undoes the fault.

    Raises LabError when the topic is not replicated yet, or no task fails.
    """
    source, target = lab.cluster(flow.source), lab.cluster(flow.target)
    remote = lab.topology.remote_topic(flow, topic)
    if not target.admin.partition_count(remote):
        raise LabError(f"{remote} does not exist on {flow.target}: produce to {topic} and wait")
    before = set(failed_tasks(lab, flow))
    # Two, so that the first is alone in its batch: a batch of a large and a small record is split
    # for ever, and no task fails (KAFKA-8350).
    load = Load(2, keys=("too-large",), value_size=_LARGE, partition=partition)
    sent = float("-inf")

    def failed() -> bool:
        nonlocal sent
        if set(failed_tasks(lab, flow)) - before:
            return True
        # The broker confirms the limit before it applies it, and MirrorMaker 2 restores it once
        # more while it starts: the first record may be replicated.
        if time.monotonic() - sent > _SEND_AGAIN:
            target.admin.set_topic_configs(remote, {_LIMIT: str(_SMALL)})
            produce(source.librdkafka(), topic, load)
            sent = time.monotonic()
        return False

    wait_for(failed, f"a failed task of {flow}")
    return tuple(sorted(set(failed_tasks(lab, flow)) - before))


def repair_task(lab: Lab, flow: Flow, topic: str) -> None:
    """Undo `fail_task`: reset the limit and restart MirrorMaker 2."""
    remote = lab.topology.remote_topic(flow, topic)
    lab.cluster(flow.target).admin.set_topic_configs(remote, {_LIMIT: None})
    lab.restart_mirroring(flow)
    wait_for(lambda: not failed_tasks(lab, flow), f"running tasks of {flow}")
