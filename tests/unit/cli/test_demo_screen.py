"""The demo's screen: size and texts."""

import io
from dataclasses import replace

import pytest
from demo_flows import RUNNING, US_EU, changed, group, topic
from rich.cells import cell_len
from rich.console import Console, Group
from rich.text import Text

from mm2slo_cli.demo_figures import (
    DemoFigures,
    FlowFigures,
    LatencyPercentiles,
    RecentActivity,
    RecentThroughput,
    unread_report,
)
from mm2slo_cli.demo_screen import figures_table, plain_line, status_line
from mm2slo_core.indicators.flow_state import FlowStateName
from mm2slo_core.indicators.group_readiness import BlockReason
from mm2slo_core.indicators.replication_lag import Headroom, RetentionLimit
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.state.flow_report import HeartbeatState
from mm2slo_exporter.state.group_lag import LagSum

LARGE = FlowFigures(
    replace(
        RUNNING,
        lag_records=123_456_789,
        lag_seconds=360_000.0,
        topics=(topic(headrooms=(Headroom(5, 604_800.0, RetentionLimit.TIME),) * 10_000),),
        stalled=tuple(TopicPartition("orders", number) for number in range(9_999)),
        groups=(
            group(
                "a-group-with-quite-a-long-name",
                1,
                2,
                BlockReason.REDELIVERY_OVER_LIMIT,
                BlockReason.TARGET_PARTITIONS_MISSING,
                BlockReason.SOURCE_UNREADABLE,
            ),
            group("b", 1_000_000_000, 2_000_000_000),
            group("c"),
        ),
    ),
    RecentActivity(
        RecentThroughput(1_234_567.0, 1_234_567.0),
        LatencyPercentiles(299.0, None),
        LatencyPercentiles(0.001, 180.0),
    ),
)
EMPTY = FlowFigures(
    replace(
        unread_report(US_EU.reverse),
        waiting_for=("mm2-offset-syncs.us.internal on eu", "eu.checkpoints.internal on us"),
    )
)
URLS = {"page": "http://127.0.0.1:65535/"}


def rendered(what: object, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
    console.print(what)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def table(*flows: FlowFigures) -> str:
    return "\n".join(rendered(figures_table(DemoFigures(flows, URLS, {}))))


@pytest.mark.parametrize("flows", [(LARGE, LARGE), (EMPTY, EMPTY), (LARGE, EMPTY)])
def test_table_with_status_line_fits_80_by_24_terminal(flows: tuple[FlowFigures, ...]) -> None:
    figures = DemoFigures(flows, URLS, {})
    status = status_line(359_000.0, mm2_paused=True)
    lines = rendered(Group(figures_table(figures, Text("mm2slo demo: incomplete")), status))
    assert len(lines) <= 23  # one row stays free for the cursor
    assert max(map(cell_len, lines)) == 80
    assert lines[-1] == "m to resume MirrorMaker 2, Ctrl-C or q to exit; running for 4.2 d"


@pytest.mark.parametrize("figures", [LARGE, EMPTY])
def test_plain_line_fits_80_columns(figures: FlowFigures) -> None:
    assert len(plain_line(changed(figures, lag_records=1_234_567))) <= 80


@pytest.mark.parametrize("state", FlowStateName)
def test_table_names_flow_state_and_reason(state: FlowStateName) -> None:
    text = table(changed(LARGE, state=state))
    assert "│ us->eu " in text
    assert f" {state.value.upper()}  position advances " in text


def test_table_without_figures_shows_no_data_yet() -> None:
    text = table(EMPTY)
    assert text.count("no data yet") == 8
    assert "waiting for mm2-offset-syncs.us.internal on eu" in text
    assert " 0 " not in text


def test_table_without_recent_canaries_shows_their_age() -> None:
    heartbeats = HeartbeatState(present=True, age_seconds=4.9)
    text = table(changed(LARGE, at=100.0, canary_arrived_at=72.0, heartbeats=heartbeats))
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
    text = table(changed(LARGE, groups=(group("a", lower, upper),)))
    assert f"Re-reads     │ {expected} " in text
    assert "Unreplicated │ unknown " in text


@pytest.mark.parametrize(
    ("records", "seconds", "expected"),
    [(0, 0.0, "0"), (1183, 20.0, "1,183 (20 s)"), (1183, None, "1,183")],
)
def test_table_shows_largest_unreplicated_records_of_groups(
    records: int, seconds: float | None, expected: str
) -> None:
    none = LagSum(0, 0.0)
    groups = (
        group("a", unreplicated=none),
        group("b", 29, 29, unreplicated=LagSum(records, seconds)),
        group("c", unreplicated=none),
    )
    text = table(changed(LARGE, groups=groups))
    assert "29 for b " in text
    assert f"Unreplicated │ {expected} " in text


def test_table_shows_number_of_ready_groups_and_reason_of_blocked_one() -> None:
    groups = (group("a", 0, 0, BlockReason.NO_CHECKPOINT), group("b"))
    text = table(changed(LARGE, groups=groups))
    assert "1/2 ready" in text
    assert "a blocked: no checkpoint" in text


@pytest.mark.parametrize(
    ("paused", "expected"),
    [(False, "m to pause MirrorMaker 2"), (True, "m to resume MirrorMaker 2")],
)
def test_status_line_shows_what_the_keys_do(paused: bool, expected: str) -> None:
    line = status_line(12.0, mm2_paused=paused).plain
    assert line == f"{expected}, Ctrl-C or q to exit; running for 12 s"
