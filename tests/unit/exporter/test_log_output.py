"""One line per record, with the documented fields."""

import json
import logging
import sys
from collections.abc import Iterator
from typing import Literal

import pytest

from mm2slo_core.config.service_config import LogConfig
from mm2slo_core.log_redaction import JsonFormatter
from mm2slo_exporter.log_output import configure_logging


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


def test_json_format_writes_one_object_per_line() -> None:
    line = JsonFormatter("repl-exporter").format(record("lag of %s is\n%d", "us->eu", 3))
    assert "\n" not in line
    assert json.loads(line) == {
        "timestamp": "2023-11-14T22:13:20.500000Z",
        "level": "WARNING",
        "service": "repl-exporter",
        "logger": "mm2slo.x",
        "message": "lag of us->eu is\n3",
    }


def test_json_format_includes_known_extra_fields_only() -> None:
    found = json.loads(
        JsonFormatter("repl-exporter").format(
            record("x", flow="us->eu", cluster="us", run_id="r", partition=0, colour="red")
        )
    )
    assert found.keys() == {
        "timestamp", "level", "service", "flow", "cluster", "partition", "run_id", "logger",
        "message",
    }  # fmt: skip


def test_json_format_writes_traceback_as_field() -> None:
    made = record("broken")
    try:
        int("ü")
    except ValueError:
        made.exc_info = sys.exc_info()
    found = json.loads(JsonFormatter("repl-exporter").format(made))
    assert list(found)[-3:] == ["error.type", "error.message", "error.stack_trace"]
    assert found["error.type"] == "ValueError"
    assert found["error.message"] == "invalid literal for int() with base 10: 'ü'"
    assert found["error.stack_trace"].endswith("base 10: 'ü'")


def test_configure_logging_writes_json_from_configured_level(
    root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging(LogConfig(format="json", level="warning"))
    root.info("quiet")
    root.warning("loud")
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["message"] == "loud"


def test_configure_logging_writes_text(
    root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging(LogConfig(format="text", level="info"))
    root.info("ready")
    assert capsys.readouterr().out.endswith("INFO    ready\n")


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_secrets_in_messages_extras_and_errors_are_redacted(
    log_format: Literal["json", "text"], root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging(LogConfig(format=log_format))
    address = "https://me@corp:hun7er2@host/x"
    try:
        raise OSError(f"cannot reach {address}")
    except OSError:
        root.exception("posting to %s failed", address, extra={"reason": f"pwd=hun7er2 {address}"})

    written = capsys.readouterr().out
    assert "hun7er2" not in written
    assert "https://me@corp:[redacted]@host/x" in written
