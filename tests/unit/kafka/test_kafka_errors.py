import pytest
from confluent_kafka import KafkaError, KafkaException

from mm2slo_kafka.kafka_errors import (
    ErrorKind,
    KafkaOperationError,
    LastConnectionError,
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
def test_kind_of_known_error_code_returns_kind(name: str, kind: ErrorKind) -> None:
    assert kind_of(KafkaError(getattr(KafkaError, name))) is kind


def test_error_message_names_operation_cluster_reason_and_action() -> None:
    error = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "no entry to orders"))
    problem = translate(error, "eu", "reading end offsets")
    assert str(problem) == (
        "reading end offsets on cluster eu failed (authorization): no entry to orders; "
        "grant the user Describe and Read on it (docs/permissions.md)"
    )
    assert problem.code == "TOPIC_AUTHORIZATION_FAILED"
    assert problem.next_step.startswith("grant")


def test_translate_timeout_after_failed_login_reports_authentication() -> None:
    last_error = LastConnectionError()
    last_error.record(KafkaError(KafkaError._AUTHENTICATION, "wrong password"))
    last_error.record(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    timeout = KafkaError(KafkaError._TIMED_OUT, "GroupFailure to get metadata")
    problem = translate(timeout, "eu", "listing topics", last_error=last_error)
    assert problem.kind is ErrorKind.AUTHENTICATION
    assert problem.detail == "GroupFailure to get metadata; cause: wrong password"


def test_last_error_prefers_broker_error_to_all_brokers_down() -> None:
    last_error = LastConnectionError()
    last_error.record(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    last_error.record(KafkaError(KafkaError._TRANSPORT, "connection refused"))
    last_error.record(KafkaError(KafkaError._ALL_BROKERS_DOWN, "2/2 brokers are down"))
    assert last_error.newest is not None
    assert last_error.newest.str() == "connection refused"


def test_last_error_ignores_topic_authorization() -> None:
    last_error = LastConnectionError()
    last_error.record(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    assert last_error.newest is None


@pytest.mark.parametrize("answered", [True, False])
def test_last_error_is_cleared_only_when_cluster_answered(answered: bool) -> None:
    last_error = LastConnectionError()
    last_error.record(KafkaError(KafkaError._SSL, "handshake failed"))
    with translated("eu", "listing topics", last_error=last_error, answered=answered):
        pass
    assert (last_error.newest is None) is answered


def test_translate_unknown_topic_ignores_last_connection_error() -> None:
    last_error = LastConnectionError()
    last_error.record(KafkaError(KafkaError._SSL, "handshake failed"))
    unknown = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    assert translate(unknown, "eu", "x", last_error=last_error).kind is ErrorKind.UNKNOWN_TOPIC


def test_translated_kafka_operation_error_is_unchanged() -> None:
    inner = KafkaOperationError(ErrorKind.TLS, cluster="eu", operation="a", detail="b")
    with pytest.raises(KafkaOperationError) as caught, translated("us", "another"):
        raise inner
    assert caught.value is inner


def test_translated_value_error_names_its_type() -> None:
    wrong = pytest.raises(KafkaOperationError, match=r"\(other\): ValueError: bad name")
    with wrong as caught, translated("us", "describing topics"):
        raise ValueError("bad name")
    assert caught.value.kind is ErrorKind.OTHER


def test_kind_of_connection_lost_in_handshake_is_tls() -> None:
    lost = "Disconnected: connection reset by peer (after 0ms in state SSL_HANDSHAKE)"
    assert kind_of(KafkaError(KafkaError._TRANSPORT, lost)) is ErrorKind.TLS
    plain = "Disconnected: connection reset by peer (after 0ms in state UP)"
    assert kind_of(KafkaError(KafkaError._TRANSPORT, plain)) is ErrorKind.UNREACHABLE
