"""The report's Prometheus source, compared with a sample-by-sample count."""

from __future__ import annotations

import math
import random
import time
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import pytest
from monitoring import prometheus
from scraped_counters import Replica, brute_force, open_metrics

from mm2slo_core.catalogue import SLI_UNKNOWN_EVENTS_TOTAL
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.minute_counts import MINUTE_MS, Indicator, SpanCounts, Tally, counted
from mm2slo_core.sli_counters import Sli, SliKey
from mm2slo_core.topology import Flow
from mm2slo_report.recording.exposition import Page
from mm2slo_report.recording.replica_totals import ReplicaTotals
from mm2slo_report.sources.prometheus import PrometheusClient, PrometheusSource, Server
from mm2slo_report.sources.sli_source import SliSourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from minute_history import Minutes

    from mm2slo_report.sources.prometheus.api import Found

pytestmark = pytest.mark.xdist_group("monitoring")

HOUR: Final = 3_600_000
DAYS: Final = 26 * HOUR
SCRAPE: Final = 30_000
NOW: Final = int(time.time() * 1000) // HOUR * HOUR - 4 * HOUR + 17 * MINUTE_MS
START: Final = NOW - DAYS
OLD = Indicator(Flow("us", "eu"), SliKey(Sli.AVAILABILITY))
TIER = Indicator(Flow("us", "eu"), SliKey(Sli.LATENCY, "10s"))
YOUNG = Indicator(Flow("eu", "us"), SliKey(Sli.AVAILABILITY))
NEVER = Indicator(Flow("eu", "asia"), SliKey(Sli.AVAILABILITY))
SOLE = Indicator(Flow("us", "asia"), SliKey(Sli.COMPLETENESS))
MUTE = Indicator(Flow("asia", "africa"), SliKey(Sli.AVAILABILITY))
ALL = (OLD, TIER, YOUNG, SOLE, MUTE)
NAN = Indicator(Flow("asia", "eu"), SliKey(Sli.AVAILABILITY))
PARTIAL = Indicator(Flow("asia", "us"), SliKey(Sli.AVAILABILITY))


def scrapes(start: int, end: int, offset: int) -> range:
    return range(start + offset, end, SCRAPE)


@cache
def history() -> tuple[Replica, ...]:
    """Replicas with restarts within a minute and after an hour, gaps, and a new flow."""
    one, two, sole = Replica("a:9469"), Replica("b:9469"), Replica("c:9469")
    # The first sample of each has a value above 0, on a whole minute.
    stop, again = START + 5 * HOUR + 10_000, START + 5 * HOUR + 40_000
    one.run((OLD, TIER), scrapes(START, stop, 0), base=1000.0)
    one.run((OLD, TIER), scrapes(again // SCRAPE * SCRAPE, START + 9 * HOUR, 0), seed=2)
    # It counts during a gap of 2 h, and restarts during a gap of 90 minutes.
    one.run((OLD, TIER), scrapes(START + 9 * HOUR, START + 15 * HOUR, 0), seed=3, base=9e6)
    one.drop(START + 10 * HOUR, START + 12 * HOUR)
    one.run((OLD, TIER, YOUNG), scrapes(START + 16 * HOUR + 30 * MINUTE_MS, NOW, 0), seed=4)
    two.run((OLD, TIER), scrapes(START, NOW, 7_123), base=5.0)
    two.run((YOUNG,), scrapes(START + 17 * HOUR + 1_020_000, NOW, 7_123), seed=5)
    two.drop(START + 11 * HOUR, START + 13 * HOUR)
    two.drop(START + 20 * HOUR + 90_000, START + 20 * HOUR + 400_000, (TIER,))
    two.drop(NOW - 3 * MINUTE_MS, NOW)
    # It is scraped at the end of each minute, has gaps, and is restarted every 103 minutes:
    # once on the hour.
    for again in range(START, NOW, 103 * MINUTE_MS):
        sole.run((SOLE,), scrapes(again, min(again + 103 * MINUTE_MS, NOW), 29_999), seed=again)
    sole.drop(START + 3 * HOUR, START + 7 * HOUR)
    sole.drop(START + 8 * HOUR, START + 8 * HOUR + 9 * MINUTE_MS)
    # It has no start time, and its gaps are too short to show the restart.
    mute = Replica("e:9469")
    for again in range(START, NOW, 7 * HOUR + MINUTE_MS):
        mute.run((MUTE,), scrapes(again, min(again + 7 * HOUR, NOW), 11_000), seed=again)
    mute.started.clear()
    return one, two, sole, mute


@cache
def truth_of(indicator: Indicator) -> Minutes:
    return brute_force(history(), indicator)


def broken() -> Replica:
    """An exporter with non-numeric samples."""
    found = Replica("d:9469")
    found.run((NAN, PARTIAL), scrapes(NOW - HOUR, NOW, 3_000))
    for page in found.pages.values():
        page[NAN] = page[NAN]._replace(good=math.nan)
    return found


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("prometheus")
    lines = open_metrics([*history(), broken()]).splitlines(keepends=True)
    partial = f'{UNKNOWN}{{flow="{PARTIAL.flow.label}"'
    text = "".join(line for line in lines if not line.startswith(partial))
    with prometheus(folder, {}, history=text) as server:
        yield server.url


UNKNOWN: Final = SLI_UNKNOWN_EVENTS_TOTAL.name


def source(address: str, now: int = NOW) -> PrometheusSource:
    return PrometheusSource(PrometheusClient(Server(url=address)), clock=lambda: now)


@pytest.fixture(scope="module")
def warm_source(address: str) -> PrometheusSource:
    """A source that has read everything, because the first read is expensive."""
    found = source(address)
    found.counts(ALL, spans())
    return found


def spans() -> list[Span]:
    burns = [Span(NOW - minutes * MINUTE_MS, NOW) for minutes in (1, 5, 30, 60, 360, 1440)]
    odd = [
        Span(START - 26 * HOUR, START),
        Span(START - 28 * HOUR, NOW),
        Span(START + 5 * HOUR, START + 5 * HOUR + MINUTE_MS),
        Span(START + 10 * HOUR + 7 * MINUTE_MS, START + 12 * HOUR + MINUTE_MS),
        Span(START + 11 * HOUR + 7 * MINUTE_MS, START + 11 * HOUR + 9 * MINUTE_MS),
        Span(START + 16 * HOUR, START + 21 * HOUR + 3 * MINUTE_MS),
    ]
    return burns + odd


def test_source_counts_equal_sample_by_sample_count(warm_source: PrometheusSource) -> None:
    found = warm_source.counts(ALL, spans())
    for indicator in ALL:
        truth = truth_of(indicator)
        counts = found[indicator]
        assert not isinstance(counts, Exception)
        for span in spans():
            expected = truth.count(span)
            assert counts[span].minutes == expected.minutes, (indicator, span)
            assert counts[span].total == pytest.approx(expected.total, abs=1e-6), (indicator, span)
            assert counts[span].good == pytest.approx(expected.good, abs=1e-6)
            assert counts[span].unknown == pytest.approx(expected.unknown, abs=1e-6)


class RecordingClient(PrometheusClient):
    """Records its hourly range queries."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.asked: list[str] = []

    def query_range(self, expression: str, start: int, end: int, step: int) -> Sequence[Found]:
        if step == HOUR:
            self.asked.append(expression)
        return super().query_range(expression, start, end, step)


def test_only_series_without_start_time_are_searched_for_resets(address: str) -> None:
    client = RecordingClient(Server(url=address))
    PrometheusSource(client, clock=lambda: NOW).counts([OLD], [Span(START, NOW)])
    searched = [each for each in client.asked if each.startswith("resets(")]
    assert searched
    assert all('instance="e:9469"' in each for each in searched)
    assert any(each.startswith("changes(process_start_time_seconds") for each in client.asked)


def test_source_minutes_equal_sample_by_sample_minutes(warm_source: PrometheusSource) -> None:
    span = Span(START + 4 * HOUR, NOW)
    for indicator in ALL:
        minutes = warm_source.minutes(indicator, span)
        expected = truth_of(indicator).within(span)
        assert [each.at for each in minutes] == [each.at for each in expected]
        for one, other in zip(minutes, expected, strict=True):
            assert tuple(one) == pytest.approx(tuple(other), abs=1e-6)
        counts = warm_source.counts([indicator], [span])[indicator]
        assert not isinstance(counts, Exception)
        assert counted(minutes, span).total == pytest.approx(counts[span].total, abs=1e-6)


def test_incremental_reads_equal_first_read(address: str) -> None:
    clock = [START + 3 * HOUR]
    incremental = PrometheusSource(PrometheusClient(Server(url=address)), clock=lambda: clock[0])
    for hours in (3, 11.2, 16.6, 20.05):
        clock[0] = START + round(hours * 60) * MINUTE_MS
        asked = [Span(START - HOUR, clock[0]), Span(clock[0] - 3 * HOUR, clock[0])]
        expected = source(address, clock[0]).counts(ALL, asked)
        assert incremental.counts(ALL, asked) == expected


def test_recorder_counts_equal_source_counts(warm_source: PrometheusSource) -> None:
    sole = history()[2]
    pool = ReplicaTotals()
    ends = [START + hours * HOUR for hours in (1, 2, 5, 7, 8, 9, 20)]
    recorded: dict[int, Tally] = {}
    for at, page in sorted(sole.pages.items()):
        recorded |= {end: pool.tallies[SOLE] for end in ends if end <= at and end not in recorded}
        pool.add(at, {sole.instance: Page(page, sole.started[at])})
    asked = [Span(START, end) for end in ends]
    counts = warm_source.counts([SOLE], asked)[SOLE]
    assert not isinstance(counts, Exception)
    assert [counts[span].total for span in asked] == [recorded[end].total for end in ends]
    assert [counts[span].good for span in asked] == [recorded[end].good for end in ends]
    assert [counts[span].unknown for span in asked] == [recorded[end].unknown for end in ends]
    assert counts[asked[-1]].total > 10_000


def test_non_numeric_sample_is_reported_and_skipped(address: str) -> None:
    asked = source(address)
    span = Span(NOW - 30 * MINUTE_MS, NOW)
    found = asked.counts([NAN, PARTIAL, OLD], [span])
    assert str(found[NAN]) == (
        "Prometheus holds no number (NaN or infinite) for asia->eu availability all"
    )
    assert str(found[PARTIAL]) == (
        "Prometheus lacks one of the three counters of asia->us availability all"
    )
    counts = found[OLD]
    assert not isinstance(counts, Exception)
    assert counts[span] == truth_of(OLD).count(span)
    for each in (NAN, PARTIAL):
        with pytest.raises(SliSourceError):
            asked.minutes(each, span)


def test_unknown_series_counts_zero(warm_source: PrometheusSource) -> None:
    spans_ = [Span(NOW - HOUR, NOW), Span(START - HOUR, START)]
    assert warm_source.counts([NEVER], spans_) == {NEVER: dict.fromkeys(spans_, SpanCounts())}
    assert warm_source.minutes(NEVER, spans_[0]) == []


def test_missing_recording_rules_are_reported(address: str) -> None:
    (problem,) = source(address).rules_problems(["mm2-slo"])
    assert "has not loaded the group of rules mm2-slo" in problem


def test_known_series_have_first_sample_time(warm_source: PrometheusSource) -> None:
    assert set(warm_source.indicators()) == {*ALL, NAN, PARTIAL}
    assert warm_source.known_since([*ALL, NEVER]) == {
        OLD: START,
        TIER: START,
        YOUNG: START + 16 * HOUR + 30 * MINUTE_MS,
        SOLE: START,
        MUTE: START,
        NEVER: None,
    }


def test_retention_is_read_from_server(address: str) -> None:
    asked = source(address)
    assert asked.warnings(28 * 86_400.0) == ()
    (warning,) = asked.warnings(90 * 86_400.0)
    assert "for 35d, less than the window of 90d" in warning
    assert "--storage.tsdb.retention.time=97d" in warning


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_random_history_equals_sample_by_sample_count(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    flows = [Indicator(Flow("us", f"eu{n}"), SliKey(Sli.AVAILABILITY)) for n in range(4)]
    replicas = []
    for number in range(2):
        each, at = Replica(f"{number}:9469"), START + draw.randrange(3 * HOUR)
        while at < NOW:
            ends = min(at + draw.randrange(MINUTE_MS, 8 * HOUR), NOW)
            served = draw.sample(flows, draw.randrange(1, 5))
            start = at // SCRAPE * SCRAPE
            each.run(served, scrapes(start, ends, 1_000 * number), seed=at)
            if draw.random() < 0.5:
                gap = draw.randrange(at, ends)
                lacking = draw.choice((None, served[:1]))
                each.drop(gap, gap + draw.randrange(40 * MINUTE_MS), lacking)
            # A start within a scrape interval of the previous process is not distinguishable.
            at = ends + draw.choice((SCRAPE, 5 * MINUTE_MS, 3 * HOUR))
        replicas.append(each)
    edges = sorted({START + draw.randrange(26 * 60) * MINUTE_MS for _ in range(40)})
    asked = [Span(one, other) for one, other in pairwise(edges)] + [Span(edges[0], NOW)]
    with prometheus(tmp_path, {}, history=open_metrics(replicas)) as server:
        found = source(server.url).counts(flows, asked)
    for flow in flows:
        truth, counts = brute_force(replicas, flow), found[flow]
        assert not isinstance(counts, Exception)
        for span in asked:
            expected = truth.count(span)
            assert counts[span].minutes == expected.minutes, span
            assert counts[span].total == pytest.approx(expected.total, abs=1e-6), span
            assert counts[span].good == pytest.approx(expected.good, abs=1e-6), span
