"""What is read of a page: the indicators' counters and when they started, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import AVAILABILITY, LATENCY, exposition

from mm2slo_core.catalogue import (
    PROCESS_START_TIME_SECONDS,
    SLI_EVENTS_TOTAL,
    SLI_GOOD_EVENTS_TOTAL,
    SLI_UNKNOWN_EVENTS_TOTAL,
)
from mm2slo_core.reporting.history import Indicator, Tally
from mm2slo_core.sli import Sli, SliKey
from mm2slo_core.topology import Flow
from mm2slo_exporter.exposition import Encoding, Family, Format, Renderer
from mm2slo_report.recording.exposition import InvalidExpositionError, Page, read_page

LABELS = 'flow="us->eu",source="us",target="eu",sli="availability",tier="all"'


def read(text: str, *, openmetrics: bool = False) -> Page:
    return read_page([text.encode()], openmetrics=openmetrics)


def three(labels: str = LABELS, good: str = "3", total: str = "4", unknown: str = "1") -> str:
    return (
        f"mm2_sli_good_events_total{{{labels}}} {good}\n"
        f"mm2_sli_events_total{{{labels}}} {total}\n"
        f"mm2_sli_unknown_events_total{{{labels}}} {unknown}\n"
    )


def test_takes_the_three_counters_of_each_indicator_and_when_the_process_began() -> None:
    text = exposition({AVAILABILITY: (3, 4, 1), LATENCY: (2, 4, 1)}, started=1.8e9, others=1000)
    assert read(text) == Page(
        tallies={AVAILABILITY: Tally(3, 4, 1), LATENCY: Tally(2, 4, 1)},
        started=1_800_000_000_000,
    )


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n"), min_size=1)


@given(
    aliases=st.lists(st.tuples(NAMES, NAMES), max_size=4, unique=True),
    counts=st.tuples(st.integers(0, 2**53), st.integers(0, 2**53), st.floats(0, 1e300)),
    form=st.sampled_from(Format),
    size=st.integers(1, 400),
)
def test_reads_back_what_the_exporter_renders_in_chunks_of_any_size(
    aliases: list[tuple[str, str]],
    counts: tuple[int, int, float],
    form: Format,
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
    page = read_page(chunks, openmetrics=form is Format.OPENMETRICS)
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
def test_reads_every_form_of_a_sample_line(text: str) -> None:
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
def test_leaves_out_an_indicator_that_is_unknown_or_has_no_three_counts(text: str) -> None:
    assert read(text) == Page(tallies={}, left_out=1)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the page is empty"),
        ("<!DOCTYPE html>\n<html></html>\n", "a line is no sample: '<!DOCTYPE html>'"),
        ("hello\n", "a line is no sample: 'hello'"),
        ("hello world\n", "'world' is no number"),
        ('{"status": "ok"}\n', "a line is no sample"),
        (three()[:-1], "the page ends too early"),
        (three(good="3x"), "'3x' is no number"),
        (three(good="1_000"), "'1_000' is no number"),
        (three(LABELS + ',x="\\y"'), "these are no labels"),
        (three(LABELS + ',x="'), "is no"),
        (three() + three(), "is there twice for us->eu availability"),
        (three().replace(" 3\n", "\n"), "a line is no sample"),
    ],
)
def test_refuses_what_is_no_exposition(text: str, complaint: str) -> None:
    with pytest.raises(InvalidExpositionError) as refused:
        read(text)
    assert complaint in str(refused.value)


@pytest.mark.parametrize("cut", [1, 4, 5, 6, 7, 40])
def test_refuses_a_page_in_openmetrics_that_was_cut_off(cut: int) -> None:
    text = exposition({AVAILABILITY: (3, 4, 1)})
    assert read(text[:-1], openmetrics=True).tallies, "the end of the last line may be missing"
    with pytest.raises(InvalidExpositionError, match="ends too early"):
        read(text[: -1 - cut], openmetrics=True)


def test_refuses_octets_that_are_no_text_and_lines_without_an_end() -> None:
    with pytest.raises(InvalidExpositionError, match="no UTF-8"):
        read_page([b"# a\nmm2_sli_events_total{\xff} 1\n"])
    with pytest.raises(InvalidExpositionError, match="longer than"):
        read_page(b"# " + b"x" * 65536 for _ in range(100))
