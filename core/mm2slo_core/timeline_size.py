"""Size of the watermark timeline: what moving partitions write, and how far back it reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mm2slo_core.config.exporter_config import ExporterConfig, TimelineConfig

# Compressed, of both sides and one poll; measured on random topics: 149, 76 and 58 bytes per
# partition with 1, 5 and 50 partitions a topic (docs/performance.md).
_PARTITION_BYTES: Final = 56
_TOPIC_BYTES: Final = 95
_DAY: Final = 86_400.0
_GB: Final = 1e9
_SEGMENTS: Final = 20


def timeline_settings(timeline: TimelineConfig) -> dict[str, str]:
    """Settings of the timeline's topic. Kafka removes whole segments, so the limit includes two."""
    segment = timeline.max_size // _SEGMENTS
    return {
        "cleanup.policy": "delete",
        "retention.ms": str(int(timeline.retention * 1000)),
        "retention.bytes": str(timeline.max_size - 2 * segment),
        "segment.bytes": str(min(segment, 1 << 30)),
    }


def timeline_gigabytes_per_day(partitions: int, topics: int, poll_interval: float) -> float:
    """What a flow writes while all its *partitions* move."""
    polled = partitions * _PARTITION_BYTES + topics * _TOPIC_BYTES
    return polled * _DAY / poll_interval / _GB


def timeline_estimate(partitions: int, topics: int, exporter: ExporterConfig) -> str:
    """What a flow writes, and how far back the timeline then reaches."""
    daily = timeline_gigabytes_per_day(partitions, topics, exporter.poll_interval)
    limit, retention = exporter.timeline.max_size / _GB, exporter.timeline.retention / _DAY
    text = (
        f"{partitions:,} moving partitions write about {daily:.3g} GB a day to "
        f"{exporter.timeline.topic}, which keeps at most {limit:.3g} GB"
    )
    if daily * retention <= limit:
        return f"{text} and thus {retention:.3g} days"
    return (
        f"{text} and thus {limit / daily:.2g} instead of {retention:.3g} days: audits of earlier "
        "windows have no latency"
    )
