"""Task states, read from Connect's status topic."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mm2slo_kafka.traffic import consume

if TYPE_CHECKING:
    from mm2slo_core.topology import Flow
    from mm2slo_lab.lab import Lab


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
