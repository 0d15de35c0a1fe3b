"""Conditions of a flow, seen by clients of the tests' own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from exact import ends
from reading import read_whole

from mm2slo_lab.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.topology import Flow
    from mm2slo_lab import Lab


def copied(lab: Lab, flow: Flow, copy: str) -> int:
    """The sum of the end offsets of a copy."""
    return sum(lab.cluster(flow.target).admin.end_offsets(copy).values())


def wait_copied(lab: Lab, flow: Flow, copy: str, count: int, timeout: float = 90) -> None:
    """Wait until the copy holds *count* records."""
    wait_for(lambda: copied(lab, flow, copy) >= count, f"{count} records in {copy}", timeout)


def commits(lab: Lab, flow: Flow, topic: str) -> dict[int, int]:
    """MirrorMaker 2's newest committed offset by partition of a source *topic*."""
    found: dict[int, int] = {}
    offsets = f"mm2-offsets.{flow.source}.internal"
    for message in read_whole(lab.cluster(flow.target).librdkafka(), offsets):
        key = json.loads(message.key() or b"[{}, {}]")
        if key[0] == "MirrorSourceConnector" and key[1].get("topic") == topic:
            found[key[1]["partition"]] = json.loads(message.value() or b"{}").get("offset", -1)
    return found


def wait_flushed(
    lab: Lab, flow: Flow, topic: str, beyond: Mapping[int, int], timeout: float = 60
) -> None:
    """Wait until each partition's commit is at least the offset given."""

    def flushed() -> bool:
        found = commits(lab, flow, topic)
        return all(found.get(partition, -1) >= offset for partition, offset in beyond.items())

    wait_for(flushed, f"commits of {topic} at {dict(beyond)}", timeout)


def source_ends(lab: Lab, flow: Flow, topic: str) -> dict[int, int]:
    """High watermarks of a source topic."""
    found = ends(lab.cluster(flow.source).librdkafka(), topic)
    return {int(partition): end for partition, end in found.items()}
