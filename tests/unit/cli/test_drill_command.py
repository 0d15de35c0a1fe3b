"""`mm2slo drill`: what it refuses before anything is written, and whose alert counts."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import requests
from cli_process import CommandRun

from mm2slo_cli import drill
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.cutover.drill_report import DrillReport
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError

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
    return CommandRun(tmp_path, monkeypatch, capsys, "drill", CONFIG)


OURS = ("--config", "mm2slo.yaml", "--flow", "us->eu")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--config", "mm2slo.yaml"), "--flow is missing"),
        ((*OURS, "--confirm", "eu"), "'eu' is not 'us->eu': nothing was done"),
        ((*OURS, "--confirm", "us->eu"), "us->eu does not copy mm2slo.drill."),
        ((*OURS, "--fault", "/no/such"), "expected a command that exists"),
        ((*OURS, "--fault", "sh 'x"), "expected a command as in a shell"),
        ((*OURS, "--fault", ""), "expected a command that exists"),
        ((*OURS, "--behind", "5s"), "--behind is for the lab"),
        (("--config", "mm2slo.yaml", "--flow", "us->asia"), "us->asia"),
        (("--fault", "true"), "are for clusters of yours: expected --config"),
        (("--report", "drill.pdf"), "has an unknown suffix; expected .html, .md or .json"),
        (("--report", "none/drill.md"), "does not exist; create it first"),
        (("--rpo", "soon"), "--rpo 'soon'"),
    ],
)
def test_mistakes_are_one_sentence_before_anything_is_written(
    run: Any, arguments: tuple[str, ...], expected: str
) -> None:
    code, text = run(*arguments)
    assert code == 2
    assert expected in text
    assert "Traceback" not in text


def test_report_of_a_drill_that_could_not_go_on_says_so(run: Any) -> None:
    Path("mm2slo.yaml").write_text(CONFIG.replace('["orders"]', '[".*"]'))
    away = ("--alertmanager", "http://127.0.0.1:9")
    code, text = run(*OURS, "--confirm", "us->eu", *away, "--report", "drill.json")
    assert (code, "does not answer: ConnectionError; expected its URL" in text) == (2, True)
    found = json.loads(Path("drill.json").read_text())
    assert (found["state"], found["rpo_verdict"]) == ("failed", "not stated")


def test_group_that_the_flow_does_not_carry_is_refused(run: Any) -> None:
    Path("mm2slo.yaml").write_text(CONFIG.replace('["orders"]', '[".*"], groups: ["shop"]'))
    code, text = run(*OURS, "--confirm", "us->eu")
    assert (code, "us->eu does not carry the group mm2slo.drill." in text) == (2, True)


def test_fault_that_fails_ends_the_drill() -> None:
    fault = drill._command("sh -c 'echo no rights >&2; exit 3'", 10.0)
    assert fault.inject is not None
    with pytest.raises(UserError, match=r"failed with 3: no rights"):
        fault.inject()


def test_fault_ends_with_its_command_not_with_what_that_leaves_behind(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    fault = drill._command(f"sh -c 'sleep 600 & echo $! > {file}'", 300.0)
    assert fault.inject is not None
    fault.inject()
    os.kill(int(file.read_text()), signal.SIGTERM)  # fails if it has ended


FIRING = [
    {"fingerprint": "a", "labels": {"alertname": "MM2SlowBurn", "flow": "us->eu"}},
    {"fingerprint": "b", "labels": {"alertname": "MM2ClusterUnreachable", "cluster": "us"}},
    {"fingerprint": "c", "labels": {"alertname": "MM2ClusterUnreachable", "cluster": "asia"}},
    {"fingerprint": "d", "labels": {"alertname": "Watchdog"}},
]


def test_alerts_of_the_flow_and_of_its_source_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that is away fires for the cluster, and silences what its flows would say."""

    class Answer:
        def raise_for_status(self) -> None: ...

        def json(self) -> list[dict[str, Any]]:
            return FIRING

    asked: list[tuple[str, object]] = []

    def get(url: str, *, params: object, timeout: float) -> Answer:
        asked.append((url, params))
        return Answer()

    monkeypatch.setattr(requests, "get", get)
    config = load_config(CONFIG.replace('["orders"]', '[".*"]'))
    terms = drill._Terms((), 1.0, 0.0, 0.0, 1, 10, "http://am:9093", 10.0)
    report = DrillReport("us->eu", "me", "here", "kill", "00", "1", 1.0, 2.0, 0.0)
    found = drill._Drill(config, Flow("us", "eu"), terms, report)._firing()
    assert found == {"a": "MM2SlowBurn", "b": "MM2ClusterUnreachable"}
    query = {"active": "true", "silenced": "false", "inhibited": "false"}
    assert asked == [("http://am:9093/api/v2/alerts", query)]
