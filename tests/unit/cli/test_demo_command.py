"""Options, signals, commits and stability of the demo."""

import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from demo_flows import COMPLETE, US_EU, changed, group, topic

from mm2slo_cli.demo import run
from mm2slo_cli.demo_environment import StabilityCheck
from mm2slo_cli.demo_figures import DemoFigures
from mm2slo_cli.service_process import Interrupted, interrupt_on_signals
from mm2slo_core.user_errors import UserError
from mm2slo_lab.lab_traffic import CONSUMER_GROUPS, STREAMS, Pace, next_commits


@pytest.mark.parametrize(
    ("pace", "ends", "known", "expected"),
    [
        (Pace.HEAD, {0: 40, 1: 7}, {}, {0: 40, 1: 7}),
        (Pace.HEAD, {0: 40, 1: 7}, {0: 40, 1: 5}, {1: 7}),
        (Pace.BEHIND, {0: 40, 1: 7}, {}, {0: 30}),
        (Pace.BEHIND, {0: 40}, {0: 30}, {}),
        (Pace.BEHIND, {0: 39}, {0: 30}, {}),  # never decreases
        (Pace.IDLE, {0: 40, 1: 7}, {}, {0: 40, 1: 7}),
        (Pace.IDLE, {0: 80, 1: 7}, {0: 40}, {1: 7}),
    ],
)
def test_next_commits_follow_the_pace_of_the_group(
    pace: Pace, ends: dict[int, int], known: dict[int, int], expected: dict[int, int]
) -> None:
    assert next_commits(pace, ends, known) == expected


def test_each_cluster_has_a_group_of_every_pace() -> None:
    for cluster in ("us", "eu"):
        assert {reader.pace for reader in CONSUMER_GROUPS if reader.cluster == cluster} == set(Pace)
    topics = {(stream.cluster, stream.topic) for stream in STREAMS}
    assert {(reader.cluster, reader.topic) for reader in CONSUMER_GROUPS} <= topics


def figures(source_end: int, lag: int = 0, redelivery: int = 0) -> DemoFigures:
    flow = changed(
        COMPLETE,
        lag_records=lag,
        topics=(topic("orders", source_end, lag),),
        groups=(group("a", redelivery, redelivery),),
    )
    reverse = changed(flow, flow=US_EU.reverse, topics=(topic("clicks", source_end, lag),))
    return DemoFigures((flow, reverse), {}, {})


def test_figures_unchanged_for_three_seconds_after_replication_are_stable() -> None:
    now = 0.0
    stability = StabilityCheck({("us", "orders"): 100}, clock=lambda: now)
    steps = [
        (0.0, figures(90), False),  # older than the written offsets
        (4.0, figures(90), False),
        (5.0, figures(100, lag=1), False),
        (9.0, figures(100, lag=1), False),
        (10.0, figures(100), False),
        (12.9, figures(100), False),
        (13.0, figures(100), True),
        (13.5, figures(100, redelivery=5), False),  # a new checkpoint
        (16.4, figures(100, redelivery=5), False),
        (16.5, figures(100, redelivery=5), True),
    ]
    for at, seen, expected in steps:
        now = at
        assert stability.is_stable(seen) is expected, at


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupts_raise_at_first_signal_only(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with interrupt_on_signals():
        with pytest.raises(Interrupted) as interrupted:
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
    assert interrupted.value.exit_code == 128 + number
    assert signal.getsignal(number) is before


def test_disabled_interrupts_ignore_signals() -> None:
    with interrupt_on_signals() as interrupts:
        interrupts.enabled = False
        os.kill(os.getpid(), signal.SIGINT)


def test_demo_keep_without_once_raises_user_error() -> None:
    with pytest.raises(UserError, match="--keep requires --once"):
        run(None, once=False, as_json=False, keep=True)


def test_cli_import_does_not_load_the_demo() -> None:
    code = "import sys, mm2slo_cli.main; print([m for m in sys.modules if 'demo' in m])"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scenario": "stop-all"}, "unknown scenario 'stop-all'; expected stop-mirror"),
        ({"scenario": "stop-mirror", "once": True}, "cannot be combined with --once"),
        ({"scenario": "stop-mirror", "as_json": True}, "cannot be combined with --json"),
    ],
)
def test_scenario_with_invalid_options_raises_user_error(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        run(None, **{"once": False, "as_json": False, **options})


def test_scenario_without_prometheus_names_missing_programs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    expected = "needs prometheus and alertmanager; on Debian: apt-get install prometheus prom"
    with pytest.raises(UserError, match=expected):
        run(None, once=False, as_json=False, scenario="stop-mirror")
