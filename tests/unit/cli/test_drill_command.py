"""`mm2slo drill`: what it refuses before anything is written, and whose alert counts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from mm2slo_cli import drill
from mm2slo_cli.main import main
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
) -> Callable[..., tuple[int, str]]:
    monkeypatch.chdir(tmp_path)
    Path("mm2slo.yaml").write_text(CONFIG)

    def call(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["mm2slo", "drill", *arguments])
        try:
            code = main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return call


OURS = ("--config", "mm2slo.yaml", "--flow", "us->eu")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--config", "mm2slo.yaml"), "--flow is missing"),
        ((*OURS, "--confirm", "eu"), "'eu' is not 'us->eu': nothing was done"),
        ((*OURS, "--confirm", "us->eu"), "us->eu does not copy mm2slo.drill"),
        (("--config", "mm2slo.yaml", "--flow", "us->asia"), "us->asia"),
        (("--fault", "true"), "are for clusters of yours: expected --config"),
        (("--report", "drill.pdf"), "expected a file .html, .md or .json"),
        (("--report", "none/drill.md"), "expected a folder that exists"),
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


def test_fault_that_fails_ends_the_drill() -> None:
    fault = drill._command("sh -c 'echo no rights >&2; exit 3'")
    assert fault.inject is not None
    with pytest.raises(UserError, match=r"failed with 3: no rights"):
        fault.inject()


def test_first_alert_since_the_fault_detects(monkeypatch: pytest.MonkeyPatch) -> None:
    class Answer:
        def raise_for_status(self) -> None: ...

        def json(self) -> list[dict[str, Any]]:
            return [
                {"startsAt": at, "labels": {"alertname": name}}
                for at, name in (
                    ("1970-01-01T00:20:00.000Z", "MM2ClusterUnreachable"),
                    ("1970-01-01T00:15:00.000Z", "MM2SlowBurn"),
                    ("1970-01-01T00:21:00.000Z", "MM2FlowStopped"),
                )
            ]

    asked: list[tuple[str, object]] = []

    def get(url: str, *, params: object, timeout: float) -> Answer:
        asked.append((url, params))
        return Answer()

    monkeypatch.setattr(requests, "get", get)
    assert drill._alert("http://am:9093/", "us->eu", 1_000.0) == "alert MM2ClusterUnreachable"
    assert drill._alert("http://am:9093/", "us->eu", 1_300.0) is None
    assert asked[0] == (
        "http://am:9093/api/v2/alerts",
        {"filter": 'flow="us->eu"', "active": "true"},
    )
