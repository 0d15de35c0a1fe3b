"""The exact bytes of an exposition."""

import gzip
import math
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from operator import is_
from typing import Any

import pytest

from mm2slo_core.catalogue.flow_metrics import (
    CANARY_LATENCY_SECONDS,
    FLOW_LAG_SECONDS,
    FLOW_STATE,
    HEARTBEATS_RECEIVED_TOTAL,
    PARTITION_STALLED,
    REPLICATION_LAG_RECORDS,
)
from mm2slo_core.catalogue.metric import Granularity, Metric, MetricType
from mm2slo_core.catalogue.service_metrics import EXPORTER_COLLECT_ERRORS_TOTAL, EXPORTER_SERIES
from mm2slo_exporter.exposition_family import ExpositionError, Family, Histogram, count_series
from mm2slo_exporter.exposition_renderer import (
    Encoding,
    ExpositionFormat,
    Piece,
    Renderer,
    Snapshot,
)

FLOW = ("us->eu", "us", "eu")


def plain(snapshot: Snapshot, fmt: ExpositionFormat) -> str:
    return b"".join(snapshot.body(fmt, Encoding.IDENTITY).chunks).decode()


def rendered(*families: Family, fmt: ExpositionFormat = ExpositionFormat.CLASSIC) -> str:
    return plain(Renderer().render(families), fmt)


EXAMPLES = (
    Family(HEARTBEATS_RECEIVED_TOTAL, [(FLOW, 7)]),
    Family(FLOW_LAG_SECONDS, [(FLOW, 0.1)]),
    Family(EXPORTER_SERIES, [((), 2)]),
)


def test_render_classic_text_format() -> None:
    assert rendered(*EXAMPLES) == (
        "# HELP mm2_heartbeats_received_total Heartbeats that arrived on the target.\n"
        "# TYPE mm2_heartbeats_received_total counter\n"
        'mm2_heartbeats_received_total{flow="us->eu",source="us",target="eu"} 7\n'
        "# HELP mm2_flow_lag_seconds Age of the oldest source record that the flow has not yet"
        " replicated; 0 without lag.\n"
        "# TYPE mm2_flow_lag_seconds gauge\n"
        'mm2_flow_lag_seconds{flow="us->eu",source="us",target="eu"} 0.1\n'
        "# HELP mm2_exporter_series Series in the latest snapshot, including this one.\n"
        "# TYPE mm2_exporter_series gauge\n"
        "mm2_exporter_series 2\n"
    )


def test_render_openmetrics_format() -> None:
    assert rendered(*EXAMPLES, fmt=ExpositionFormat.OPENMETRICS) == (
        "# HELP mm2_heartbeats_received Heartbeats that arrived on the target.\n"
        "# TYPE mm2_heartbeats_received counter\n"
        'mm2_heartbeats_received_total{flow="us->eu",source="us",target="eu"} 7\n'
        "# HELP mm2_flow_lag_seconds Age of the oldest source record that the flow has not yet"
        " replicated; 0 without lag.\n"
        "# TYPE mm2_flow_lag_seconds gauge\n"
        "# UNIT mm2_flow_lag_seconds seconds\n"
        'mm2_flow_lag_seconds{flow="us->eu",source="us",target="eu"} 0.1\n'
        "# HELP mm2_exporter_series Series in the latest snapshot, including this one.\n"
        "# TYPE mm2_exporter_series gauge\n"
        "mm2_exporter_series 2\n"
        "# EOF\n"
    )


def test_render_histogram_buckets_sum_and_count() -> None:
    counts = [0, 1, *[0] * 14, 2]
    value = Histogram.from_counts(counts, 901.5)
    lines = rendered(Family(CANARY_LATENCY_SECONDS, [((*FLOW, "topic"), value)])).splitlines()[2:]
    labels = 'flow="us->eu",source="us",target="eu",carrier="topic"'
    assert len(lines) == 19
    assert lines[0] == f'mm2_canary_latency_seconds_bucket{{{labels},le="0.005"}} 0'
    assert lines[1] == f'mm2_canary_latency_seconds_bucket{{{labels},le="0.01"}} 1'
    assert lines[10] == f'mm2_canary_latency_seconds_bucket{{{labels},le="10.0"}} 1'
    assert lines[16:] == [
        f'mm2_canary_latency_seconds_bucket{{{labels},le="+Inf"}} 3',
        f"mm2_canary_latency_seconds_sum{{{labels}}} 901.5",
        f"mm2_canary_latency_seconds_count{{{labels}}} 3",
    ]
    assert value.count == 3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (9007199254740993, "9007199254740993"),
        (10**400, "1" + "0" * 400),
        (0.1, "0.1"),
        (1e16, "1e+16"),
        (1699999999.123, "1699999999.123"),
        (-3, "-3"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
    ],
)
def test_render_values_exactly(value: float, text: str) -> None:
    assert rendered(Family(EXPORTER_SERIES, [((), value)])).splitlines()[-1] == (
        f"mm2_exporter_series {text}"
    )


def test_render_finite_values_next_to_infinity_exactly() -> None:
    series = [((*FLOW, "a"), math.inf), ((*FLOW, "b"), 3), ((*FLOW, "c"), 0.25)]
    values = [line.rsplit(" ")[-1] for line in rendered(Family(FLOW_STATE, series)).splitlines()]
    assert values[2:] == ["+Inf", "3", "0.25"]


def test_render_escapes_label_values() -> None:
    nasty = 'a\\b"c\nd\te{},= é'
    text = rendered(Family(FLOW_STATE, [((*FLOW, nasty), 1)]))
    assert text.endswith(',state="a\\\\b\\"c\\nd\te{},= é"} 1\n')


def test_render_uses_labels_of_granularity() -> None:
    by_topic = Family(REPLICATION_LAG_RECORDS, [((*FLOW, "t"), 5)], Granularity.TOPIC)
    assert rendered(by_topic).endswith(
        'mm2_replication_lag_records{flow="us->eu",source="us",target="eu",topic="t"} 5\n'
    )
    by_partition = Family(REPLICATION_LAG_RECORDS, [((*FLOW, "t", "0"), 5)])
    assert rendered(by_partition).endswith('topic="t",partition="0"} 5\n')


def test_render_merges_families_of_one_metric() -> None:
    other = ("eu->us", "eu", "us")
    text = rendered(
        Family(FLOW_LAG_SECONDS, [(FLOW, 1)]),
        Family(EXPORTER_SERIES, [((), 3)]),
        Family(FLOW_LAG_SECONDS, [(other, 2)]),
    )
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert samples == [
        'mm2_flow_lag_seconds{flow="us->eu",source="us",target="eu"} 1',
        'mm2_flow_lag_seconds{flow="eu->us",source="eu",target="us"} 2',
        "mm2_exporter_series 3",
    ]


def test_render_omits_family_without_series() -> None:
    assert rendered(Family(FLOW_LAG_SECONDS, [])) == ""
    assert rendered(Family(FLOW_LAG_SECONDS, []), fmt=ExpositionFormat.OPENMETRICS) == "# EOF\n"


ROGUE = Metric(name="mm2_rogue", type=MetricType.GAUGE, help="Not declared.")
TEXT: Any = "1"
THREE: Any = 3
SUM_OF_NAN = Histogram((0,) * 17, math.nan)


@pytest.mark.parametrize(
    ("families", "complaint"),
    [
        ([Family(ROGUE, [((), 1)])], r"mm2_rogue is not in the metrics catalogue"),
        ([Family(FLOW_LAG_SECONDS, [(("us->eu",), 1)])], r"takes 3 label values .*, got 1"),
        ([Family(FLOW_LAG_SECONDS, [(FLOW, 1), (FLOW, 2)])], r"has two values for .*'us->eu'"),
        (
            [Family(FLOW_LAG_SECONDS, [(FLOW, 1)]), Family(FLOW_LAG_SECONDS, [(FLOW, 1)])],
            r"has two values for",
        ),
        ([Family(FLOW_LAG_SECONDS, [(FLOW, math.nan)])], r"mm2_flow_lag_seconds has the value NaN"),
        ([Family(FLOW_LAG_SECONDS, [(FLOW, True)])], r"must have numeric values, got True"),
        ([Family(FLOW_LAG_SECONDS, [(FLOW, TEXT)])], r"must have numeric values, got '1'"),
        ([Family(HEARTBEATS_RECEIVED_TOTAL, [(FLOW, -1)])], r"must not be negative, got -1"),
        (
            [Family(FLOW_STATE, [((*FLOW, THREE), 1)])],
            r"not text: .*expected str instance, int found",
        ),
        ([Family(FLOW_STATE, [((*FLOW, "\ud800"), 1)])], r"not text: .*surrogates not allowed"),
        ([Family(CANARY_LATENCY_SECONDS, [((*FLOW, "topic"), 1)])], r"takes a Histogram of 17"),
        (
            [Family(CANARY_LATENCY_SECONDS, [((*FLOW, "topic"), Histogram((1,), 1))])],
            r"takes a Histogram of 17 counts",
        ),
        ([Family(CANARY_LATENCY_SECONDS, [((*FLOW, "topic"), SUM_OF_NAN)])], r"has the value NaN"),
        (
            [Family(PARTITION_STALLED, [((*FLOW, "t"), 1)], Granularity.TOPIC)],
            r"not published at granularity topic",
        ),
        (
            [
                Family(REPLICATION_LAG_RECORDS, [((*FLOW, "t"), 5)], Granularity.TOPIC),
                Family(REPLICATION_LAG_RECORDS, [((*FLOW, "t", "0"), 5)]),
            ],
            r"has two granularities: topic and partition",
        ),
    ],
)
def test_render_invalid_family_raises(families: list[Family], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Renderer().render(families)


@pytest.mark.parametrize("cumulative", [(), (2, 1), (-1, 1)])
def test_histogram_with_decreasing_counts_raises(cumulative: tuple[int, ...]) -> None:
    with pytest.raises(ExpositionError, match="must not be negative or decrease"):
        Histogram(cumulative, 1.0)


def test_render_duplicate_series_raises_each_time() -> None:
    renderer = Renderer()
    twice = [Family(FLOW_LAG_SECONDS, [(FLOW, 1), (FLOW, 2)])]
    for _ in range(2):
        with pytest.raises(ExpositionError):
            renderer.render(twice)


def test_count_series_counts_histogram_lines() -> None:
    histogram = Histogram((0,) * 17, 0.0)
    families = [*EXAMPLES, Family(CANARY_LATENCY_SECONDS, [((*FLOW, "topic"), histogram)])]
    assert count_series(families) == 3 + 19
    snapshot = Renderer().render(families)
    assert snapshot.series == 22
    lines = plain(snapshot, ExpositionFormat.CLASSIC).splitlines()
    assert sum(not line.startswith("#") for line in lines) == 22


def test_render_formats_and_encodings_share_samples() -> None:
    errors = [((cluster, "ends", "timeout"), 1) for cluster in ("us", "eu")]
    snapshot = Renderer().render([*EXAMPLES, Family(EXPORTER_COLLECT_ERRORS_TOTAL, errors)])
    for fmt in ExpositionFormat:
        packed = b"".join(snapshot.body(fmt, Encoding.GZIP).chunks)
        assert gzip.decompress(packed).decode() == plain(snapshot, fmt)
        assert snapshot.body(fmt, Encoding.GZIP).length == len(packed)
    for encoding in Encoding:
        chunks = [snapshot.body(fmt, encoding).chunks for fmt in ExpositionFormat]
        shared = {id(chunk) for chunk in chunks[0]} & {id(chunk) for chunk in chunks[1]}
        assert len(shared) >= 4


def test_render_gzip_body_is_one_member() -> None:
    packed = b"".join(
        Renderer().render(EXAMPLES).body(ExpositionFormat.CLASSIC, Encoding.GZIP).chunks
    )
    member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    member.decompress(packed)
    assert member.eof
    assert member.unused_data == b""


@pytest.mark.parametrize("content", [b"", b"mm2_flow_info 1\n", b"mm2_flow_info 1\n" * 10_000])
def test_piece_gives_back_its_content_without_keeping_it(content: bytes) -> None:
    piece = Piece.of(content)
    assert (piece.plain, piece.size) == (content, len(content))
    assert sum(map(sys.getsizeof, piece)) < 2_000


@pytest.mark.parametrize("fmt", list(ExpositionFormat))
def test_clients_share_one_plain_body(fmt: ExpositionFormat) -> None:
    snapshot = Renderer().render(EXAMPLES)
    with ThreadPoolExecutor(4) as clients:
        found = list(clients.map(lambda _: snapshot.body(fmt, Encoding.IDENTITY), range(8)))
    for body in found[1:]:
        assert all(map(is_, body.chunks, found[0].chunks))
