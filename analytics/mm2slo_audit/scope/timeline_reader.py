"""Reads the watermark timeline of a target cluster."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Final

from mm2slo_audit.scope.arrival_polls import TimelineKey, TopicTimeline
from mm2slo_audit.scope.topic_reader import read_to_end
from mm2slo_core.records import DecodeError
from mm2slo_core.timeline_record import WatermarkRecord

if TYPE_CHECKING:
    from collections.abc import Collection

    from mm2slo_kafka.cluster_client import ClusterClient

logger = logging.getLogger(__name__)

_MAX_POLLS: Final = 3_000_000
"""Kept in memory."""
_JOINED_MS: Final = 500
"""Width of brackets to join beyond that, doubled as often as necessary."""


def read_timeline(
    client: ClusterClient,
    topic: str,
    since: float,
    wanted: Collection[TimelineKey],
    *,
    until: float = math.inf,
    max_polls: int = _MAX_POLLS,
) -> dict[TimelineKey, TopicTimeline]:
    """The *wanted* records of *topic* from *since* to *until* (epoch s).

    Empty if it does not exist. Brackets are joined so that about *max_polls* remain. Raises
    KafkaOperationError or TimeoutError.
    """
    found: dict[TimelineKey, TopicTimeline] = {}
    malformed = polls = 0
    width = _JOINED_MS
    keys = {f"{flow.slug}/{side}/{name}".encode() for flow, side, name in wanted}
    for raw in read_to_end(client, topic, start=max(0.0, since)):
        if raw.key not in keys:
            continue
        try:
            record = WatermarkRecord.decode(raw.value)
        except DecodeError:
            malformed += 1
            continue
        if record.times.requested_at > until:
            break
        key = (record.flow, record.side, record.topic)
        if key in wanted:
            found.setdefault(key, TopicTimeline()).add(record)
            polls += len(record.partitions)
        if polls > max_polls:
            # Half, so that this is rare.
            while (polls := sum(map(TopicTimeline.count_polls, found.values()))) > max_polls // 2:
                for timeline in found.values():
                    timeline.join_polls(width)
                width *= 2
    if malformed:
        logger.warning("%d records of %s cannot be read", malformed, topic)
    return found
