"""Faults that need more than a signal, and the task states that show them.

Single message transforms cause loss on purpose.
"""

import json
import time

from mm2slo_core.topology import Flow
from mm2slo_lab.lab_data import Load, LoadResult, consume, produce
from mm2slo_lab.lab_topology import LabError
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

# Larger than any test record, smaller than the record that fails the task.
_SMALL, _LARGE = 20_000, 100_000
_LIMIT = "max.message.bytes"
_SEND_AGAIN = 15.0


def foreign_records(
    lab: Lab, flow: Flow, topic: str, count: int = 1, partition: int | None = None
) -> LoadResult:
    """Produce *count* records to the target topic of *topic*, as only MirrorMaker 2 should."""
    target = lab.cluster(flow.target)
    return produce(
        target.librdkafka(),
        lab.topology.remote_topic(flow, topic),
        Load(count, keys=("foreign",), partition=partition),
    )


def fail_mirror_task(lab: Lab, flow: Flow, topic: str, partition: int = 0) -> tuple[str, ...]:
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


def repair_mirror_task(lab: Lab, flow: Flow, topic: str) -> None:
    """Undo `fail_task`: reset the limit and restart MirrorMaker 2."""
    remote = lab.topology.remote_topic(flow, topic)
    lab.cluster(flow.target).admin.set_topic_configs(remote, {_LIMIT: None})
    lab.restart_mirroring(flow)
    wait_for(lambda: not failed_tasks(lab, flow), f"running tasks of {flow}")


def status_topic(flow: Flow) -> str:
    """Return the status topic of a flow in dedicated mode, on its target."""
    return f"mm2-status.{flow.source}.internal"


def task_states(lab: Lab, flow: Flow) -> dict[str, str]:
    """Return states by task, for example `{"MirrorSourceConnector-0": "RUNNING"}`.

    Format: `KafkaStatusBackingStore`; a null value deletes the task.
    """
    target = lab.cluster(flow.target)
    topic = status_topic(flow)
    end = sum(target.admin.end_offsets(topic).values())
    start = sum(target.admin.start_offsets(topic).values())
    states: dict[str, str] = {}
    # Compaction may have removed records, so read up to the end instead of a count.
    for message in consume(target.librdkafka(), [topic], end - start, until_end=True):
        name = (message.key() or b"").decode()
        if not name.startswith("status-task-"):
            continue
        task, value = name.removeprefix("status-task-"), message.value()
        if value is None:
            states.pop(task, None)
        else:
            states[task] = json.loads(value)["state"]
    return states


def failed_tasks(lab: Lab, flow: Flow) -> tuple[str, ...]:
    """Return the failed tasks of *flow*."""
    return tuple(
        sorted(task for task, state in task_states(lab, flow).items() if state == "FAILED")
    )


_PACKAGE = "org.apache.kafka.connect.transforms"


def dropping(flow: Flow, header: str) -> dict[str, str]:
    """Return properties that make *flow* drop records with *header*.

    The position advances past them with the next replicated record, and the target never gets
    them. Heartbeats and checkpoints pass the same transform without such a header.

    All keys have the prefix of the flow: without it, dedicated mode passes on `transforms` but not
    its settings, and rejects the connector configuration (`MirrorMakerConfig.connectorBaseConfig`).
    """
    settings = {
        "transforms": "drop",
        "transforms.drop.type": f"{_PACKAGE}.Filter",
        "transforms.drop.predicate": "marked",
        "predicates": "marked",
        "predicates.marked.type": f"{_PACKAGE}.predicates.HasHeaderKey",
        "predicates.marked.name": header,
    }
    return {f"{flow.label}.{key}": value for key, value in settings.items()}
