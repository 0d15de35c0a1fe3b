"""Commits of the demo's groups, rest, and signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from mm2slo_cli.demo import run
from mm2slo_cli.demo.figures import DemoFigures, FlowFigures, GroupFigures, TopicFigures
from mm2slo_cli.demo.script import READERS, STREAMS, Pace
from mm2slo_cli.demo.settle import Rest
from mm2slo_cli.demo.traffic import next_commits
from mm2slo_cli.ending import Told, told_by_signals
from mm2slo_core.errors import UserError
from mm2slo_core.flow_state import FlowStateName
from mm2slo_core.topology import Flow


@pytest.mark.parametrize(
    ("pace", "ends", "known", "expected"),
    [
        (Pace.HEAD, {0: 40, 1: 7}, {}, {0: 40, 1: 7}),
        (Pace.HEAD, {0: 40, 1: 7}, {0: 40, 1: 5}, {1: 7}),
        (Pace.BEHIND, {0: 40, 1: 7}, {}, {0: 30}),
        (Pace.BEHIND, {0: 40}, {0: 30}, {}),
        (Pace.BEHIND, {0: 39}, {0: 30}, {}),  # never back
        (Pace.IDLE, {0: 40, 1: 7}, {}, {0: 40, 1: 7}),
        (Pace.IDLE, {0: 80, 1: 7}, {0: 40}, {1: 7}),
    ],
)
def test_what_a_group_commits_next(
    pace: Pace, ends: dict[int, int], known: dict[int, int], expected: dict[int, int]
) -> None:
    assert next_commits(pace, ends, known) == expected


def test_each_direction_has_a_group_of_every_pace() -> None:
    for cluster in ("us", "eu"):
        assert {reader.pace for reader in READERS if reader.cluster == cluster} == set(Pace)
    topics = {(stream.cluster, stream.topic) for stream in STREAMS}
    assert {(reader.cluster, reader.topic) for reader in READERS} <= topics


def figures(source_end: int, lag: int = 0, redelivery: int = 0) -> DemoFigures:
    group = GroupFigures(
        ready=True, redelivery_lower=redelivery, redelivery_upper=redelivery, blocked=()
    )
    flow = FlowFigures(
        Flow("us", "eu"),
        FlowStateName.IDLE,
        "canaries_arrive",
        lag_records=lag,
        topics={"orders": TopicFigures(source_end, source_end - lag, source_end - lag, lag)},
        groups={"a": group},
    )
    return DemoFigures((flow, replace(flow, flow=Flow("eu", "us"), topics={})), {}, {})


def test_rest_is_three_seconds_without_a_change_after_all_is_copied() -> None:
    now = 0.0
    rest = Rest({("us", "orders"): 100}, clock=lambda: now)
    steps = [
        (0.0, figures(90), False),  # an older reading: not yet what was written
        (4.0, figures(90), False),
        (5.0, figures(100, lag=1), False),
        (9.0, figures(100, lag=1), False),
        (10.0, figures(100), False),
        (12.9, figures(100), False),
        (13.0, figures(100), True),
        (13.5, figures(100, redelivery=5), False),  # a checkpoint came
        (16.4, figures(100, redelivery=5), False),
        (16.5, figures(100, redelivery=5), True),
    ]
    for at, seen, expected in steps:
        now = at
        assert rest.reached(seen) is expected, at


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_ends_and_the_second_disturbs_nothing(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with told_by_signals():
        with pytest.raises(Told) as told:
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
    assert told.value.exit_code == 128 + number
    assert signal.getsignal(number) is before


def test_no_signal_disturbs_the_way_out() -> None:
    with told_by_signals() as ending:
        ending.quietly()
        os.kill(os.getpid(), signal.SIGINT)


def test_keep_without_once_is_refused_before_anything_starts() -> None:
    with pytest.raises(UserError, match="--keep goes with --once"):
        run(None, once=False, as_json=False, keep=True)


def test_other_commands_do_not_load_the_demo() -> None:
    code = "import sys, mm2slo_cli.main; print([m for m in sys.modules if 'demo' in m])"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scenario": "stop-all"}, "'stop-all' is no scenario: expected stop-mirror"),
        ({"scenario": "stop-mirror", "once": True}, "plays by itself: leave out --once"),
        ({"scenario": "stop-mirror", "as_json": True}, "plays by itself: leave out --json"),
    ],
)
def test_a_scenario_is_refused_in_words(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        run(None, **{"once": False, "as_json": False, **options})


def test_a_scenario_names_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    expected = "needs prometheus and alertmanager; on Debian: apt-get install prometheus prom"
    with pytest.raises(UserError, match=expected):
        run(None, once=False, as_json=False, scenario="stop-mirror")
