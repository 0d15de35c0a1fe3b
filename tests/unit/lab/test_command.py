"""`mm2slo lab` where no lab is up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from mm2slo_cli.lab import lab_app
from mm2slo_cli.lab_terminal import pairs
from mm2slo_core.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

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
def test_without_a_lab_every_command_names_the_one_that_starts_it(arguments: list[str]) -> None:
    result = RUN.invoke(lab_app, arguments)

    assert str(result.exception) == "no lab is up: start one with `mm2slo lab up`"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["up", "--flow", "us"], "'us' is not a flow: expected source->target, as in us->eu"),
        (["up", "--mm2-property", "x"], "'x' is not KEY=VALUE, as in tasks.max=4"),
        (["up", "--flow", "us->asia"], "flows name ['asia'], the clusters are ('us', 'eu')"),
        (
            ["up", "--kafka-version", "2.0"],
            "the lab does not run Kafka '2.0': choose one of 4.1.x, 3.9.x, or a patch",
        ),
    ],
)
def test_a_wrong_option_is_told_in_one_line(arguments: list[str], message: str) -> None:
    result = RUN.invoke(lab_app, arguments)

    assert isinstance(result.exception, UserError)
    assert str(result.exception) == message


def test_options_of_key_and_value_may_hold_further_signs() -> None:
    assert pairs(["a.b=c=d", "e="]) == {"a.b": "c=d", "e": ""}


def test_help_lists_every_fault() -> None:
    text = RUN.invoke(lab_app, ["fault", "--help"]).output

    for name in ("stop-mm2", "pause-mm2", "fail-task", "recreate-topic", "foreign-record"):
        assert name in text
