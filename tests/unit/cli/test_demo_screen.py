"""The demo's screen: size and texts."""

import io
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from mm2slo_cli.demo_figures import (
    DemoFigures,
    FlowFigures,
    GroupFigures,
    LatencyPercentiles,
    RecentActivity,
    RecentThroughput,
)
from mm2slo_cli.demo_screen import address_lines, flow_panel, key_line, plain_line, screen
from mm2slo_core.indicators.flow_state import FlowStateName
from mm2slo_core.indicators.replication_lag import Headroom, RetentionLimit
from mm2slo_core.topology import Flow

READY = GroupFigures(ready=True, redelivery_lower=0, redelivery_upper=0, blocked=())
LARGE = FlowFigures(
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
EMPTY = FlowFigures(
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


@pytest.mark.parametrize("flows", [(LARGE, LARGE), (EMPTY, EMPTY), (LARGE, EMPTY)])
def test_screen_fits_80_by_24_terminal(flows: tuple[FlowFigures, ...]) -> None:
    figures = DemoFigures(flows, URLS, {})
    footer = [*address_lines(figures), key_line(traffic=True, mm2_paused=False)]
    lines = rendered(screen(figures, Text("mm2slo demo"), footer))
    assert len(lines) <= 23  # one row stays free for the cursor
    assert max(map(cell_len, lines)) <= 80


@pytest.mark.parametrize("figures", [LARGE, EMPTY])
def test_plain_line_fits_80_columns(figures: FlowFigures) -> None:
    assert len(plain_line(replace(figures, lag_records=1_234_567))) <= 80


@pytest.mark.parametrize("state", FlowStateName)
def test_panel_title_names_state_and_reason(state: FlowStateName) -> None:
    (title, *_) = rendered(flow_panel(replace(LARGE, state=state)))
    assert f" us->eu  {state.value.upper()}  position advances " in title


def test_panel_without_figures_shows_no_data_yet() -> None:
    text = "\n".join(rendered(flow_panel(EMPTY)))
    assert text.count("no data yet") == 6
    assert "waiting for mm2-offset-syncs.us.internal on eu" in text
    assert " 0 " not in text


def test_panel_without_recent_canaries_shows_their_age() -> None:
    figures = replace(LARGE, canary_age=28.0, heartbeat_age=4.9)
    text = "\n".join(rendered(flow_panel(figures)))
    assert "Canary      none for 28 s" in text
    assert "Heartbeat  p50 1 ms, p99 3 min" in text


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (0, 0, "re-reads 0, unreplicated unknown"),
        (7, 7, "re-reads 7, unreplicated unknown"),
        (0, 1200, "re-reads 0 to 1,200, unreplicated unknown"),
        (None, None, "re-reads unknown, unreplicated unknown"),
    ],
)
def test_ready_group_shows_redelivery_range(
    lower: int | None, upper: int | None, expected: str
) -> None:
    group = replace(READY, redelivery_lower=lower, redelivery_upper=upper)
    assert expected in "\n".join(rendered(flow_panel(replace(LARGE, groups={"a": group}))))


@pytest.mark.parametrize(
    ("records", "seconds", "expected"),
    [
        (0, 0.0, "re-reads 29, 0 unreplicated"),
        (1183, 20.0, "re-reads 29, 1,183 (20 s) unreplicated"),
        (1183, None, "re-reads 29, 1,183 unreplicated"),
    ],
)
def test_ready_group_shows_unreplicated_records(
    records: int, seconds: float | None, expected: str
) -> None:
    group = GroupFigures(
        ready=True,
        redelivery_lower=29,
        redelivery_upper=29,
        blocked=(),
        unreplicated_records=records,
        unreplicated_seconds=seconds,
    )
    assert expected in "\n".join(rendered(flow_panel(replace(LARGE, groups={"a": group}))))


def test_blocked_group_shows_reason() -> None:
    group = replace(READY, ready=False, blocked=("no_checkpoint",))
    text = "\n".join(rendered(flow_panel(replace(LARGE, groups={"a": group, "b": READY}))))
    assert "1/2 ready" in text
    assert "blocked: no checkpoint" in text


@pytest.mark.parametrize(
    ("traffic", "paused", "expected"),
    [
        (True, False, "m pause MirrorMaker 2   t pause traffic"),
        (False, True, "m resume MirrorMaker 2   t start traffic"),
    ],
)
def test_key_line_shows_next_actions(traffic: bool, paused: bool, expected: str) -> None:
    line = key_line(traffic=traffic, mm2_paused=paused).plain
    assert expected in line
    assert "Ctrl-C or q to exit" in line
