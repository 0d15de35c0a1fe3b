"""Size of the watermark timeline: what moving partitions write, and how far back it reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.arrival_pace import MAX_PARTITIONS, shortest_interval

if TYPE_CHECKING:
    from mm2slo_core.config.exporter_config import ExporterConfig, TimelineConfig

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


def timeline_settings(timeline: TimelineConfig) -> dict[str, str]:
    """Settings of the timeline's topic."""
    return _settings(timeline.max_size - _arrivals_size(timeline), timeline.retention)


def arrivals_settings(timeline: TimelineConfig) -> dict[str, str]:
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


def _arrivals_size(timeline: TimelineConfig) -> int:
    return timeline.max_size // 5 if timeline.arrivals else 0


def timeline_gigabytes_per_day(partitions: int, topics: int, poll_interval: float) -> float:
    """What a flow writes while all its *partitions* move."""
    polled = partitions * _PARTITION_BYTES + topics * _TOPIC_BYTES
    return polled * _DAY / poll_interval / _GB


def arrivals_gigabytes_per_day(partitions: int, topics: int) -> float:
    """What a flow writes to the arrivals topic while all its *partitions* move in each read."""
    polled = partitions * _ARRIVAL_PARTITION_BYTES + topics * _ARRIVAL_TOPIC_BYTES
    return polled * _DAY / shortest_interval(partitions) / _GB


def timeline_estimate(partitions: int, topics: int, exporter: ExporterConfig) -> str:
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


def _arrivals_estimate(partitions: int, topics: int, timeline: TimelineConfig) -> str:
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
