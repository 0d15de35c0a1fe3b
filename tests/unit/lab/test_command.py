"""`mm2slo lab` without a running lab."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mm2slo_cli.lab import lab_app
from mm2slo_cli.option_values import parse_key_values
from mm2slo_core.user_errors import UserError

RUN = CliRunner()


@pytest.fixture(autouse=True)
def no_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.mark.parametrize(
    "arguments",
    [
        ["status"],
        ["down"],
        ["produce", "--cluster", "us", "--topic", "orders"],
        ["fault", "stop-mm2"],
        ["fault", "delete-records", "--cluster", "us", "--topic", "t", "--before", "3"],
        ["fault", "fail-task", "--flow", "us->eu", "--topic", "t"],
    ],
)
def test_lab_commands_without_lab_suggest_lab_up(arguments: list[str]) -> None:
    result = RUN.invoke(lab_app, arguments)

    assert str(result.exception) == "no lab is running: start one with `mm2slo lab up`"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["up", "--flow", "us"], "'us' is not a flow; expected source->target, as in us->eu"),
        (["up", "--mm2-property", "x"], "'x' is not KEY=VALUE, for example tasks.max=4"),
        (
            ["up", "--flow", "us->asia"],
            "flows use unknown clusters ['asia']; expected ('us', 'eu')",
        ),
        (
            ["up", "--kafka-version", "2.0"],
            "unsupported Kafka version '2.0'; expected 4.4.x, 4.3.x, 4.2.x, 4.1.x, 4.0.x, 3.9.x, "
            "or a patch release of these",
        ),
    ],
)
def test_lab_up_invalid_option_raises_user_error(arguments: list[str], message: str) -> None:
    result = RUN.invoke(lab_app, arguments)

    assert isinstance(result.exception, UserError)
    assert str(result.exception) == message


def test_parse_key_values_keeps_equal_signs_in_values() -> None:
    assert parse_key_values(["a.b=c=d", "e="]) == {"a.b": "c=d", "e": ""}


def test_fault_help_lists_faults() -> None:
    text = RUN.invoke(lab_app, ["fault", "--help"]).output

    for name in ("stop-mm2", "pause-mm2", "fail-task", "recreate-topic", "foreign-record"):
        assert name in text
