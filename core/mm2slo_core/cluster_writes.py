"""What the exporter writes to the clusters, and the size of the watermark timeline.

A record arrived between the request of the last read without it and the response of the first read
with it: its bracket is the interval between two reads plus a response time.
"""

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from mm2slo_core.config.exporter_settings import (
    CanaryCarrier,
    ExporterSettings,
    RootSettings,
    TimelineSettings,
)
from mm2slo_core.kafka_permissions import CANARY_GROUPS, LEADER_GROUPS, ResourceKind
from mm2slo_core.replication_policy import HEARTBEATS_TOPIC

_CANARIES = "canaries"
_TIMELINE = "watermark timeline"
_ARRIVALS = "arrival times"
_STATE = "losses and verdicts"
_ELECTION = "membership, no offsets"


class ClusterWrite(NamedTuple):
    """A topic that the exporter writes to, or a consumer group that it joins.

    *flows* are the labels of the flows that need it.
    """

    cluster: str
    kind: ResourceKind
    name: str
    purpose: str
    flows: tuple[str, ...]


def cluster_writes(config: RootSettings) -> tuple[ClusterWrite, ...]:
    """Each topic and group that is written to, by cluster and name; empty in read-only mode."""
    flows_by_write: dict[ClusterWrite, list[str]] = {}
    for write in _writes_of_flows(config):
        flows_by_write.setdefault(write._replace(flows=()), []).extend(write.flows)
    return tuple(
        write._replace(flows=tuple(flows)) for write, flows in sorted(flows_by_write.items())
    )


def _writes_of_flows(config: RootSettings) -> Iterator[ClusterWrite]:
    exporter = config.exporter
    for flow in config.flows:
        source, target, flows = flow.flow.source, flow.flow.target, (flow.label,)
        carrier = config.carrier(flow)
        if carrier is not CanaryCarrier.OFF:
            topic = flow.canary.topic if carrier is CanaryCarrier.TOPIC else HEARTBEATS_TOPIC
            yield ClusterWrite(source, "topic", topic, _CANARIES, flows)
            if exporter.instance is None:
                yield ClusterWrite(source, "group", f"{CANARY_GROUPS}*", _ELECTION, flows)
        if not exporter.read_only:
            yield ClusterWrite(target, "topic", exporter.state.topic, _STATE, flows)
            yield ClusterWrite(target, "group", f"{LEADER_GROUPS}*", _ELECTION, flows)
        if exporter.writes_timeline:
            yield ClusterWrite(target, "topic", exporter.timeline.topic, _TIMELINE, flows)
        if exporter.writes_arrivals:
            yield ClusterWrite(target, "topic", exporter.timeline.arrivals_topic, _ARRIVALS, flows)


# Compressed, of both sides and one poll; measured on random topics: 149, 76 and 58 bytes per
# partition with 1, 5 and 50 partitions a topic (docs/performance.md).
_PARTITION_BYTES: Final = 56
_TOPIC_BYTES: Final = 95

# Likewise, of one read of the target: 22.5, 9.0 and 5.7 bytes.
_ARRIVAL_PARTITION_BYTES: Final = 6
_ARRIVAL_TOPIC_BYTES: Final = 17
_ARRIVALS_HOURS: Final = 24
_DAY: Final = 86_400.0
_GB: Final = 1e9
_SEGMENTS: Final = 20


def timeline_settings(timeline: TimelineSettings) -> dict[str, str]:
    """Settings of the timeline's topic, which has what `arrivals_settings` leaves of `max_size`."""
    return _settings(timeline.max_size - _arrivals_size(timeline), timeline.retention)


def arrivals_settings(timeline: TimelineSettings) -> dict[str, str]:
    """Settings of the arrivals topic, which has a fifth of `max_size`."""
    return _settings(_arrivals_size(timeline), _ARRIVALS_HOURS * 3_600.0)


def _settings(size: int, retention: float) -> dict[str, str]:
    """Kafka removes whole segments, so the limit includes two."""
    segment = size // _SEGMENTS
    return {
        "cleanup.policy": "delete",
        "retention.ms": str(int(retention * 1000)),
        "retention.bytes": str(size - 2 * segment),
        "segment.bytes": str(min(segment, 1 << 30)),
    }


def _arrivals_size(timeline: TimelineSettings) -> int:
    return timeline.max_size // 5 if timeline.arrivals else 0


def timeline_gigabytes_per_day(partitions: int, topics: int, poll_interval: float) -> float:
    """What a flow writes while all its *partitions* move."""
    polled = partitions * _PARTITION_BYTES + topics * _TOPIC_BYTES
    return polled * _DAY / poll_interval / _GB


def arrivals_gigabytes_per_day(partitions: int, topics: int) -> float:
    """What a flow writes to the arrivals topic while all its *partitions* move in each read."""
    polled = partitions * _ARRIVAL_PARTITION_BYTES + topics * _ARRIVAL_TOPIC_BYTES
    return polled * _DAY / shortest_interval(partitions) / _GB


def timeline_estimate(partitions: int, topics: int, exporter: ExporterSettings) -> str:
    """What a flow writes, and how far back the timeline then reaches."""
    timeline = exporter.timeline
    daily = timeline_gigabytes_per_day(partitions, topics, exporter.poll_interval)
    limit = (timeline.max_size - _arrivals_size(timeline)) / _GB
    retention = timeline.retention / _DAY
    text = (
        f"{partitions:,} moving partitions write about {daily:.3g} GB a day to "
        f"{timeline.topic}, which keeps at most {limit:.3g} GB"
    )
    if daily * retention <= limit:
        text += f" and thus {retention:.3g} days"
    else:
        text += (
            f" and thus {limit / daily:.2g} instead of {retention:.3g} days: audits of earlier "
            "windows have no latency"
        )
    return text + _arrivals_estimate(partitions, topics, timeline)


def _arrivals_estimate(partitions: int, topics: int, timeline: TimelineSettings) -> str:
    if not timeline.arrivals:
        return ""
    if partitions > MAX_PARTITIONS:
        return f"; above {MAX_PARTITIONS:,} partitions, nothing to {timeline.arrivals_topic}"
    daily, limit = arrivals_gigabytes_per_day(partitions, topics), _arrivals_size(timeline) / _GB
    hours = min(_ARRIVALS_HOURS, _ARRIVALS_HOURS * limit / daily) if daily else _ARRIVALS_HOURS
    return (
        f"; and up to {daily:.3g} GB a day to {timeline.arrivals_topic}, which keeps at most "
        f"{limit:.3g} GB and thus {hours:.2g} hours"
    )


MAX_PARTITIONS: Final = 5_000
"""Of a target; with more, brackets are not much narrower than those of ordinary polls."""

REQUESTS_PER_SECOND: Final = 25
"""`ListOffsets` requests to each broker, at most."""

REQUEST_PARTITIONS: Final = 200
"""Partitions of one request."""

_INTERVAL: Final = 0.2
"""300 ms less a response time of 100 ms: 1,000 partitions at a round trip of 50 ms."""

_CPU_SHARE: Final = 0.045
"""Of a core; 5 % with the thread of the producer."""

_CLIENT_CPU: Final = 4e-6
"""CPU seconds per partition of librdkafka's threads (docs/performance.md)."""


def shortest_interval(partitions: int) -> float:
    """Seconds between two reads of *partitions*; all may have the same leader."""
    return max(_INTERVAL, math.ceil(partitions / REQUEST_PARTITIONS) / REQUESTS_PER_SECOND)


def arrival_interval(partitions: int, cpu: float) -> float:
    """The interval after a read for which the reading thread took *cpu* seconds."""
    return max(shortest_interval(partitions), (cpu + partitions * _CLIENT_CPU) / _CPU_SHARE)
