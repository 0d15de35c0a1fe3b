"""prometheus_client and promtool parse both formats."""

import gzip
import subprocess
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_classic

from mm2slo_core.catalogue import ALL
from mm2slo_core.catalogue.metric import Metric, MetricType
from mm2slo_exporter.exposition_family import Family, Histogram
from mm2slo_exporter.exposition_renderer import Encoding, ExpositionFormat, Renderer

NASTY = st.one_of(
    st.sampled_from(["", "\\", '"', "\n", "\\n", '\\"', "{}", "a=b,c", " ", "}", "#", "# EOF"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
)
NUMBERS = st.one_of(
    st.integers(0, 2**63), st.floats(0, allow_nan=False, allow_infinity=True), st.just(5e-324)
)
Sample = tuple[str, frozenset[tuple[str, str]], float]


@st.composite
def a_family(draw: st.DrawFn, metric: Metric) -> Family:
    def value() -> float | Histogram:
        if metric.type is not MetricType.HISTOGRAM:
            return draw(NUMBERS)
        size = len(metric.buckets) + 1
        counts = draw(st.lists(st.integers(0, 1000), min_size=size, max_size=size))
        return Histogram.from_counts(counts, draw(st.floats(0, 1e9)))

    label_sets = draw(
        st.lists(
            st.tuples(*[NASTY for _ in metric.labels]),
            max_size=3 if metric.labels else 1,
            unique=True,
        )
    )
    return Family(metric, [(labels, value()) for labels in label_sets])


@st.composite
def some_families(draw: st.DrawFn) -> list[Family]:
    metrics = draw(st.lists(st.sampled_from(ALL), max_size=6, unique_by=lambda m: m.name))
    return [draw(a_family(metric)) for metric in metrics]


def expected(families: Sequence[Family]) -> set[Sample]:
    samples: set[Sample] = set()
    for family in families:
        metric = family.metric
        for values, value in family.series:
            labels = frozenset(zip(metric.labels, values, strict=True))
            if not isinstance(value, Histogram):
                samples.add((metric.name, labels, float(value)))
                continue
            bounds = [*map(str, metric.buckets), "+Inf"]
            for bound, count in zip(bounds, value.cumulative, strict=True):
                samples.add((f"{metric.name}_bucket", labels | {("le", bound)}, float(count)))
            samples.add((f"{metric.name}_sum", labels, value.sum))
            samples.add((f"{metric.name}_count", labels, float(value.count)))
    return samples


def read_back(text: str, fmt: ExpositionFormat) -> set[Sample]:
    parse = parse_openmetrics if fmt is ExpositionFormat.OPENMETRICS else parse_classic
    return {
        (sample.name, frozenset(sample.labels.items()), float(sample.value))
        for family in parse(text)
        for sample in family.samples
    }


@given(some_families())
@pytest.mark.parametrize("fmt", ExpositionFormat)
def test_rendered_samples_are_parsed_unchanged(
    fmt: ExpositionFormat, families: list[Family]
) -> None:
    snapshot = Renderer().render(families)
    text = b"".join(snapshot.body(fmt, Encoding.IDENTITY).chunks).decode()
    assert read_back(text, fmt) == expected(families)
    packed = b"".join(snapshot.body(fmt, Encoding.GZIP).chunks)
    assert gzip.decompress(packed).decode() == text


def every_metric() -> list[Family]:
    families = []
    for metric in ALL:
        value: float | Histogram = 1
        if metric.type is MetricType.HISTOGRAM:
            value = Histogram((1,) * (len(metric.buckets) + 1), 0.5)
        families.append(Family(metric, [(tuple("x" for _ in metric.labels), value)]))
    return families


def test_openmetrics_parser_reads_type_and_unit_of_every_metric() -> None:
    body = Renderer().render(every_metric()).body(ExpositionFormat.OPENMETRICS, Encoding.IDENTITY)
    text = b"".join(body.chunks).decode()
    parsed = parse_openmetrics(text)  # type: ignore[no-untyped-call]  # the library has no types
    families = {f.name: (f.type, f.unit) for f in parsed}
    assert families == {m.family_name: (m.type.value, m.unit) for m in ALL}


def test_promtool_check_metrics_accepts_every_metric() -> None:
    body = Renderer().render(every_metric()).body(ExpositionFormat.CLASSIC, Encoding.IDENTITY)
    done = subprocess.run(
        ["promtool", "check", "metrics"],
        input=b"".join(body.chunks),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout.decode(), done.stderr.decode()) == (0, "", "")
