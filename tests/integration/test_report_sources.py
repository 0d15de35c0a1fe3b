"""Recorder, Prometheus source and recording rules, compared with a count event by event."""

import math
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from minute_history import Minutes
from monitoring import prometheus
from rule_reference import Counters, Sample, step

from mm2slo_core.catalogue.prometheus_series import (
    BAD_STEP,
    EVENTS_STEP,
    EXCLUDED_STEP,
    UNKNOWN_STEP,
)
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting import slo_report
from mm2slo_core.reporting.step_counts import (
    MINUTE_MS,
    Indicator,
    SpanCounts,
    Tally,
    count_span,
    whole_minute,
)
from mm2slo_core.topology import Flow
from mm2slo_report.http_session import Server
from mm2slo_report.prometheus_api import PrometheusClient
from mm2slo_report.prometheus_source import PrometheusSource
from mm2slo_report.recording.recorder_history import RecorderSource
from mm2slo_report.recording.scraped_counters import Page, StepAccumulator
from mm2slo_report.sli_source import SliSource, SliSourceError
from mm2slo_store.store import Store

pytestmark = pytest.mark.xdist_group("monitoring")

PER_SCRAPE: Final = 15
"""Events between two scrapes, as of canaries: extrapolation is exact at an even rate."""


@dataclass
class Replica:
    """One process of the exporter, with its successful scrapes."""

    instance: str
    pages: dict[int, dict[Indicator, Tally]] = field(default_factory=dict)
    started: dict[int, int] = field(default_factory=dict)
    """Process start time (epoch ms) by scrape."""

    def run(
        self,
        indicators: Sequence[Indicator],
        scrapes: Iterable[int],
        *,
        seed: int = 1,
        base: float = 0.0,
    ) -> None:
        """Run a process that starts with *base* events of each kind; *scrapes* are epoch ms."""
        draw = random.Random(f"{self.instance}{seed}")
        values = dict.fromkeys(indicators, Tally(base, base, base))
        started = None
        for at in scrapes:
            started = at if started is None else started
            self.started.setdefault(at, started)
            for each, (good, total, unknown) in values.items():
                events = PER_SCRAPE
                bad = int(draw.random() < 0.05)
                values[each] = Tally(
                    good + events - bad, total + events, unknown + (draw.random() < 0.02)
                )
            self.pages.setdefault(at, {}).update(values)

    def drop(self, start: int, end: int, indicators: Iterable[Indicator] | None = None) -> None:
        """Drop the scrapes of [start, end), or *indicators* from their pages."""
        dropped = None if indicators is None else set(indicators)
        for at in [each for each in self.pages if start <= each < end]:
            if dropped is None:
                del self.pages[at]
            else:
                self.pages[at] = {
                    one: tally for one, tally in self.pages[at].items() if one not in dropped
                }


def brute_force(replicas: Sequence[Replica], indicator: Indicator) -> Minutes:
    """The events of each minute, averaged over the replicas with samples for the whole time."""
    grown = [dict(_growths(each, indicator)) for each in replicas]
    found = Minutes()
    last: dict[int, int] = {}
    counted: int | None = None
    for minute in sorted({at for each in grown for at in each}):
        present = [place for place, each in enumerate(grown) if minute in each]
        fresh = [place for place in present if last.get(place) == counted]
        shares = dict.fromkeys(fresh, 1.0)
        if not fresh and counted is not None:
            shares = {
                place: (minute - counted) / (minute - last[place])
                for place in present
                if place in last
            } or dict.fromkeys(present, 1.0)
        sums = [
            sum(grown[place][minute][column] * share for place, share in shares.items())
            / len(shares)
            for column in range(3)
        ]
        found.counted[minute] = (sums[0], sums[1], sums[2])
        last |= dict.fromkeys(present, minute)
        counted = minute
    return found


def _growths(replica: Replica, indicator: Indicator) -> Iterator[tuple[int, Tally]]:
    """Increases since the previous sample, by minute with a sample."""
    before: Tally | None = None
    process_start: int | None = None
    started = min(replica.pages, default=0) - MINUTE_MS
    sums: dict[int, list[float]] = {}
    first_page = whole_minute(started + MINUTE_MS)
    for at, page in sorted(replica.pages.items()):
        if indicator not in page:
            continue
        now, minute = page[indicator], whole_minute(at)
        if before is None:
            # Earlier pages lacked it, so it started at zero.
            before = now if minute == first_page else Tally()
        restarted = process_start is not None and replica.started.get(at) not in {
            None,
            process_start,
        }
        process_start = replica.started.get(at)
        if restarted or any(new < old for new, old in zip(now, before, strict=True)):
            before = Tally()
        grown = sums.setdefault(minute, [0.0, 0.0, 0.0])
        for column in range(3):
            grown[column] += now[column] - before[column]
        before = now
    for minute, (good, total, unknown) in sums.items():
        yield minute, Tally(good, total, unknown)


HOUR: Final = 3_600_000
STEP: Final = 300_000
SCRAPE: Final = 15_000
NOW: Final = int(time.time() * 1000) // HOUR * HOUR - 4 * HOUR
START: Final = NOW - 26 * HOUR
AVAILABLE = Indicator(Flow("us", "eu"), SliKey(Sli.AVAILABILITY))
YOUNG = Indicator(Flow("eu", "us"), SliKey(Sli.LATENCY, "10s"))
NEVER = Indicator(Flow("eu", "asia"), SliKey(Sli.AVAILABILITY))
NAN = Indicator(Flow("asia", "eu"), SliKey(Sli.AVAILABILITY))
YOUNG_SINCE: Final = START + 17 * HOUR
PHASED: Final = {
    phase: Indicator(Flow("us", f"at-{phase}"), SliKey(Sli.AVAILABILITY))
    for phase in range(0, STEP, 30_000)
}
"""Indicators of rule groups that Prometheus evaluates so long after a multiple of five minutes."""
MIDNIGHT: Final = NOW // (24 * HOUR) * (24 * HOUR)
GAP: Final = Span(START + 10 * HOUR, START + 12 * HOUR)
MISSED: Final = START + 20 * HOUR
"""An evaluation of the rules that Prometheus missed."""


@cache
def history() -> tuple[Replica, ...]:
    """Two replicas: a restart of one, and two hours in which no exporter ran."""
    one, two = Replica("a:9469"), Replica("b:9469")
    restart = START + 5 * HOUR + 40_000
    for replica, offset in ((one, 0), (two, 7_123)):
        both = (AVAILABLE,)
        first_end = restart if replica is one else GAP.start
        replica.run(both, range(START + offset, first_end, SCRAPE), base=1000.0)
        if replica is one:
            replica.run(both, range(restart + 20_000, GAP.start, SCRAPE), seed=2)
        replica.run(both, range(GAP.end + offset, YOUNG_SINCE, SCRAPE), seed=3)
        replica.run((AVAILABLE, YOUNG), range(YOUNG_SINCE + offset, NOW + 1, SCRAPE), seed=4)
    return one, two


def counters(replica: Replica, indicator: Indicator) -> Counters:
    pages = [
        (at, page[indicator]) for at, page in sorted(replica.pages.items()) if indicator in page
    ]
    return Counters(
        good=[Sample(at, tally.good) for at, tally in pages],
        total=[Sample(at, tally.total) for at, tally in pages],
        unknown=[Sample(at, tally.unknown) for at, tally in pages],
    )


def recorded_steps() -> str:
    """What the recording rules record of the counters, by their reference."""
    lines = []
    for indicator in (AVAILABLE, YOUNG):
        found = [counters(each, indicator) for each in history()]
        for at in range(START + STEP, NOW + 1, STEP):
            made = step(found, at)
            if made.counts is None or at == MISSED:
                continue
            values = ((EVENTS_STEP, made.counts.events), (BAD_STEP, made.counts.bad))
            for series, value in (*values, (UNKNOWN_STEP, made.unknown or 0.0)):
                lines.append(f"{series.name}{{{labels(indicator)}}} {value!r} {at / 1000:.3f}")
    for phase, indicator in PHASED.items():
        for number, at in enumerate(range(MIDNIGHT - 2 * HOUR + phase, NOW + 1, STEP)):
            for series, value in ((EVENTS_STEP, 300 + number), (BAD_STEP, number)):
                lines.append(f"{series.name}{{{labels(indicator)}}} {value} {at / 1000:.3f}")
    lines.append(f"{EVENTS_STEP.name}{{{labels(NAN)}}} NaN {NOW / 1000:.3f}")
    lines.append(f"{EXCLUDED_STEP.name}{{{labels(AVAILABLE)}}} 77 {MISSED / 1000:.3f}")
    # One series after the other.
    return "\n".join([*sorted(lines, key=lambda line: line.split(" ")[0]), "# EOF", ""])


def labels(indicator: Indicator) -> str:
    flow, key = indicator
    return (
        f'flow="{flow.label}",source="{flow.source}",target="{flow.target}",'
        f'sli="{key.sli}",tier="{key.tier}"'
    )


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusSource]:
    folder = tmp_path_factory.mktemp("prometheus")
    with prometheus(folder, {}, history=recorded_steps()) as server:
        yield PrometheusSource(PrometheusClient(Server(url=server.url)), clock=lambda: NOW)


def record(store: Store) -> None:
    """What the recorder stores of the same scrapes; it did not run during MISSED."""
    rounds: dict[int, dict[str, Page]] = {}
    for replica in history():
        for at, page in replica.pages.items():
            # Both replicas are scraped in one round.
            rounds.setdefault(at // SCRAPE * SCRAPE, {})[replica.instance] = Page(
                tallies=page, started=replica.started[at]
            )
    steps = StepAccumulator()
    for at, pages in sorted(rounds.items()):
        if MISSED - STEP <= at < MISSED:
            continue
        ended = steps.add(at, pages)
        if ended is not None:
            store.record_step(*ended)


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecorderSource]:
    path: Path = tmp_path_factory.mktemp("recorder") / "results.db"
    with Store.open(path) as store:
        record(store)
        yield RecorderSource(store)


@pytest.fixture(params=["prometheus", "recorder"])
def either(
    request: pytest.FixtureRequest, source: PrometheusSource, recorder: RecorderSource
) -> SliSource:
    return source if request.param == "prometheus" else recorder


def counts_of(source: SliSource, indicator: Indicator, span: Span) -> SpanCounts:
    counts = source.counts([indicator, NEVER], [span])[indicator]
    assert not isinstance(counts, SliSourceError)
    return counts[span]


@pytest.mark.parametrize("indicator", [AVAILABLE, YOUNG], ids=["available", "young"])
def test_steps_are_within_the_events_of_one_scrape(either: SliSource, indicator: Indicator) -> None:
    truth = brute_force(history(), indicator)
    found = either.steps(indicator, Span(START, NOW))
    disturbed = [START, START + 5 * HOUR, GAP.start, GAP.end, YOUNG_SINCE]
    whole = [each for each in found if not any(abs(each.at - at) <= 2 * STEP for at in disturbed)]
    assert len(whole) > 60
    for each in whole:
        expected = truth.count(Span(each.at, each.at + each.length))
        assert each.total == pytest.approx(expected.total, abs=PER_SCRAPE)
        assert each.total - each.good == pytest.approx(expected.bad, abs=2)


def test_windows_are_within_a_thousandth_of_the_true_count(either: SliSource) -> None:
    truth = brute_force(history(), AVAILABLE)
    # The first one has a start, a restart and an end of scrapes: one scrape's events at each.
    for span, edges in (
        (Span(START, GAP.start), 3),
        (Span(GAP.end + STEP, MISSED - STEP), 0),
        (Span(NOW - 5 * HOUR, NOW), 0),
    ):
        found, expected = counts_of(either, AVAILABLE, span), truth.count(span)
        near = pytest.approx(expected.total, rel=0.001, abs=edges * PER_SCRAPE)
        assert found.total == near
        assert found.bad / found.total == pytest.approx(expected.bad / expected.total, abs=0.001)
        steps = (span.end - span.start) // STEP
        assert found.minutes == pytest.approx(5 * steps, abs=5)


def test_missed_step_and_gap_are_unmeasured(either: SliSource) -> None:
    missed = Span(MISSED - STEP, MISSED)
    assert counts_of(either, AVAILABLE, missed).minutes == 0
    assert not either.steps(AVAILABLE, missed)
    inside = Span(GAP.start + 2 * STEP, GAP.end)
    assert counts_of(either, AVAILABLE, inside).minutes == 0


def test_missed_step_is_not_filled_by_the_next_one(either: SliSource) -> None:
    (after,) = either.steps(AVAILABLE, Span(MISSED, MISSED + STEP))
    truth = brute_force(history(), AVAILABLE).count(Span(MISSED, MISSED + STEP))
    assert after.total == pytest.approx(truth.total, abs=PER_SCRAPE)


def test_events_that_rules_excluded_are_counted_apart(source: PrometheusSource) -> None:
    assert counts_of(source, AVAILABLE, Span(MISSED - STEP, MISSED)).excluded == 77


def test_sources_agree_on_each_step(source: PrometheusSource, recorder: RecorderSource) -> None:
    span = Span(START, NOW)
    one = {each.at: each for each in source.steps(AVAILABLE, span)}
    other = {each.at: each for each in recorder.steps(AVAILABLE, span)}
    # The first scrape after a start or gap ends no interval; rules need two in the step.
    assert one.keys() ^ other.keys() <= {GAP.start, GAP.end, MISSED}
    disturbed = [START, START + 5 * HOUR, GAP.start, GAP.end, MISSED]
    for at in one.keys() & other.keys():
        if not any(abs(at - each) <= 2 * STEP for each in disturbed):
            assert one[at].total == pytest.approx(other[at].total, abs=PER_SCRAPE)


def test_steps_add_up_to_the_counts_of_their_span(either: SliSource) -> None:
    span = Span(START + HOUR + 2 * MINUTE_MS, NOW - 7 * MINUTE_MS)
    steps = either.steps(AVAILABLE, span)
    added, asked = count_span(steps, span), counts_of(either, AVAILABLE, span)
    assert (added.total, added.good) == pytest.approx((asked.total, asked.good))
    assert added.minutes == asked.minutes


@pytest.mark.parametrize("indicator", [AVAILABLE, *PHASED.values()])
@pytest.mark.parametrize("length", [STEP, 3 * STEP])
def test_parts_of_a_history_are_the_counts_of_their_spans(
    either: SliSource, indicator: Indicator, length: int
) -> None:
    """Rule groups have any phase, and a part starts at any time, midnight for one."""
    for start in (MIDNIGHT - 3 * length, NOW - 9 * STEP + 7 * MINUTE_MS):
        span = Span(start, start + 6 * length)
        parts = slo_report.step_spans(span, length)
        found = slo_report.budget_steps(either.steps(indicator, span), parts, 0.99, 3_600.0)
        asked = either.counts([indicator], parts)[indicator]
        assert not isinstance(asked, SliSourceError)
        for each, part in zip(found, parts, strict=True):
            assert each.counts.total == pytest.approx(asked[part].total)
            assert each.counts.bad == pytest.approx(asked[part].bad)
            assert each.counts.minutes == asked[part].minutes


def test_first_and_last_step_bound_the_history(either: SliSource) -> None:
    since = either.known_since([AVAILABLE, YOUNG, NEVER])
    assert since[AVAILABLE] == START
    assert since[NEVER] is None
    young = since[YOUNG]
    assert young is not None
    assert 0 <= young - YOUNG_SINCE <= STEP
    assert either.last_seen([AVAILABLE, NEVER], NOW) == {AVAILABLE: NOW, NEVER: None}
    inside = GAP.start + HOUR
    last = either.last_seen([AVAILABLE], inside)[AVAILABLE]
    assert last is not None
    assert GAP.start <= last <= GAP.start + STEP
    known = set(either.indicators())
    assert {AVAILABLE, YOUNG} <= known <= {AVAILABLE, YOUNG, NAN, *PHASED.values()}


def test_value_that_is_not_finite_is_an_error_of_its_indicator(source: PrometheusSource) -> None:
    found = source.counts([AVAILABLE, NAN], [Span(NOW - HOUR, NOW)])
    assert isinstance(found[NAN], SliSourceError)
    assert not isinstance(found[AVAILABLE], SliSourceError)
    with pytest.raises(SliSourceError, match="has NaN or an infinite value"):
        source.steps(NAN, Span(NOW - HOUR, NOW))
    assert math.isfinite(counts_of(source, AVAILABLE, Span(NOW - HOUR, NOW)).total)


def test_two_releases_in_one_prometheus_do_not_mix(tmp_path: Path) -> None:
    lines = [
        f'{series.name}{{{labels(AVAILABLE)},namespace="{namespace}"}} {value} {at / 1000:.3f}'
        for series, values in ((EVENTS_STEP, (100, 300)), (BAD_STEP, (1, 30)))
        for namespace, value in zip(("a", "b"), values, strict=True)
        for at in range(NOW - (HOUR if namespace == "a" else 2 * HOUR), NOW + 1, STEP)
    ]
    lines += [
        f'{EVENTS_STEP.name}{{{labels(YOUNG)},namespace="b"}} 1 {NOW / 1000:.3f}',
        "# EOF",
        "",
    ]
    span = Span(NOW - HOUR // 2, NOW)
    with prometheus(tmp_path, {}, history="\n".join(lines)) as server:
        client = PrometheusClient(Server(url=server.url))
        a, b, missing = (
            PrometheusSource(client, namespace=each, clock=lambda: NOW) for each in ("a", "b", "c")
        )
        for source, events, bad, hours in ((a, 100.0, 1.0, 1), (b, 300.0, 30.0, 2)):
            for asked in ([AVAILABLE], [AVAILABLE, NEVER]):
                counts = source.counts(asked, [span])[AVAILABLE]
                assert not isinstance(counts, SliSourceError)
                assert (counts[span].total, counts[span].good) == (6 * events, 6 * (events - bad))
            assert {each.total for each in source.steps(AVAILABLE, span)} == {events}
            assert source.known_since([AVAILABLE]) == {AVAILABLE: NOW - hours * HOUR - STEP}
            assert source.last_seen([AVAILABLE], NOW) == {AVAILABLE: NOW}
        assert list(a.indicators()) == [AVAILABLE]
        assert set(b.indicators()) == {AVAILABLE, YOUNG}
        assert missing.indicators() == ()
