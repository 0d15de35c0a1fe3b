"""How much disk the watermark timeline takes, and how far back it reaches."""

from mm2slo_core.cluster_writes import (
    MAX_PARTITIONS,
    arrivals_gigabytes_per_day,
    arrivals_settings,
    timeline_estimate,
    timeline_gigabytes_per_day,
    timeline_settings,
)
from mm2slo_core.config.service_config import ExporterConfig, TimelineConfig


def test_both_topics_stay_below_20_gb_by_default() -> None:
    daily = timeline_gigabytes_per_day(10_000, 2_000, 5.0)
    arrivals = arrivals_gigabytes_per_day(MAX_PARTITIONS, 1_000)
    held = 0.0
    for settings, written in (
        (timeline_settings(TimelineConfig()), daily),
        (arrivals_settings(TimelineConfig()), arrivals),
    ):
        # Kafka keeps retention.bytes and up to one more segment before it deletes the oldest.
        retention, segment = int(settings["retention.bytes"]), int(settings["segment.bytes"])
        between_checks = written * 1e9 / 288
        held += retention + segment + between_checks
    assert held < 20e9
    assert daily * 35 > 400  # without the limit


def test_arrivals_are_kept_for_a_day_in_a_fifth_of_the_limit() -> None:
    settings = arrivals_settings(TimelineConfig())
    assert settings["retention.ms"] == "86400000"
    assert int(settings["retention.bytes"]) + 2 * int(settings["segment.bytes"]) == 4_000_000_000
    whole = timeline_settings(TimelineConfig(arrivals=False))
    assert int(whole["retention.bytes"]) + 2 * int(whole["segment.bytes"]) == 20_000_000_000


def test_segments_of_a_large_limit_have_a_size_that_kafka_accepts() -> None:
    settings = timeline_settings(TimelineConfig(max_size=100_000_000_000_000))
    assert int(settings["segment.bytes"]) == 1 << 30


def test_estimate_names_the_days_held_and_the_audits_without_latency() -> None:
    text = timeline_estimate(10_000, 2_000, ExporterConfig())
    assert text == (
        "10,000 moving partitions write about 13 GB a day to mm2slo.watermarks.internal, which "
        "keeps at most 16 GB and thus 1.2 instead of 35 days: audits of earlier windows have no "
        "latency; above 5,000 partitions, nothing to mm2slo.arrivals.internal"
    )
    small = timeline_estimate(100, 20, ExporterConfig())
    assert small.endswith(
        "keeps at most 16 GB and thus 35 days; and up to 0.406 GB a day to "
        "mm2slo.arrivals.internal, which keeps at most 4 GB and thus 24 hours"
    )
    without = ExporterConfig(timeline=TimelineConfig(arrivals=False))
    assert timeline_estimate(100, 20, without).endswith("keeps at most 20 GB and thus 35 days")
