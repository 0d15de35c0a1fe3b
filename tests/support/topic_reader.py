"""Reads topics with a consumer that shares no code with the product."""

import json
import time
from collections.abc import Mapping
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from mm2slo_core.topology import Flow
from mm2slo_lab.running_lab import Lab

_TIMEOUT = 60.0
_US_EU: Final = Flow("us", "eu")


def read_topic(
    properties: Mapping[str, str],
    topic: str,
    start: Mapping[int, int] | None = None,
    isolation: str = "read_uncommitted",
) -> list[Message]:
    """All records of *topic* up to its current end, or from *start* (offsets by partition)."""
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
                raise TimeoutError(f"{topic}: the end of partitions {sorted(ends)} was not reached")
            for message in consumer.consume(10_000, timeout=0.1):
                error, partition, offset = message.error(), message.partition(), message.offset()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                if partition not in ends or offset is None:
                    continue
                if error is None and offset < ends[partition]:
                    found.append(message)
                # After a marker or an aborted batch at the end, only the event indicates the end.
                if error is not None or offset >= ends[partition] - 1:
                    del ends[partition]
        return found
    finally:
        consumer.close()


def count_copies(lab: Lab, topic: str, flow: Flow = _US_EU) -> int:
    """Sum of the end offsets of the copy of *topic*; 0 while it does not exist."""
    copy = lab.topology.remote_topic(flow, topic)
    return sum(lab.cluster(flow.target).admin.end_offsets(copy).values())


def committed_offsets(lab: Lab, flow: Flow, topic: str) -> dict[int, int]:
    """MirrorMaker 2's newest committed offset of each partition of a source *topic*."""
    found: dict[int, int] = {}
    offsets = f"mm2-offsets.{flow.source}.internal"
    for message in read_topic(lab.cluster(flow.target).librdkafka(), offsets):
        connector, place = json.loads(message.key() or b"[null, {}]")
        if connector == "MirrorSourceConnector" and place.get("topic") == topic:
            found[place["partition"]] = json.loads(message.value() or b"{}").get("offset", -1)
    return found
