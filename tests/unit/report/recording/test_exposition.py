"""Parsing the SLI counters and the process start time of a page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorder_fakes import AVAILABILITY, LATENCY, exposition

from mm2slo_core.catalogue.flow_metrics import (
    SLI_EVENTS_TOTAL,
    SLI_GOOD_EVENTS_TOTAL,
    SLI_UNKNOWN_EVENTS_TOTAL,
)
from mm2slo_core.catalogue.service_metrics import PROCESS_START_TIME_SECONDS
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.reporting.step_counts import Indicator, Tally
from mm2slo_core.topology import Flow
from mm2slo_exporter.exposition_family import Family
from mm2slo_exporter.exposition_renderer import Encoding, ExpositionFormat, Renderer
from mm2slo_report.recording.scraped_counters import InvalidExpositionError, Page, read_page

LABELS = 'flow="us->eu",source="us",target="eu",sli="availability",tier="all"'


def read(text: str, *, openmetrics: bool = False) -> Page:
    return read_page([text.encode()], openmetrics=openmetrics)


def three(labels: str = LABELS, good: str = "3", total: str = "4", unknown: str = "1") -> str:
    return (
        f"mm2_sli_good_events_total{{{labels}}} {good}\n"
        f"mm2_sli_events_total{{{labels}}} {total}\n"
        f"mm2_sli_unknown_events_total{{{labels}}} {unknown}\n"
    )


def test_read_page_returns_counters_and_process_start() -> None:
    text = exposition({AVAILABILITY: (3, 4, 1), LATENCY: (2, 4, 1)}, started=1.8e9, others=1000)
    assert read(text) == Page(
        tallies={AVAILABILITY: Tally(3, 4, 1), LATENCY: Tally(2, 4, 1)},
        started=1_800_000_000_000,
    )


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n"), min_size=1)


@given(
    aliases=st.lists(st.tuples(NAMES, NAMES), max_size=4, unique=True),
    counts=st.tuples(st.integers(0, 2**53), st.integers(0, 2**53), st.floats(0, 1e300)),
    form=st.sampled_from(ExpositionFormat),
    size=st.integers(1, 400),
)
def test_read_page_parses_exporter_output_in_chunks_of_any_size(
    aliases: list[tuple[str, str]],
    counts: tuple[int, int, float],
    form: ExpositionFormat,
    size: int,
) -> None:
    keys = [SliKey(Sli.LATENCY, 'a"b\\n}'), SliKey(Sli.ORDER)]
    indicators = [Indicator(Flow(*each), key) for each in aliases for key in keys]
    series = [
        (each.flow.label, each.flow.source, each.flow.target, str(each.key.sli), each.key.tier)
        for each in indicators
    ]
    families = [Family(PROCESS_START_TIME_SECONDS, [((), 1.5)])]
    metrics = (SLI_GOOD_EVENTS_TOTAL, SLI_EVENTS_TOTAL, SLI_UNKNOWN_EVENTS_TOTAL)
    for metric, value in zip(metrics, counts, strict=True):
        families.append(Family(metric, [(labels, value) for labels in series]))
    body = b"".join(Renderer().render(families).body(form, Encoding.IDENTITY).chunks)
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    page = read_page(chunks, openmetrics=form is ExpositionFormat.OPENMETRICS)
    assert page == Page(tallies=dict.fromkeys(indicators, Tally(*counts)), started=1500)


@pytest.mark.parametrize(
    "text",
    [
        three().replace(",", " , ").replace('="', ' = "').replace("{", " {"),
        three().replace(" 3\n", " 3 1700000000000\n").replace(" 4\n", " 4\t1.7e9\n"),
        three().replace(" 4\n", ' 4 # {trace="} 9"} 1 1.5\n'),
        three(LABELS + ","),
        three('instance="a",' + LABELS).replace("\n", "\r\n"),
        "\n\n" + three(),
    ],
    ids=["spaces", "timestamps", "exemplar", "comma", "more labels", "blank lines"],
)
def test_read_page_accepts_every_sample_syntax(text: str) -> None:
    assert read(text).tallies == {AVAILABILITY: Tally(3, 4, 1)}


@pytest.mark.parametrize(
    "text",
    [
        three(LABELS.replace("availability", "beauty")),
        three(LABELS.replace('source="us"', 'source=""')),
        three(LABELS.replace(',target="eu"', "")),
        three(total="NaN"),
        three(good="+Inf"),
        three(unknown="-1"),
        three().partition("\n")[2],
    ],
    ids=["unknown", "no source", "no target", "NaN", "Inf", "negative", "no good"],
)
def test_read_page_leaves_out_unknown_or_incomplete_indicators(text: str) -> None:
    assert read(text) == Page(tallies={})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "the page is empty"),
        ("<!DOCTYPE html>\n<html></html>\n", "invalid sample line: '<!DOCTYPE html>'"),
        ("hello\n", "invalid sample line: 'hello'"),
        ("hello world\n", "invalid sample line: 'hello world'"),
        ('{"status": "ok"}\n', "invalid sample line"),
        (three()[:-1], "the page is truncated"),
        (three(good="3x"), "invalid sample line"),
        (three(good="1_000"), "invalid sample line"),
        (three(LABELS + ',x="'), "invalid"),
        (
            three() + three(),
            "duplicate series of mm2_sli_good_events_total for us->eu availability",
        ),
        (three().replace(" 3\n", "\n"), "invalid sample line"),
    ],
)
def test_read_page_invalid_text_raises_error(text: str, expected: str) -> None:
    with pytest.raises(InvalidExpositionError) as refused:
        read(text)
    assert expected in str(refused.value)


@pytest.mark.parametrize("cut", [1, 4, 5, 6, 7, 40])
def test_read_page_truncated_openmetrics_raises_error(cut: int) -> None:
    text = exposition({AVAILABILITY: (3, 4, 1)})
    assert read(text[:-1], openmetrics=True).tallies, "the end of the last line may be missing"
    with pytest.raises(InvalidExpositionError, match="is truncated"):
        read(text[: -1 - cut], openmetrics=True)


def test_read_page_non_utf_8_and_endless_lines_raise_errors() -> None:
    with pytest.raises(InvalidExpositionError, match="not UTF-8"):
        read_page([b"# a\nmm2_sli_events_total{\xff} 1\n"])
    with pytest.raises(InvalidExpositionError, match="longer than"):
        read_page(b"# " + b"x" * 65536 for _ in range(100))
