"""Connector and task states, read from Connect's status topic as an outsider would."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mm2slo_kafka.traffic import consume

if TYPE_CHECKING:
    from mm2slo_core.topology import Flow
    from mm2slo_lab.lab import Lab


def status_topic(flow: Flow) -> str:
    """The status topic of a flow's worker, in dedicated mode, on the flow's target."""
    return f"mm2-status.{flow.source}.internal"


def task_states(lab: Lab, flow: Flow) -> dict[str, str]:
    """The newest state by task, as `{"MirrorSourceConnector-0": "RUNNING"}`.

    Keys and values: `KafkaStatusBackingStore`; a null value means the task is gone.
    """
    target = lab.cluster(flow.target)
    topic = status_topic(flow)
    end = sum(target.admin.end_offsets(topic).values())
    start = sum(target.admin.start_offsets(topic).values())
    states: dict[str, str] = {}
    # Compaction may have removed records meanwhile: what is there is read, up to the end.
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
    """The tasks of *flow* that have failed."""
    return tuple(
        sorted(task for task, state in task_states(lab, flow).items() if state == "FAILED")
    )
