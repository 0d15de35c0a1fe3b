"""Reads the watermark timeline of a target cluster."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mm2slo_audit.scope.arrival_polls import TimelineKey, TopicTimeline
from mm2slo_audit.scope.topic_reader import read_to_end
from mm2slo_core.records import DecodeError
from mm2slo_core.timeline_record import WatermarkRecord

if TYPE_CHECKING:
    from collections.abc import Collection

    from mm2slo_kafka.cluster_client import ClusterClient

logger = logging.getLogger(__name__)


def read_timeline(
    client: ClusterClient, topic: str, since: float, wanted: Collection[TimelineKey]
) -> dict[TimelineKey, TopicTimeline]:
    """The *wanted* records of *topic* from *since* (epoch s) on; empty if it does not exist.

    Raises KafkaOperationError or TimeoutError.
    """
    found: dict[TimelineKey, TopicTimeline] = {}
    malformed = 0
    keys = {f"{flow.slug}/{side}/{name}".encode() for flow, side, name in wanted}
    for raw in read_to_end(client, topic, start=max(0.0, since)):
        if raw.key not in keys:
            continue
        try:
            record = WatermarkRecord.decode(raw.value)
        except DecodeError:
            malformed += 1
            continue
        key = (record.flow, record.side, record.topic)
        if key in wanted:
            found.setdefault(key, TopicTimeline()).add(record)
    if malformed:
        logger.warning("%d records of %s cannot be read", malformed, topic)
    return found
