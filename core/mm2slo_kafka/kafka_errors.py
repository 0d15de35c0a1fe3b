"""One exception for failed Kafka requests, with a closed list of kinds.

librdkafka reports failed logins and TLS handshakes only through its error callback, while the
affected call times out. `LastConnectionError` keeps the newest such event, so that the timeout is
reported with its cause. `call_in_background` passes failures on to another thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException


class ErrorKind(StrEnum):
    """Why a request, or one of its partitions, failed."""

    AUTHENTICATION = "authentication"
    AUTHORIZATION = "authorization"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    UNKNOWN_TOPIC = "unknown_topic"
    OFFSET_OUT_OF_RANGE = "offset_out_of_range"
    TLS = "tls"
    INVALID_CONFIG = "invalid_config"
    OTHER = "other"


_CODES: dict[ErrorKind, tuple[str, ...]] = {
    ErrorKind.AUTHENTICATION: (
        "_AUTHENTICATION",
        "SASL_AUTHENTICATION_FAILED",
        "UNSUPPORTED_SASL_MECHANISM",
        "ILLEGAL_SASL_STATE",
    ),
    ErrorKind.AUTHORIZATION: (
        "TOPIC_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "CLUSTER_AUTHORIZATION_FAILED",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    ),
    ErrorKind.UNREACHABLE: (
        "_TRANSPORT",
        "_ALL_BROKERS_DOWN",
        "_RESOLVE",
        "_UNKNOWN_BROKER",
        "BROKER_NOT_AVAILABLE",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_FOR_PARTITION",
        "COORDINATOR_NOT_AVAILABLE",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "NOT_COORDINATOR",
        "NOT_CONTROLLER",
        "NETWORK_EXCEPTION",
    ),
    ErrorKind.TIMEOUT: ("_TIMED_OUT", "_TIMED_OUT_QUEUE", "_MSG_TIMED_OUT", "REQUEST_TIMED_OUT"),
    ErrorKind.UNKNOWN_TOPIC: (
        "UNKNOWN_TOPIC_OR_PART",
        "UNKNOWN_TOPIC_ID",
        "INCONSISTENT_TOPIC_ID",
        "_UNKNOWN_TOPIC",
        "_UNKNOWN_PARTITION",
    ),
    ErrorKind.OFFSET_OUT_OF_RANGE: ("OFFSET_OUT_OF_RANGE", "_AUTO_OFFSET_RESET", "_LOG_TRUNCATION"),
    ErrorKind.TLS: ("_SSL",),
    ErrorKind.INVALID_CONFIG: (
        "_INVALID_ARG",
        "INVALID_CONFIG",
        "INVALID_PARTITIONS",
        "INVALID_REPLICATION_FACTOR",
        "POLICY_VIOLATION",
        "TOPIC_EXCEPTION",
    ),
}

_KIND_OF_CODE: dict[int, ErrorKind] = {
    getattr(KafkaError, name): kind for kind, names in _CODES.items() for name in names
}

_NEXT_STEP: dict[ErrorKind, str] = {
    ErrorKind.AUTHENTICATION: "check the mechanism, user name and password of this cluster",
    ErrorKind.AUTHORIZATION: "grant the user Describe and Read on it (docs/permissions.md)",
    ErrorKind.UNREACHABLE: "check bootstrap_servers, the network, and that the brokers are up",
    ErrorKind.TIMEOUT: "check the brokers' load and the network; the request is retried",
    ErrorKind.UNKNOWN_TOPIC: "check the name; a topic that is created later is picked up",
    ErrorKind.OFFSET_OUT_OF_RANGE: "the records were removed or the topic was re-created",
    ErrorKind.TLS: "check ca_file, the certificate and its names, and the listener's protocol",
    ErrorKind.INVALID_CONFIG: "correct the value in the configuration of this cluster",
    ErrorKind.OTHER: "see Kafka's error message",
}


class KafkaOperationError(Exception):
    """A request to a cluster failed. The message is one sentence without secrets."""

    def __init__(
        self, kind: ErrorKind, *, cluster: str, operation: str, detail: str, code: str = ""
    ) -> None:
        super().__init__(
            f"{operation} on cluster {cluster} failed ({kind}): {detail}; {_NEXT_STEP[kind]}"
        )
        self.kind = kind
        self.cluster = cluster
        self.operation = operation
        self.detail = detail
        self.code = code
        """Kafka's or librdkafka's error name; empty without one."""

    def __reduce__(self) -> tuple[Callable[[], KafkaOperationError], tuple[()]]:
        # Exceptions are pickled by their message alone, which this class does not accept.
        create = partial(
            type(self),
            self.kind,
            cluster=self.cluster,
            operation=self.operation,
            detail=self.detail,
            code=self.code,
        )
        return create, ()

    @property
    def next_step(self) -> str:
        return _NEXT_STEP[self.kind]


_PROTOCOL_MISMATCH = (
    "SSL handshake failed",
    "incorrect security.protocol configuration",
    # The peer closed the connection during the handshake; which text appears depends on timing.
    "in state SSL_HANDSHAKE",
)
"""What librdkafka adds to a lost connection when the two sides use different protocols."""

_LOST_DURING_LOGIN = "failed: Local: "
"""librdkafka calls a connection that ends during a login an authentication error, too."""
_WITHOUT_TOKEN = ("acquire SASL OAUTHBEARER token", "no token available")


def is_refused_login(error: KafkaError) -> bool:
    """Whether a broker has refused a login; without a token, there was none."""
    return kind_of(error) is ErrorKind.AUTHENTICATION and not any(
        sign in error.str() for sign in _WITHOUT_TOKEN
    )


def kind_of(error: KafkaError) -> ErrorKind:
    kind = _KIND_OF_CODE.get(error.code(), ErrorKind.OTHER)
    if kind is ErrorKind.AUTHENTICATION and _LOST_DURING_LOGIN in error.str():
        return ErrorKind.UNREACHABLE
    if kind is ErrorKind.UNREACHABLE and any(sign in error.str() for sign in _PROTOCOL_MISMATCH):
        return ErrorKind.TLS
    return kind


def translate(
    error: KafkaError | BaseException,
    cluster: str,
    operation: str,
    *,
    last_error: LastConnectionError | None = None,
    redact: Callable[[str], str] = str,
) -> KafkaOperationError:
    """Turn what confluent-kafka raised or returned into a `KafkaOperationError`."""
    if isinstance(error, KafkaOperationError):
        return error
    found = error.args[0] if isinstance(error, KafkaException) and error.args else error
    if not isinstance(found, KafkaError):
        # confluent-kafka raises TypeError, ValueError and RuntimeError for wrong arguments.
        return KafkaOperationError(
            ErrorKind.TIMEOUT if isinstance(found, TimeoutError) else ErrorKind.OTHER,
            cluster=cluster,
            operation=operation,
            detail=redact(f"{type(found).__name__}: {found}"),
        )
    kind, detail = kind_of(found), found.str()
    if last_error is not None and kind in {ErrorKind.TIMEOUT, ErrorKind.UNREACHABLE}:
        cause = last_error.newest
        if cause is not None:
            kind, detail = kind_of(cause), f"{detail}; cause: {cause.str()}"
    return KafkaOperationError(
        kind, cluster=cluster, operation=operation, detail=redact(detail), code=found.name()
    )


@contextmanager
def translated(
    cluster: str,
    operation: str,
    *,
    last_error: LastConnectionError | None = None,
    redact: Callable[[str], str] = str,
    answered: bool = False,
) -> Iterator[None]:
    """Raise what confluent-kafka raises inside as a `KafkaOperationError`.

    With *answered*, success means that the cluster answered, which clears the cause.
    """
    try:
        yield
    except KafkaOperationError:
        raise
    except (KafkaException, RuntimeError, ValueError, TypeError, TimeoutError, OSError) as error:
        # Without a variable: a cycle with this frame would keep clients open until it is collected.
        raise translate(error, cluster, operation, last_error=last_error, redact=redact) from None
    if answered and last_error is not None:
        last_error.clear()


_CONNECTION_ERROR_KINDS = frozenset(
    {ErrorKind.AUTHENTICATION, ErrorKind.TLS, ErrorKind.UNREACHABLE}
)


class LastConnectionError:
    """The newest reason why a cluster is unreachable, until a request succeeds.

    A failed login or handshake takes precedence over the lost connection that follows from it.
    Thread-safe: librdkafka's callbacks report from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: KafkaError | None = None

    @property
    def newest(self) -> KafkaError | None:
        """The newest connection error; None after a success."""
        return self._newest

    def record(self, error: KafkaError) -> None:
        kind = kind_of(error)
        if kind not in _CONNECTION_ERROR_KINDS:
            return
        with self._lock:
            held = self._newest
            if held is None or kind is not ErrorKind.UNREACHABLE:
                self._newest = error
            elif kind_of(held) is kind and error.code() != KafkaError._ALL_BROKERS_DOWN:
                # "All brokers are down" is less specific than the error of one broker.
                self._newest = error

    def clear(self) -> None:
        """Clear the error after a successful request."""
        if self._newest is not None:
            with self._lock:
                self._newest = None


T = TypeVar("T")


def call_in_background(work: Callable[[], T], purpose: str) -> Future[T]:
    """Run *work* in a daemon thread, which ends with it; *purpose* is part of its name."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except KafkaOperationError as error:
            # Its frames would keep clients open for as long as the future is kept.
            done.set_exception(error.with_traceback(None))
        except Exception as error:  # noqa: BLE001 - raised again by `result`
            done.set_exception(error)

    name = f"{threading.current_thread().name}-{purpose}"
    threading.Thread(target=run, name=name, daemon=True).start()
    return done
