"""How much disk the watermark timeline takes, and how far back it reaches."""

from __future__ import annotations

from mm2slo_core.config.exporter_config import ExporterConfig, TimelineConfig
from mm2slo_core.timeline_size import (
    timeline_estimate,
    timeline_gigabytes_per_day,
    timeline_settings,
)


def test_ten_thousand_moving_partitions_stay_below_20_gb_by_default() -> None:
    settings = timeline_settings(TimelineConfig())
    # Kafka keeps retention.bytes and up to one more segment before it deletes the oldest.
    retention, segment = int(settings["retention.bytes"]), int(settings["segment.bytes"])
    daily = timeline_gigabytes_per_day(10_000, 2_000, 5.0)
    between_checks = daily * 1e9 / 288
    assert retention + segment + between_checks < 20e9
    assert daily * 35 > 400  # without the limit


def test_segments_of_a_large_limit_have_a_size_that_kafka_accepts() -> None:
    settings = timeline_settings(TimelineConfig(max_size=100_000_000_000_000))
    assert int(settings["segment.bytes"]) == 1 << 30


def test_estimate_names_the_days_held_and_the_audits_without_latency() -> None:
    text = timeline_estimate(10_000, 2_000, ExporterConfig())
    assert text == (
        "10,000 moving partitions write about 13 GB a day to mm2slo.watermarks.internal, which "
        "keeps at most 20 GB and thus 1.5 instead of 35 days: audits of earlier windows have no "
        "latency"
    )
    small = timeline_estimate(100, 20, ExporterConfig())
    assert small.endswith("keeps at most 20 GB and thus 35 days")
