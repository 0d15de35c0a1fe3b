"""What the dashboards' queries cost a real Prometheus with 100 flows and 28 days, in samples.

Times are the benchmark's; samples are the same on every machine.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest
from dashboard_preview.time_range import Span
from dashed import dashboards
from long_fleet import RAW, Asked, Shape, ask, board_queries, fleet_series, reach
from monitoring import prometheus
from tsdb import write_blocks

from mm2slo_core.promql import aggregate, over

if TYPE_CHECKING:
    from collections.abc import Iterator

    from long_fleet import Answer

pytestmark = pytest.mark.long

MOST_SAMPLES: Final = 1_000_000
"""What a query may read: some tenths of a second of one core. Prometheus refuses a query with 50
times as many in memory at once, and a board asks two dozen queries twice a minute."""
MOST_LINES: Final = 100
"""Lines of a course at one moment: one a flow, and ten where the worst are told."""
WINDOW: Final = 28 * 86_400
NOW: Final = int(time.time()) // 300 * 300
SHAPE: Final = Shape(flows=100)
FLOW: Final = dict(SHAPE.flow_labels[0])["flow"]
QUERIES: Final = {uid: list(board_queries(each, FLOW, NOW)) for uid, each in dashboards().items()}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("prometheus")
    back = {**reach(each for several in QUERIES.values() for each in several), RAW.name: WINDOW}
    write_blocks(
        folder / "data", fleet_series(SHAPE, back, NOW), NOW - int(max(back.values())), NOW
    )
    with prometheus(folder, {}) as server:
        yield server.url


@pytest.fixture(scope="module")
def answers(address: str) -> dict[str, list[Answer]]:
    """By board."""
    return {uid: [ask(address, asked) for asked in several] for uid, several in QUERIES.items()}


@pytest.mark.parametrize("uid", QUERIES)
def test_no_query_reads_more_than_it_may(answers: dict[str, list[Answer]], uid: str) -> None:
    said = {each.asked.panel: each.refused for each in answers[uid] if each.refused}
    assert not said
    read = {(each.asked.panel, each.asked.text): each.samples for each in answers[uid]}
    assert {where: count for where, count in read.items() if count > MOST_SAMPLES} == {}
    assert all(each.series for each in answers[uid]), "a panel has no series: it costs nothing"


@pytest.mark.parametrize("uid", QUERIES)
def test_no_course_has_more_lines_than_flows(answers: dict[str, list[Answer]], uid: str) -> None:
    lines: Counter[str] = Counter()
    for each in answers[uid]:
        if each.asked.kind != "table":
            lines[each.asked.panel] = max(lines[each.asked.panel], each.at_once)
        if each.asked.text.startswith(("topk(", "bottomk(")):
            assert each.at_once <= 10, each.asked.panel
    assert {panel: count for panel, count in lines.items() if count > MOST_LINES} == {}


def test_a_raw_counter_in_place_of_what_is_recorded_would_be_found(address: str) -> None:
    raw = aggregate("max", over("increase", RAW, WINDOW), ("flow",)).text
    [asked] = [
        each
        for each in QUERIES["mm2slo-overview"]
        if each.panel == "Which budget is nearest to its end?"
    ]
    assert ask(address, asked).samples == 900 * 2
    found = ask(address, Asked(asked.panel, asked.kind, raw, Span(NOW - 1, NOW), 0.0))
    assert found.series == SHAPE.flows
    assert found.samples > 30 * MOST_SAMPLES
