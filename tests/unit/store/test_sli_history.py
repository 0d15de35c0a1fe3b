"""Random histories and query plans of the store's steps."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, event
from store_specs.back_end import SqliteBackEnd
from store_specs.sample_history import ReferenceHistory, at, span

from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.step_counts import Indicator, Tally
from mm2slo_core.topology import Flow
from mm2slo_store.store import Store

FLOWS = count()
STEPS = st.integers(0, 100)
EVENTS = st.sampled_from([0.0, 1.0, 0.5, 59.0, 60.0, 61.25, 300.0, 70_000.0])
COUNTS = st.tuples(EVENTS, EVENTS, EVENTS).map(lambda each: Tally(each[0], sum(each[:2]), each[2]))
HISTORY = st.dictionaries(STEPS, COUNTS, max_size=50)
SPANS = st.lists(
    st.tuples(STEPS, STEPS)
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


@given(st.lists(HISTORY, min_size=1, max_size=3), SPANS)
def test_span_counts_equal_the_sums_of_their_steps(
    store: Store, histories: list[dict[int, Tally]], spans: list[Span]
) -> None:
    indicators = fresh(len(histories))
    recorded = ReferenceHistory(store)
    for each, history in zip(indicators, histories, strict=True):
        for step, counts in history.items():
            recorded.record(step, {each: counts})
    found = store.span_counts(indicators, spans)
    assert found == {each: recorded.truth(each, *spans) for each in indicators}
    since = store.first_seen()
    for each, history in zip(indicators, histories, strict=True):
        steps = store.steps(each, span(0, 101))
        assert {step.at: Tally(*step[1:4]) for step in steps} == {
            at(step): counts for step, counts in history.items()
        }
        assert since.get(each) == (at(min(history)) if history else None)


def test_queries_never_read_all_steps(store: Store, tmp_path: Path) -> None:
    """SQLite's own plans: every look at the steps is a search by key."""
    indicators = fresh(80)
    recorded = ReferenceHistory(store)
    for step in (0, 1, 70, 500):
        recorded.record(step, dict.fromkeys(indicators, Tally(1, 1)))
    asked: list[tuple[str, Any]] = []

    def note(_c: Any, _k: Any, statement: str, parameters: Any, *_more: Any) -> None:
        asked.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        store.span_counts(indicators, [span(-5, 100)])
        store.span_counts(indicators[:1], [span(-5, 100)])
        store.steps(indicators[0], span(0, 500))
        store.latest_step()
        store.first_seen()
        store.last_seen(indicators, at(100))
        store.forget(at(10))
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    looks = [each for each in asked if "sli_steps" in each[0]]
    assert len(looks) == 8
    with SqliteBackEnd(str(tmp_path / "audit.db")).raw() as connection:
        for statement, parameters in looks:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            steps = [row[3] for row in plan]
            assert not [step for step in steps if step.startswith("SCAN sli_steps")], statement
