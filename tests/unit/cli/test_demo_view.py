"""The demo's screen: 80 columns, 24 rows, and words besides colours."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from mm2slo_cli.demo.figures import DemoFigures, FlowFigures, GroupFigures
from mm2slo_cli.demo.latency import Latency
from mm2slo_cli.demo.meter import Recent, Throughput
from mm2slo_cli.demo.view import address_lines, flow_panel, key_line, plain_line, screen
from mm2slo_core.flow_state import FlowStateName
from mm2slo_core.retention import Headroom, RetentionLimit
from mm2slo_core.topology import Flow

READY = GroupFigures(ready=True, redelivery_lower=0, redelivery_upper=0, blocked=())
LARGE = FlowFigures(
    Flow("us", "eu"),
    FlowStateName.RUNNING,
    "position_advances",
    lag_records=123_456_789,
    lag_seconds=360_000.0,
    recent=Recent(
        Throughput(1_234_567.0, 1_234_567.0), Latency(299.0, None), Latency(0.001, 180.0)
    ),
    partitions=10_000,
    stalled=tuple(f"orders-{number}" for number in range(9_999)),
    headroom=Headroom(5, 604_800.0, RetentionLimit.TIME),
    groups={
        "a-group-with-quite-a-long-name": GroupFigures(
            ready=False,
            redelivery_lower=1,
            redelivery_upper=2,
            blocked=("redelivery_over_budget", "target_partitions_missing", "flow_not_alive"),
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
def test_the_screen_fits_an_ordinary_terminal(flows: tuple[FlowFigures, ...]) -> None:
    figures = DemoFigures(flows, URLS, {})
    footer = [*address_lines(figures), key_line(traffic=True, mm2_paused=False)]
    lines = rendered(screen(figures, Text("mm2slo demo"), footer))
    assert len(lines) <= 23  # one row stays free for the cursor
    assert max(map(cell_len, lines)) <= 80


@pytest.mark.parametrize("figures", [LARGE, EMPTY])
def test_a_plain_line_fits_80_columns(figures: FlowFigures) -> None:
    assert len(plain_line(replace(figures, lag_records=1_234_567))) <= 80


@pytest.mark.parametrize("state", FlowStateName)
def test_the_state_is_a_word_not_only_a_colour(state: FlowStateName) -> None:
    (title, *_) = rendered(flow_panel(replace(LARGE, state=state)))
    assert f" us->eu  {state.value.upper()}  position advances " in title


def test_figures_not_known_are_said_to_be_so() -> None:
    text = "\n".join(rendered(flow_panel(EMPTY)))
    assert text.count("not known yet") == 6
    assert "waiting for mm2-offset-syncs.us.internal on eu" in text
    assert " 0 " not in text


def test_silence_takes_the_place_of_percentiles() -> None:
    figures = replace(LARGE, canary_age=28.0, heartbeat_age=4.9)
    text = "\n".join(rendered(flow_panel(figures)))
    assert "Canary      none for 28 s" in text
    assert "Heartbeat  p50 1 ms, p99 3 min" in text


@pytest.mark.parametrize(
    ("lower", "upper", "words"),
    [
        (0, 0, "reads no record again"),
        (1, 1, "reads 1 record again"),
        (7, 7, "reads 7 records again"),
        (0, 1200, "reads 0 to 1,200 records again"),
        (None, None, "reads an unknown number of records again"),
    ],
)
def test_redelivery_in_words(lower: int | None, upper: int | None, words: str) -> None:
    group = replace(READY, redelivery_lower=lower, redelivery_upper=upper)
    assert words in "\n".join(rendered(flow_panel(replace(LARGE, groups={"a": group}))))


def test_a_group_that_is_not_ready_says_why() -> None:
    group = replace(READY, ready=False, blocked=("no_checkpoint",))
    text = "\n".join(rendered(flow_panel(replace(LARGE, groups={"a": group, "b": READY}))))
    assert "1/2 ready" in text
    assert "not ready: no checkpoint" in text


@pytest.mark.parametrize(
    ("traffic", "paused", "words"),
    [
        (True, False, "m pause MirrorMaker 2   t pause traffic"),
        (False, True, "m resume MirrorMaker 2   t start traffic"),
    ],
)
def test_the_keys_say_what_they_would_do_now(traffic: bool, paused: bool, words: str) -> None:
    line = key_line(traffic=traffic, mm2_paused=paused).plain
    assert words in line
    assert "Ctrl-C or q ends everything" in line
