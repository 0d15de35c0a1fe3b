"""Records of the watermark timeline, and their size."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.cluster_writes import (
    MAX_PARTITIONS,
    arrivals_gigabytes_per_day,
    arrivals_settings,
    timeline_estimate,
    timeline_gigabytes_per_day,
    timeline_settings,
)
from mm2slo_core.config.service_config import ExporterConfig, TimelineConfig
from mm2slo_core.records.mirror_records import DecodeError, DecodeReason
from mm2slo_core.records.timeline_record import Column, PollTimes, Side, WatermarkRecord
from mm2slo_core.topology import Flow

FLOW = Flow("us", "eu")
RECORD = WatermarkRecord(
    flow=FLOW,
    side=Side.SOURCE,
    topic="orders",
    topic_id="9sT1n2d1Tn2n3l4k5j6h7g",
    isolation="read_uncommitted",
    times=PollTimes(1_789_000_000.123, 1_789_000_000.161, 1_788_999_995.1, 1_788_999_995.2),
    partitions=(0, 1),
    ends=(1000, 50),
    log_starts=(100, 50),
    committed=(900, None),
    sync_upstreams=(990, None),
    sync_downstreams=(490, None),
)
LAYOUT = {
    "v": 1,
    "f": "us->eu",
    "s": "source",
    "t": "orders",
    "i": "9sT1n2d1Tn2n3l4k5j6h7g",
    "l": "read_uncommitted",
    "q": [1_789_000_000_123, 38, 5023, 4923],
    "e": [1000, 50],
    "b": [900, 0],
    "c": [100, None],
    "u": [10, None],
    "d": [490, None],
}


def test_timeline_record_has_documented_layout() -> None:
    value = RECORD.encode_value()
    assert json.loads(value) == LAYOUT
    assert list(json.loads(value)) == list(LAYOUT)
    assert b" " not in value
    assert RECORD.encode_key() == b"us-to-eu/source/orders"
    assert WatermarkRecord.decode(value) == RECORD


def test_timeline_record_omits_unknown_columns() -> None:
    bare = WatermarkRecord(
        FLOW, Side.TARGET, "us.orders", None, "read_committed", PollTimes(1.0, 2.0), (0,), (5,)
    )
    assert bare.encode_value() == (
        b'{"v":1,"f":"us->eu","s":"target","t":"us.orders","i":null,"l":"read_committed",'
        b'"q":[1000,1000,null,null],"e":[5]}'
    )
    assert WatermarkRecord.decode(bare.encode_value()) == bare


def test_timeline_record_lists_non_consecutive_partitions() -> None:
    some = WatermarkRecord(
        FLOW, Side.TARGET, "t", None, "read_uncommitted", PollTimes(1.0, 2.0), (0, 2), (5, 6)
    )
    assert json.loads(some.encode_value())["p"] == [0, 2]
    assert WatermarkRecord.decode(some.encode_value()) == some


OFFSET = st.integers(0, 2**62)
MILLISECONDS = st.integers(0, 4_102_444_800_000)


@st.composite
def records(draw: st.DrawFn) -> WatermarkRecord:
    count = draw(st.integers(0, 4))

    def column() -> Column:
        """Draw one value per partition; a column without any value is empty."""
        found = tuple(draw(st.none() | OFFSET) for _ in range(count))
        return found if any(figure is not None for figure in found) else ()

    request, answer, before, answer_before = sorted(draw(MILLISECONDS) / 1000 for _ in range(4))
    preceded = draw(st.booleans())
    return WatermarkRecord(
        flow=FLOW,
        side=draw(st.sampled_from(Side)),
        topic=draw(st.text(min_size=1, max_size=20)),
        topic_id=draw(st.none() | st.text(max_size=22)),
        isolation=draw(st.sampled_from(["read_committed", "read_uncommitted"])),
        times=PollTimes(
            request, answer, before if preceded else None, answer_before if preceded else None
        ),
        partitions=tuple(sorted(draw(st.sets(OFFSET, min_size=count, max_size=count)))),
        ends=tuple(draw(OFFSET) for _ in range(count)),
        log_starts=column(),
        committed=column(),
        sync_upstreams=column(),
        sync_downstreams=column(),
    )


@given(record=records())
def test_timeline_record_round_trips(record: WatermarkRecord) -> None:
    value = record.encode_value()
    assert WatermarkRecord.decode(value) == record
    assert WatermarkRecord.decode(value).encode_value() == value


@given(
    request=st.floats(1e9, 4e9),
    duration=st.floats(0.0, 60.0),
    gap=st.floats(0.0, 1e6),
)
def test_timeline_record_rounding_only_widens_brackets(
    request: float, duration: float, gap: float
) -> None:
    answer, before = request + duration, request - gap
    times = PollTimes(request, answer, before, before + duration)
    bare = WatermarkRecord(FLOW, Side.SOURCE, "t", None, "read_uncommitted", times, (0,), (1,))
    read = WatermarkRecord.decode(bare.encode_value()).times
    microsecond = 2e-6
    assert read.requested_at <= request + microsecond
    assert read.answered_at >= answer - microsecond
    assert read.previous_requested_at is not None
    assert read.previous_requested_at <= before + microsecond
    assert math.isclose(read.requested_at, request, abs_tol=0.0011)
    assert math.isclose(read.answered_at, answer, abs_tol=0.0011)


@pytest.mark.parametrize(
    ("case", "change", "reason"),
    [
        ("a newer version", {"v": 2}, DecodeReason.UNKNOWN_VERSION),
        ("no version", {"v": None}, DecodeReason.UNKNOWN_VERSION),
        ("an unknown side", {"s": "middle"}, DecodeReason.UNEXPECTED_SHAPE),
        ("no flow", {"f": None}, DecodeReason.UNEXPECTED_SHAPE),
        ("a flow of one cluster", {"f": "us"}, DecodeReason.UNEXPECTED_SHAPE),
        ("no topic", {"t": None}, DecodeReason.UNEXPECTED_SHAPE),
        ("an id that is no string", {"i": 7}, DecodeReason.UNEXPECTED_SHAPE),
        ("no ends", {"e": None}, DecodeReason.UNEXPECTED_SHAPE),
        ("an end that is null", {"e": [1, None]}, DecodeReason.UNEXPECTED_SHAPE),
        ("a fraction", {"e": [1.5, 2]}, DecodeReason.UNEXPECTED_SHAPE),
        ("a short column", {"c": [1]}, DecodeReason.UNEXPECTED_SHAPE),
        ("a column of text", {"u": ["1", "2"]}, DecodeReason.UNEXPECTED_SHAPE),
        ("too many partitions", {"p": [0, 1, 2]}, DecodeReason.UNEXPECTED_SHAPE),
        ("three times", {"q": [1, 2, 3]}, DecodeReason.UNEXPECTED_SHAPE),
        ("half a poll", {"q": [1, 2, 3, None]}, DecodeReason.UNEXPECTED_SHAPE),
    ],
)
def test_decode_of_invalid_fields_raises_decode_error(
    case: str, change: dict[str, Any], reason: DecodeReason
) -> None:
    with pytest.raises(DecodeError) as refused:
        WatermarkRecord.decode(json.dumps(LAYOUT | change).encode())
    assert refused.value.reason is reason, case


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, DecodeReason.UNEXPECTED_SHAPE),
        (b"", DecodeReason.INVALID_JSON),
        (b"[]", DecodeReason.UNEXPECTED_SHAPE),
        (b"\xff", DecodeReason.INVALID_UTF8),
    ],
)
def test_decode_without_json_object_raises_decode_error(
    value: bytes | None, reason: DecodeReason
) -> None:
    with pytest.raises(DecodeError) as refused:
        WatermarkRecord.decode(value)
    assert refused.value.reason is reason


def test_timeline_record_with_wrong_column_length_raises_value_error() -> None:
    times = PollTimes(1.0, 2.0)
    with pytest.raises(ValueError, match="1 values for 2 partitions"):
        WatermarkRecord(FLOW, Side.SOURCE, "t", None, "x", times, (0, 1), (1, 2), log_starts=(1,))
    with pytest.raises(ValueError, match="1 end offsets for 2 partitions"):
        WatermarkRecord(FLOW, Side.SOURCE, "t", None, "x", times, (0, 1), (1,))
    with pytest.raises(ValueError, match="both times of the previous poll, or none"):
        PollTimes(1.0, 2.0, 0.5, None)


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
