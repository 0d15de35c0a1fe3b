"""PySpark neither replaces the SIGINT handler nor logs its exceptions."""

import logging
import signal

import pytest

from mm2slo_audit.spark.spark_session import keep_interrupt_handler, silence_gateway_logs


def test_keep_interrupt_handler_restores_handler() -> None:
    before = signal.getsignal(signal.SIGINT)
    with keep_interrupt_handler():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is before


def test_silence_gateway_logs_drops_py4j_records_of_root_logger(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def log_from(path: str, text: str) -> None:
        record = logging.LogRecord("root", logging.ERROR, path, 1, text, (), None)
        logging.getLogger().handle(record)

    with silence_gateway_logs():
        log_from("/python/site-packages/py4j/java_gateway.py", "KeyboardInterrupt while sending")
        log_from("/python/site-packages/other/gateway.py", "another")
    log_from("/python/site-packages/py4j/java_gateway.py", "after it")
    assert caplog.messages == ["another", "after it"]


def test_silence_gateway_logs_drops_records_of_py4j_loggers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gateway, another = logging.getLogger("py4j.clientserver"), logging.getLogger("pyspark")
    with silence_gateway_logs():
        gateway.error("Exception while shutting down a socket")
        another.error("another")
    gateway.error("after it")
    assert caplog.messages == ["another", "after it"]
