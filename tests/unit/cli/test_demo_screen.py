"""The demo's screen: size and texts."""

import io
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console, Group
from rich.text import Text

from mm2slo_cli.demo_figures import (
    DemoFigures,
    DemoFlowFigures,
    GroupFigures,
    LatencyPercentiles,
    RecentActivity,
    RecentThroughput,
)
from mm2slo_cli.demo_screen import figures_table, plain_line, status_line
from mm2slo_core.indicators.flow_state import FlowStateName
from mm2slo_core.indicators.replication_lag import Headroom, RetentionLimit
from mm2slo_core.topology import Flow

READY = GroupFigures(ready=True, redelivery_lower=0, redelivery_upper=0, blocked=())
LARGE = DemoFlowFigures(
    Flow("us", "eu"),
    FlowStateName.RUNNING,
    "position_advances",
    lag_records=123_456_789,
    lag_seconds=360_000.0,
    recent=RecentActivity(
        RecentThroughput(1_234_567.0, 1_234_567.0),
        LatencyPercentiles(299.0, None),
        LatencyPercentiles(0.001, 180.0),
    ),
    partitions=10_000,
    stalled=tuple(f"orders-{number}" for number in range(9_999)),
    headroom=Headroom(5, 604_800.0, RetentionLimit.TIME),
    groups={
        "a-group-with-quite-a-long-name": GroupFigures(
            ready=False,
            redelivery_lower=1,
            redelivery_upper=2,
            blocked=("redelivery_over_limit", "target_partitions_missing", "source_unreadable"),
        ),
        "b": replace(READY, redelivery_lower=1_000_000_000, redelivery_upper=2_000_000_000),
        "c": READY,
    },
)
EMPTY = DemoFlowFigures(
    Flow("eu", "us"),
    FlowStateName.UNKNOWN,
    "not_ready",
    waiting_for=("mm2-offset-syncs.us.internal on eu", "eu.checkpoints.internal on us"),
)
URLS = {"page": "http://127.0.0.1:65535/"}


def rendered(what: object, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
    console.print(what)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def table(*flows: DemoFlowFigures) -> str:
    return "\n".join(rendered(figures_table(DemoFigures(flows, URLS, {}))))


@pytest.mark.parametrize("flows", [(LARGE, LARGE), (EMPTY, EMPTY), (LARGE, EMPTY)])
def test_table_with_status_line_fits_80_by_24_terminal(flows: tuple[DemoFlowFigures, ...]) -> None:
    figures = DemoFigures(flows, URLS, {})
    status = status_line(359_000.0, mm2_paused=True)
    lines = rendered(Group(figures_table(figures, Text("mm2slo demo: incomplete")), status))
    assert len(lines) <= 23  # one row stays free for the cursor
    assert max(map(cell_len, lines)) == 80
    assert lines[-1] == "m to resume MirrorMaker 2, Ctrl-C or q to exit; running for 4.2 d"


@pytest.mark.parametrize("figures", [LARGE, EMPTY])
def test_plain_line_fits_80_columns(figures: DemoFlowFigures) -> None:
    assert len(plain_line(replace(figures, lag_records=1_234_567))) <= 80


@pytest.mark.parametrize("state", FlowStateName)
def test_table_names_flow_state_and_reason(state: FlowStateName) -> None:
    text = table(replace(LARGE, state=state))
    assert "│ us->eu " in text
    assert f" {state.value.upper()}  position advances " in text


def test_table_without_figures_shows_no_data_yet() -> None:
    text = table(EMPTY)
    assert text.count("no data yet") == 8
    assert "waiting for mm2-offset-syncs.us.internal on eu" in text
    assert " 0 " not in text


def test_table_without_recent_canaries_shows_their_age() -> None:
    text = table(replace(LARGE, canary_age=28.0, heartbeat_age=4.9))
    assert "Canary       │ none for 28 s" in text
    assert "Heartbeat    │ p50 1 ms, p99 3 min" in text


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (0, 0, "0 for a"),
        (7, 7, "7 for a"),
        (0, 1200, "0 to 1,200 for a"),
        (None, None, "unknown for a"),
    ],
)
def test_table_shows_redelivery_range_of_group(
    lower: int | None, upper: int | None, expected: str
) -> None:
    group = replace(READY, redelivery_lower=lower, redelivery_upper=upper)
    text = table(replace(LARGE, groups={"a": group}))
    assert f"Re-reads     │ {expected} " in text
    assert "Unreplicated │ unknown " in text


@pytest.mark.parametrize(
    ("records", "seconds", "expected"),
    [(0, 0.0, "0"), (1183, 20.0, "1,183 (20 s)"), (1183, None, "1,183")],
)
def test_table_shows_largest_unreplicated_records_of_groups(
    records: int, seconds: float | None, expected: str
) -> None:
    group = replace(
        READY,
        redelivery_lower=29,
        redelivery_upper=29,
        unreplicated_records=records,
        unreplicated_seconds=seconds,
    )
    none = replace(READY, unreplicated_records=0, unreplicated_seconds=0.0)
    text = table(replace(LARGE, groups={"a": none, "b": group, "c": none}))
    assert "29 for b " in text
    assert f"Unreplicated │ {expected} " in text


def test_table_shows_number_of_ready_groups_and_reason_of_blocked_one() -> None:
    group = replace(READY, ready=False, blocked=("no_checkpoint",))
    text = table(replace(LARGE, groups={"a": group, "b": READY}))
    assert "1/2 ready" in text
    assert "a blocked: no checkpoint" in text


@pytest.mark.parametrize(
    ("paused", "expected"),
    [(False, "m to pause MirrorMaker 2"), (True, "m to resume MirrorMaker 2")],
)
def test_status_line_shows_what_the_keys_do(paused: bool, expected: str) -> None:
    line = status_line(12.0, mm2_paused=paused).plain
    assert line == f"{expected}, Ctrl-C or q to exit; running for 12 s"
