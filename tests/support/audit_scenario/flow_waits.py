"""Waits for a flow's progress, measured by the tests' own clients."""

from flow_checks import end_offsets
from topic_reader import committed_offsets

from mm2slo_core.topology import Flow
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab


def wait_copied(lab: Lab, flow: Flow, copy: str, count: int) -> None:
    """Wait until the copy holds *count* records."""
    admin = lab.cluster(flow.target).admin
    wait_for(
        lambda: sum(admin.end_offsets(copy).values()) >= count,
        f"{count} records in {copy}",
        180,
    )


def wait_all_committed(lab: Lab, flow: Flow, topic: str, timeout: float = 180.0) -> None:
    """Wait until MirrorMaker 2 has committed the last record of each partition."""
    last = {partition: end - 1 for partition, end in source_ends(lab, flow, topic).items()}

    def is_committed() -> bool:
        found = committed_offsets(lab, flow, topic)
        return all(found.get(partition, -1) >= offset for partition, offset in last.items())

    wait_for(is_committed, f"commits of {topic} at {last}", timeout)


def source_ends(lab: Lab, flow: Flow, topic: str) -> dict[int, int]:
    """High watermarks of a source topic."""
    found = end_offsets(lab.cluster(flow.source).librdkafka(), topic)
    return {int(partition): end for partition, end in found.items()}
