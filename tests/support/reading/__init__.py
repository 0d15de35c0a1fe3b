"""Topics read to their end by a consumer that shares nothing with the product."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import Message

    from mm2slo_core.topology import Flow
    from mm2slo_lab import Lab

_TIMEOUT = 30.0


def read_whole(
    properties: Mapping[str, str],
    topic: str,
    start: Mapping[int, int] | None = None,
    isolation: str = "read_uncommitted",
) -> list[Message]:
    """Every record of *topic*, or from *start* on (offset by partition), as of now."""
    consumer = Consumer(
        {
            **properties,
            "log_level": 2,
            "group.id": "independent-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": isolation,
        }
    )
    try:
        known = consumer.list_topics(topic, timeout=_TIMEOUT).topics[topic].partitions
        places = []
        ends: dict[int, int] = {}
        for partition in known:
            place = TopicPartition(topic, partition)
            low, high = consumer.get_watermark_offsets(place, _TIMEOUT)
            first = low if start is None else start.get(partition)
            if first is not None and first < high:
                places.append(TopicPartition(topic, partition, first))
                ends[partition] = high
        consumer.assign(places)
        found: list[Message] = []
        deadline = time.monotonic() + 4 * _TIMEOUT
        while ends:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic}: partitions {sorted(ends)} were not read to their end")
            for message in consumer.consume(10_000, timeout=0.1):
                error, partition, offset = message.error(), message.partition(), message.offset()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                if partition not in ends or offset is None:
                    continue
                if error is None and offset < ends[partition]:
                    found.append(message)
                # The end is told by its event where nothing follows: a marker, an aborted batch.
                if error is not None or offset >= ends[partition] - 1:
                    del ends[partition]
        return found
    finally:
        consumer.close()


def copied(lab: Lab, topic: str, source: str = "us", target: str = "eu") -> int:
    """The sum of the end offsets of the copy of *topic*; 0 while it does not exist."""
    return sum(lab.cluster(target).admin.end_offsets(f"{source}.{topic}").values())


def committed(lab: Lab, flow: Flow, topic: str) -> dict[int, int]:
    """MirrorMaker 2's newest committed offset by partition of a source *topic*."""
    found: dict[int, int] = {}
    offsets = f"mm2-offsets.{flow.source}.internal"
    for message in read_whole(lab.cluster(flow.target).librdkafka(), offsets):
        connector, place = json.loads(message.key() or b"[null, {}]")
        if connector == "MirrorSourceConnector" and place.get("topic") == topic:
            found[place["partition"]] = json.loads(message.value() or b"{}").get("offset", -1)
    return found
