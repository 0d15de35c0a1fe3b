"""Random histories: the store's differences equal the sums of the minutes one by one."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, event
from store_specs import SqliteBackEnd
from store_specs.sample_history import HOUR, ReferenceHistory, at, span

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.minute_counts import Indicator, SpanCounts
from mm2slo_core.sli_counters import Sli, SliKey
from mm2slo_core.topology import Flow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from minute_history import Minutes

    from mm2slo_store import Store

FLOWS = count()
WIDE = 60 * 9
"""Minutes of a random history, with gaps of hours."""

MINUTES = st.integers(0, WIDE)
EVENTS = st.sampled_from([0.0, 1.0, 0.5, 59.0, 60.0, 61.25, 300.0, 70_000.0])
GROWTHS = st.tuples(EVENTS, EVENTS, EVENTS)
HISTORY = st.dictionaries(MINUTES, GROWTHS, max_size=150)
SPANS = st.lists(
    st.tuples(MINUTES, MINUTES)
    .filter(lambda edges: edges[0] != edges[1])
    .map(lambda edges: span(min(edges), max(edges))),
    min_size=1,
    max_size=12,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with SqliteBackEnd(str(tmp_path / "audit.db")).open() as opened:
        yield opened


def fresh(number: int) -> list[Indicator]:
    return [Indicator(Flow(f"c{next(FLOWS)}", "eu"), SliKey(Sli.ORDER)) for _ in range(number)]


def record(store: Store, histories: dict[Indicator, dict[int, Any]]) -> ReferenceHistory:
    """All minutes in order of time."""
    recorded = ReferenceHistory(store)
    for minute in sorted({minute for each in histories.values() for minute in each}):
        recorded.minute(
            minute,
            {one: growths[minute] for one, growths in histories.items() if minute in growths},
        )
    return recorded


@given(st.lists(HISTORY, min_size=1, max_size=3), SPANS)
def test_span_counts_equal_the_sums_of_their_minutes(
    store: Store, histories: list[dict[int, Any]], spans: list[Span]
) -> None:
    indicators = fresh(len(histories))
    recorded = record(store, dict(zip(indicators, histories, strict=True)))
    counts = store.span_counts(indicators, spans)
    assert counts == {each: recorded.truth(each, *spans) for each in indicators}
    for each in indicators:
        minutes = recorded.minutes[each]
        assert list(store.minute_counts(each, spans[0])) == minutes.within(spans[0])
        assert store.first_seen([each]) == {each: min(minutes.counted, default=None)}


@given(HISTORY.filter(bool), SPANS, st.integers(60, WIDE), st.integers(0, WIDE))
def test_thin_and_forget_change_no_whole_hour(
    store: Store, growths: dict[int, Any], spans: list[Span], kept: int, gone: int
) -> None:
    (indicator,) = fresh(1)
    recorded = record(store, {indicator: growths})
    truth = recorded.minutes[indicator]
    now = at(WIDE)
    store.thin(now, kept * 60_000)
    folded = (now - kept * 60_000) // HOUR * HOUR
    for each, counts in zip(spans, recorded.stored(indicator, *spans), strict=True):
        start, end = (_moved(edge, folded, truth) for edge in (each.start, each.end))
        coarse = (start, end) != (each.start, each.end)
        expected = truth.count(Span(start, end)) if start < end else SpanCounts()
        assert counts == _marked(expected, coarse=coarse)
    latest = store.latest_tallies()[indicator]
    store.forget(at(gone))
    assert store.latest_tallies()[indicator] == latest
    late = [each for each in spans if each.start >= max(folded, at(gone + 59))]
    assert recorded.stored(indicator, *late) == recorded.truth(indicator, *late)


def _moved(edge: int, folded: int, truth: Minutes) -> int:
    """Where an edge is read: at the start of its hour, if that has minutes and is folded."""
    hour = edge // HOUR * HOUR
    return hour if edge < folded and truth.within(Span(hour, hour + HOUR)) else edge


def _marked(counts: SpanCounts, *, coarse: bool) -> SpanCounts:
    return counts + SpanCounts(coarse=coarse)


def test_queries_never_read_all_hours(store: Store, tmp_path: Path) -> None:
    """SQLite's own plans: every look at the hours is a search by key."""
    indicators = fresh(80)
    recorded = ReferenceHistory(store)
    for minute in (0, 1, 70, 500):
        recorded.minute(minute, dict.fromkeys(indicators, (1.0, 0.0, 0.0)))
    asked: list[tuple[str, Any]] = []

    def note(_c: Any, _k: Any, statement: str, parameters: Any, *_more: Any) -> None:
        asked.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        store.span_counts(indicators, [span(-5, 100), span(60, 300), span(400, 501)])
        store.span_counts(indicators[:2], [span(-5, 100), span(60, 300)])
        store.span_counts(indicators, [span(3, 200)])
        store.minute_counts(indicators[0], span(0, 500))
        store.latest_tallies()
        store.latest_minute()
        recorded.minute(501, dict.fromkeys(indicators, (1.0, 0.0, 0.0)))
        recorded.minute(561, dict.fromkeys(indicators, (1.0, 0.0, 0.0)))
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    looks = [each for each in asked if "sli_hours" in each[0] and "INSERT" not in each[0]]
    assert len(looks) > 12
    with SqliteBackEnd(str(tmp_path / "audit.db")).raw() as connection:
        for statement, parameters in looks:
            values = parameters[0] if isinstance(parameters, list) else parameters
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
            steps = [row[3] for row in plan]
            assert not [step for step in steps if step.startswith("SCAN sli_hours")], statement
