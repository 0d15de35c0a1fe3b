"""`mm2slo perf`: bad input ends in one sentence before anything is sent; comparing files."""

from pathlib import Path
from typing import Any

import pytest
from cli_process import CommandRun
from perf_samples import report_of, run_of

from mm2slo_core.perf.perf_schedule import PerfMode
from mm2slo_kafka.perf_generator import generator_rate

CONFIG = """
clusters:
  us: {bootstrap_servers: "us:9092"}
  eu: {bootstrap_servers: "eu:9092"}
flows: [{flow: us->eu, topics: ["orders"]}]
"""


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandRun:
    return CommandRun(tmp_path, monkeypatch, capsys, "perf", CONFIG)


OURS = ("run", "--config", "mm2slo.yaml", "--flow", "us->eu", "--rate", "10")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("run", "--config", "mm2slo.yaml", "--rate", "1"), "--flow is missing"),
        (OURS[:-2], "--rate is missing"),
        ((*OURS, "--confirm", "eu"), "'eu' is not 'us->eu': nothing was done"),
        ((*OURS, "--confirm", "us->eu"), "us->eu does not copy mm2slo.perf."),
        (
            (*OURS, "--set", "a=b"),
            "--set and --copy-partitions are for the lab",
        ),
        (("run", "--round-trip", "1", "--copy-partitions", "5"), "needs a lab with logins"),
        (("run", "--flow", "us->eu"), "--flow, --wait and --confirm are for clusters of yours"),
        (("run", "--wait", "1m"), "--flow, --wait and --confirm are for clusters of yours"),
        (("run", "--confirm", "us->eu"), "--flow, --wait and --confirm are for clusters of yours"),
        (("run", "--p99", "1s"), "--p99 bounds --mode sustained; this is --mode latency"),
        (
            ("matrix", "--factor", "linger=0", "--mode", "drain", "--p99", "1s"),
            "--p99 bounds --mode sustained; this is --mode drain",
        ),
        (("run", "--length", "0.5s"), "expected at least 1s"),
        (("run", "--length", "soon"), "--length 'soon'"),
        (
            ("run", "--rate", "1e5", "--length", "60s", "--max-bytes", "2e9"),
            "more than --max-bytes (2,000 MB)",
        ),
        (
            ("run", "--rate", "1e8", "--record-size", "1", "--max-bytes", "1e13"),
            "is too high: this machine generates about",
        ),
        (("run", "--set", "tasks.max"), "is not KEY=VALUE"),
        (("run", "--set", "tasks.max=2"), "expected --tasks"),
        ((*OURS, "--mode", "drain"), "writes a backlog as fast as it can"),
        (("run", "--report", "rate.pdf"), "has an unknown suffix; expected .html, .md or .json"),
        (("matrix", "--factor", "linger"), "expected NAME=VALUE,VALUE"),
        (("matrix", "--factor", "speed=1"), "--factor 'speed' is not known"),
        (("compare", "a.json", "b.json"), "a.json cannot be read"),
    ],
)
def test_mistakes_are_one_sentence_before_anything_is_sent(
    run: Any, arguments: tuple[str, ...], expected: str
) -> None:
    code, text = run(*arguments)
    assert code == 2
    assert expected in " ".join(text.split())
    assert "Traceback" not in text


def test_generator_is_faster_than_small_rates() -> None:
    assert generator_rate(1, records=1000) > 1000


def measured(mode: PerfMode, *rates: float) -> str:
    return report_of(mode, [run_of(0.1, rate=each) for each in rates]).as_json()


def test_measurements_are_compared_run_by_run(run: Any) -> None:
    Path("a.json").write_text(measured(PerfMode.DRAIN, 100, 110, 120))
    Path("b.json").write_text(measured(PerfMode.DRAIN, 200, 220, 240))
    assert run("compare", "a.json", "b.json") == (0, "rate: 2 times (1.99 to 2.01, 3 pairs)\n")


def test_different_loads_are_named(run: Any) -> None:
    Path("a.json").write_text(measured(PerfMode.DRAIN, 100, 110, 120))
    other = measured(PerfMode.DRAIN, 100, 110, 120).replace('"partitions": 5', '"partitions": 9')
    Path("b.json").write_text(other)
    code, text = run("compare", "a.json", "b.json")
    assert (code, "the loads differ: partitions 5 and 9" in text) == (0, True)


def test_measurements_of_different_modes_are_not_compared(run: Any) -> None:
    Path("a.json").write_text(measured(PerfMode.DRAIN, 100))
    Path("b.json").write_text(measured(PerfMode.LATENCY, 100))
    code, text = run("compare", "a.json", "b.json")
    assert (code, "a.json measured drain, b.json latency" in text) == (2, True)
