from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from mm2slo_kafka.errors import (
    CauseMemory,
    ErrorKind,
    KafkaOperationError,
    kind_of,
    translate,
    translated,
)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_AUTHENTICATION", ErrorKind.AUTHENTICATION),
        ("SASL_AUTHENTICATION_FAILED", ErrorKind.AUTHENTICATION),
        ("TOPIC_AUTHORIZATION_FAILED", ErrorKind.AUTHORIZATION),
        ("GROUP_AUTHORIZATION_FAILED", ErrorKind.AUTHORIZATION),
        ("_TRANSPORT", ErrorKind.UNREACHABLE),
        ("_ALL_BROKERS_DOWN", ErrorKind.UNREACHABLE),
        ("_RESOLVE", ErrorKind.UNREACHABLE),
        ("LEADER_NOT_AVAILABLE", ErrorKind.UNREACHABLE),
        ("_TIMED_OUT", ErrorKind.TIMEOUT),
        ("REQUEST_TIMED_OUT", ErrorKind.TIMEOUT),
        ("UNKNOWN_TOPIC_OR_PART", ErrorKind.UNKNOWN_TOPIC),
        ("_UNKNOWN_PARTITION", ErrorKind.UNKNOWN_TOPIC),
        ("OFFSET_OUT_OF_RANGE", ErrorKind.OFFSET_OUT_OF_RANGE),
        ("_AUTO_OFFSET_RESET", ErrorKind.OFFSET_OUT_OF_RANGE),
        ("_SSL", ErrorKind.TLS),
        ("INVALID_REPLICATION_FACTOR", ErrorKind.INVALID_CONFIG),
        ("UNKNOWN", ErrorKind.OTHER),
    ],
)
def test_each_error_of_kafka_has_one_kind(name: str, kind: ErrorKind) -> None:
    assert kind_of(KafkaError(getattr(KafkaError, name))) is kind


def test_the_text_says_what_failed_where_why_and_what_to_do() -> None:
    error = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "no entry to orders"))
    problem = translate(error, "eu", "reading end offsets")
    assert str(problem) == (
        "reading end offsets on cluster eu failed (authorization): no entry to orders; "
        "grant the user Describe and Read on it (docs/permissions.md)"
    )
    assert problem.code == "TOPIC_AUTHORIZATION_FAILED"
    assert problem.next_step.startswith("grant")


def test_a_timeout_is_reported_with_the_refused_login_behind_it() -> None:
    causes = CauseMemory()
    causes.remember(KafkaError(KafkaError._AUTHENTICATION, "wrong password"))
    causes.remember(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    timeout = KafkaError(KafkaError._TIMED_OUT, "Failed to get metadata")
    problem = translate(timeout, "eu", "listing topics", causes=causes)
    assert problem.kind is ErrorKind.AUTHENTICATION
    assert problem.detail == "Failed to get metadata; cause: wrong password"


def test_why_one_broker_is_down_outranks_that_all_are() -> None:
    causes = CauseMemory()
    causes.remember(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    causes.remember(KafkaError(KafkaError._TRANSPORT, "connection refused"))
    causes.remember(KafkaError(KafkaError._ALL_BROKERS_DOWN, "2/2 brokers are down"))
    assert causes.newest is not None
    assert causes.newest.str() == "connection refused"


def test_an_error_that_blocks_nothing_is_not_remembered() -> None:
    causes = CauseMemory()
    causes.remember(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    assert causes.newest is None


@pytest.mark.parametrize("answered", [True, False])
def test_the_cause_is_forgotten_when_the_cluster_answers_and_no_sooner(answered: bool) -> None:
    causes = CauseMemory()
    causes.remember(KafkaError(KafkaError._SSL, "handshake failed"))
    with translated("eu", "listing topics", causes=causes, answered=answered):
        pass
    assert (causes.newest is None) is answered


def test_an_answer_about_a_topic_is_not_blamed_on_the_connection() -> None:
    causes = CauseMemory()
    causes.remember(KafkaError(KafkaError._SSL, "handshake failed"))
    unknown = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    assert translate(unknown, "eu", "x", causes=causes).kind is ErrorKind.UNKNOWN_TOPIC


def test_a_problem_passes_through_unchanged() -> None:
    inner = KafkaOperationError(ErrorKind.TLS, cluster="eu", operation="a", detail="b")
    with pytest.raises(KafkaOperationError) as caught, translated("us", "another"):
        raise inner
    assert caught.value is inner


def test_a_wrong_argument_is_told_with_its_type() -> None:
    wrong = pytest.raises(KafkaOperationError, match=r"\(other\): ValueError: bad name")
    with wrong as caught, translated("us", "describing topics"):
        raise ValueError("bad name")
    assert caught.value.kind is ErrorKind.OTHER


def test_a_connection_lost_within_the_handshake_is_a_matter_of_tls() -> None:
    lost = "Disconnected: connection reset by peer (after 0ms in state SSL_HANDSHAKE)"
    assert kind_of(KafkaError(KafkaError._TRANSPORT, lost)) is ErrorKind.TLS
    plain = "Disconnected: connection reset by peer (after 0ms in state UP)"
    assert kind_of(KafkaError(KafkaError._TRANSPORT, plain)) is ErrorKind.UNREACHABLE
