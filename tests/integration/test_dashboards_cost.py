"""The samples that the dashboards' queries read with 100 flows and 28 days.

Samples are the same on every machine; the benchmark measures times.
"""

import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

import pytest
from dashboard_preview.time_range import Span
from fleet_history import (
    RAW,
    PanelQuery,
    QueryCost,
    Shape,
    dashboard_queries,
    fleet_series,
    lookback,
    run_query,
)
from generated_dashboards import dashboards
from monitoring import prometheus
from tsdb import write_blocks

from mm2slo_core.catalogue.promql import aggregate, over

pytestmark = pytest.mark.long

MAX_SAMPLES: Final = 1_000_000
"""Per query: some tenths of a second of one core. Prometheus rejects a query with 50 times as many
in memory, and a dashboard sends two dozen queries twice a minute."""
MAX_SUMMED_SAMPLES: Final = 8_000_000
"""Of sums over steps, which read each sample of 28 days once."""
MAX_SERIES: Final = 100
"""Series at one time: one a flow, ten for panels with the worst."""
WINDOW: Final = 28 * 86_400
NOW: Final = int(time.time()) // 300 * 300
SHAPE: Final = Shape(flows=100)
FLOW: Final = dict(SHAPE.flow_labels[0])["flow"]
QUERIES: Final = {
    uid: list(dashboard_queries(each, FLOW, NOW)) for uid, each in dashboards().items()
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("prometheus")
    back = {**lookback(each for several in QUERIES.values() for each in several), RAW.name: WINDOW}
    write_blocks(
        folder / "data", fleet_series(SHAPE, back, NOW), NOW - int(max(back.values())), NOW
    )
    with prometheus(folder, {}) as server:
        yield server.url


@pytest.fixture(scope="module")
def answers(address: str) -> dict[str, list[QueryCost]]:
    """By dashboard uid."""
    return {
        uid: [run_query(address, query) for query in queries] for uid, queries in QUERIES.items()
    }


@pytest.mark.parametrize("uid", QUERIES)
def test_queries_read_limited_samples(answers: dict[str, list[QueryCost]], uid: str) -> None:
    errors = {each.query.panel: each.error for each in answers[uid] if each.error}
    assert not errors
    read = {(each.query.panel, each.query.text): each.samples for each in answers[uid]}
    limits = {
        where: MAX_SUMMED_SAMPLES if "sum_over_time" in where[1] else MAX_SAMPLES for where in read
    }
    assert {where: count for where, count in read.items() if count > limits[where]} == {}
    assert all(each.series for each in answers[uid]), "a panel has no series: it costs nothing"


@pytest.mark.parametrize("uid", QUERIES)
def test_charts_have_one_series_per_flow(answers: dict[str, list[QueryCost]], uid: str) -> None:
    lines: Counter[str] = Counter()
    for each in answers[uid]:
        if each.query.kind != "table":
            lines[each.query.panel] = max(lines[each.query.panel], each.at_once)
        if each.query.text.startswith(("topk(", "bottomk(")):
            assert each.at_once <= 10, each.query.panel
    assert {panel: count for panel, count in lines.items() if count > MAX_SERIES} == {}


def test_raw_counter_instead_of_recorded_series_exceeds_limit(address: str) -> None:
    raw = aggregate("max", over("increase", RAW, WINDOW), ("flow",)).text
    [query] = [
        each for each in QUERIES["mm2slo-overview"] if each.panel == "Lowest remaining error budget"
    ]
    assert run_query(address, query).samples == 900 * 2
    found = run_query(address, PanelQuery(query.panel, query.kind, raw, Span(NOW - 1, NOW), 0.0))
    assert found.series == SHAPE.flows
    assert found.samples > 30 * MAX_SAMPLES
