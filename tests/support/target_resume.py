"""What a consumer group reads when it resumes on the target from MirrorMaker 2's checkpoints."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from topic_reader import read_topic

from mm2slo_core.records.mirror_records import Checkpoint
from mm2slo_core.topology import Flow
from mm2slo_lab.running_lab import Lab

_US_EU: Final = Flow("us", "eu")


@dataclass(frozen=True)
class Resumed:
    """Result of a simulated failover of one group."""

    checkpoints: dict[int, Checkpoint]
    reread: int
    """Records after the checkpoints that the group had already read on the source."""
    skipped: int
    """Records that the group had not read, and that are only before the checkpoints."""


def checkpoints(lab: Lab, topic: str, group: str) -> dict[int, Checkpoint]:
    """Newest checkpoint of each partition, as in RemoteClusterUtils.translateOffsets."""
    found: dict[int, Checkpoint] = {}
    copy = lab.topology.remote_topic(_US_EU, topic)
    for record in read_topic(lab.cluster("eu").librdkafka(), "us.checkpoints.internal"):
        mark = Checkpoint.decode(record.key(), record.value())
        assert isinstance(mark, Checkpoint)
        if mark.group == group and mark.topic_partition.topic == copy:
            found[mark.topic_partition.partition] = mark
    return found


def resume(lab: Lab, topic: str, group: str, commits: Mapping[int, int]) -> Resumed:
    """Read the target from the group's checkpoints, and count records read again.

    Each record contains its source offset.
    """
    marks = checkpoints(lab, topic, group)
    start = {partition: mark.downstream_offset for partition, mark in marks.items()}
    reread = 0
    ends = lab.cluster("us").admin.end_offsets(topic)
    unread = {p: set(range(commits[p], ends[p])) for p in marks}
    for record in read_topic(
        lab.cluster("eu").librdkafka(), lab.topology.remote_topic(_US_EU, topic), start
    ):
        partition = record.partition()
        assert partition is not None
        number = int((record.value() or b"")[1:].split(b"-")[0])
        reread += number < commits[partition]
        unread[partition].discard(number)
    return Resumed(marks, reread, sum(len(left) for left in unread.values()))
