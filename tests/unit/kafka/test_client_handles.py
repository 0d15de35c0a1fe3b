import logging
import time

import pytest

from mm2slo_kafka.client_handles import HandleFactory, _Log
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError

SECRET = "correct-horse-battery"


def test_constructor_for_unreachable_cluster_does_not_block() -> None:
    started = time.monotonic()
    with ClusterClient("eu", {"bootstrap.servers": "no-such-host.invalid:9092"}):
        # A connection would be tried for 30 s.
        assert time.monotonic() - started < 20


def test_constructor_with_invalid_property_names_it() -> None:
    with pytest.raises(KafkaOperationError, match=r"socket\.timeout\.ms") as caught:
        ClusterClient("eu", {"bootstrap.servers": "x:1", "socket.timeout.ms": "soon"})
    assert caught.value.kind is ErrorKind.INVALID_CONFIG


def test_secrets_are_redacted_in_texts_and_errors() -> None:
    factory = HandleFactory("eu", {"sasl.username": "app", "sasl.password": SECRET})
    assert factory.redact(f"login as app with {SECRET} failed") == (
        "login as app with [redacted] failed"
    )
    assert SECRET not in repr(factory)
    problem = factory.problem(ValueError(f"bad {SECRET}"), "x")
    assert SECRET not in str(problem)


def test_librdkafka_log_is_redacted_and_deduplicated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    factory = HandleFactory("eu", {"sasl.password": SECRET})
    log = _Log("eu", factory.redact)
    with caplog.at_level(logging.DEBUG):
        for milliseconds in range(3):
            text = f"Connect failed with {SECRET} (after {milliseconds}ms in state CONNECT)"
            log.log(logging.ERROR, "%s [%s] %s", "FAIL", "mm2slo#consumer-1", text)
    assert [(found.levelno, found.getMessage()) for found in caplog.records] == [
        (
            logging.WARNING,
            (
                "librdkafka on cluster eu: FAIL [mm2slo#consumer-1] "
                "Connect failed with [redacted] (after 0ms in state CONNECT)"
            ),
        )
    ]


def test_librdkafka_log_of_random_answers_is_limited_by_facility(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = _Log("eu", str)
    for size in range(400):
        log.log(logging.ERROR, "%s [%s] %s", "PROTOERR", "c-1", f"Invalid response size {size}")
    log.log(logging.ERROR, "%s [%s] %s", "FAIL", "c-1", "Disconnected")
    assert [each.getMessage().split()[4] for each in caplog.records] == ["PROTOERR"] * 10 + ["FAIL"]


def test_librdkafka_writes_nothing_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    unreachable = ClusterClient("eu", {"bootstrap.servers": "127.0.0.1:1"})
    with unreachable as client, pytest.raises(KafkaOperationError):
        client.topics(timeout=0.5)
    assert capfd.readouterr().err == ""
