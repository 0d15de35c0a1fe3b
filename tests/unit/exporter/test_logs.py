"""One line per record, with the fields that others join on."""

from __future__ import annotations

import json
import logging
import sys
from typing import TYPE_CHECKING

import pytest

from mm2slo_core.config.exporter import LogConfig, LogFormat, LogLevel
from mm2slo_core.json_logs import JsonFormatter
from mm2slo_exporter.logs import set_up

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    logger = logging.getLogger()
    handlers, level = logger.handlers[:], logger.level
    yield logger
    logger.handlers[:] = handlers
    logger.setLevel(level)


def record(message: str, *arguments: object, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("mm2slo.x", logging.WARNING, "f.py", 1, message, arguments, None)
    made.created = 1_700_000_000.5
    made.__dict__.update(extra)
    return made


def test_a_record_is_one_json_object_with_time_level_logger_and_message() -> None:
    line = JsonFormatter().format(record("lag of %s is\n%d", "us->eu", 3))
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.500+00:00",
        "level": "warning",
        "logger": "mm2slo.x",
        "message": "lag of us->eu is\n3",
    }


def test_only_the_known_extra_fields_are_told() -> None:
    told = json.loads(
        JsonFormatter().format(
            record("x", flow="us->eu", cluster="us", stage="groups", reason="timeout", colour="red")
        )
    )
    assert told.keys() == {
        "time", "level", "logger", "message", "flow", "cluster", "stage", "reason"
    }  # fmt: skip


def test_a_traceback_is_a_field_of_its_line() -> None:
    made = record("broken")
    try:
        int("ü")
    except ValueError:
        made.exc_info = sys.exc_info()
    told = json.loads(JsonFormatter().format(made))
    assert told["exception"].endswith("base 10: 'ü'")


def test_json_goes_to_standard_output_from_the_level_on(
    root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up(LogConfig(format=LogFormat.JSON, level=LogLevel.WARNING))
    root.info("quiet")
    root.warning("loud")
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["message"] == "loud"


def test_text_is_one_plain_line(root: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    set_up(LogConfig(format=LogFormat.TEXT, level=LogLevel.INFO))
    root.info("ready")
    assert capsys.readouterr().out.endswith("INFO    ready\n")
