"""Creates librdkafka clients with their properties, logging, error and statistics callbacks."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from mm2slo_core.redaction import Redactor
from mm2slo_kafka.kafka_errors import (
    ErrorKind,
    KafkaOperationError,
    LastConnectionError,
    is_refused_login,
    translate,
    translated,
)
from mm2slo_kafka.login_gate import LoginGate
from mm2slo_kafka.msk_iam import token_callback
from mm2slo_kafka.request_counts import RequestCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

logger = logging.getLogger(__name__)

_STATISTICS_MS = 10_000
_REPEAT_SECONDS = 60.0
_MOST_KINDS = 10  # lines of a facility within that time: a broker may answer random bytes
_LOGIN_SECONDS = 5.0
_LOGIN: dict[str, str] = {
    **{f"reconnect.backoff{each}.ms": "60000" for each in ("", ".max")},  # only one login
    "group.id": "mm2slo",
}
_SECRET_MARKS = ("password", "secret", "key.pem", "jaas", "oauthbearer.config", "token", "userinfo")

_COMMON: dict[str, str] = {
    "client.id": "mm2slo",
    # Brokers close idle connections after ten minutes, which is not worth a log line.
    "log.connection.close": "false",
    "reconnect.backoff.ms": "250",
    "reconnect.backoff.max.ms": "5000",
    "socket.keepalive.enable": "true",
}
_TLS_KEYS = {
    "ssl.key.location": "security.tls.key_file with its key_password",
    "ssl.key.pem": "security.tls.key with its key_password",
    "ssl.ca.location": "security.tls.ca_file",
}
_NO_SERVERS = {"bootstrap.servers": "", "log_level": "0"}
_UNANSWERED = KafkaError(KafkaError._TIMED_OUT)
_NO_GROUP: dict[str, str] = {
    # Partitions are assigned manually and nothing is committed: the broker never sees the group.
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "allow.auto.create.topics": "false",
}


class HandleFactory:
    """Creates clients of one cluster that share last error, redaction and request counts."""

    def __init__(self, alias: str, properties: Mapping[str, str]) -> None:
        self.alias = alias
        self.last_error = LastConnectionError()
        self.counts = RequestCounts()
        self._properties = dict(properties)
        self.redact = Redactor(exact=_secrets(properties)).redact
        """Removes this cluster's secrets, and what looks like one, from a text."""
        has_logins = properties.get("security.protocol", "").upper().startswith("SASL")
        self.logins = LoginGate(self._log_in, is_open=not has_logins)
        self.close_idle: Callable[[], None] = lambda: None
        """Closes clients that are not in use, so that they do not log in meanwhile."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.alias!r})"

    def admin(self, *, connects: bool = True) -> AdminClient:
        """A new admin client; raises KafkaOperationError for invalid properties."""
        settings = self._settings({} if connects else _NO_SERVERS)
        with self._configuring():
            return AdminClient(settings, logger=_Log(self.alias, self.redact))

    def consumer(self, overrides: Mapping[str, str], *, statistics: bool = True) -> Consumer:
        """A new consumer for assigned partitions, without group membership."""
        settings = self._settings(
            {"group.id": f"mm2slo-{uuid.uuid4()}", **_NO_GROUP, **overrides}, statistics=statistics
        )
        with self._configuring():
            return Consumer(settings, logger=_Log(self.alias, self.redact))

    def producer(self, overrides: Mapping[str, str]) -> Producer:
        with self._configuring():
            return Producer(self._settings(overrides), logger=_Log(self.alias, self.redact))

    def login_problem(self, operation: str) -> KafkaOperationError | None:
        """Why *operation* cannot be requested now: the cluster has refused the last login."""
        refusal = self.logins.refusal()
        if refusal is None:
            return None
        self.close_idle()
        return KafkaOperationError(
            ErrorKind.AUTHENTICATION,
            cluster=self.alias,
            operation=operation,
            detail=self.redact(refusal.str())
            + f"; all requests pause, the next login follows in {self.logins.seconds_left:.0f} s",
            code=refusal.name(),
        )

    def check_login(self, operation: str) -> None:
        """Raise KafkaOperationError while requests pause because a login was refused."""
        problem = self.login_problem(operation)
        if problem is not None:
            raise problem

    def errors(self, operation: str, *, answered: bool = False) -> AbstractContextManager[None]:
        """Raise errors of the block as KafkaOperationError.

        With *answered*, success means that the cluster answered.
        """
        return translated(
            self.alias, operation, last_error=self.last_error, redact=self.redact, answered=answered
        )

    def _configuring(self) -> AbstractContextManager[None]:
        """As `errors`, with the keys of mm2slo.yaml instead of librdkafka's."""

        def rename(text: str) -> str:
            for name, key in _TLS_KEYS.items():
                text = text.replace(f"{name} failed", f"{key} cannot be used")
            return self.redact(text)

        return translated(self.alias, "configuring the client", redact=rename)

    def problem(self, error: KafkaError | BaseException, operation: str) -> KafkaOperationError:
        """Translate one error, with the last connection error as its cause."""
        return translate(
            error, self.alias, operation, last_error=self.last_error, redact=self.redact
        )

    def _log_in(self) -> KafkaError | None:
        """Log in once, at the first server that responds; the error if that fails."""
        failure = _UNANSWERED
        for server in self._properties["bootstrap.servers"].split(","):
            found = LastConnectionError()
            overrides = {**_LOGIN, **_NO_GROUP, "bootstrap.servers": server}
            settings = {**self._settings(overrides, statistics=False), "error_cb": found.record}
            with self._configuring():
                consumer = Consumer(settings, logger=_Log(self.alias, self.redact))
            wait, end = 0.1, time.monotonic() + _LOGIN_SECONDS
            try:
                while found.newest is None and time.monotonic() < end:
                    try:
                        # A topic that every cluster has: a list of all of them may be long.
                        consumer.list_topics("__consumer_offsets", timeout=wait)
                    except KafkaException:
                        consumer.poll(0)
                        wait *= 2
                    else:
                        return None
            finally:
                consumer.close()
            if found.newest is not None:
                failure = found.newest
            if is_refused_login(failure):
                break
        return failure

    def _settings(self, overrides: Mapping[str, str], *, statistics: bool = True) -> dict[str, Any]:
        settings: dict[str, Any] = {**_COMMON, **self._properties, **overrides}
        settings["error_cb"] = self._take_error
        if "sasl.oauthbearer.config" in settings:
            settings["oauth_cb"] = token_callback(settings["sasl.oauthbearer.config"])
        if statistics:
            settings["statistics.interval.ms"] = _STATISTICS_MS
            settings["stats_cb"] = self.counts.new_handle()
        return settings

    def _take_error(self, error: KafkaError) -> None:
        self.last_error.record(error)
        self.logins.take_error(error)


def _secrets(properties: Mapping[str, str]) -> set[str]:
    return {
        str(value)
        for name, value in properties.items()
        if any(mark in name for mark in _SECRET_MARKS)
    }


class _Log:
    """Writes librdkafka's log lines to this module's log, redacted and without repetitions.

    librdkafka calls `log(level, format, facility, name, text)`, as of `logging.Logger`. Failures
    are logged as warnings at most: the caller gets them as KafkaOperationError and decides.
    """

    def __init__(self, alias: str, redact: Callable[[str], str]) -> None:
        self._alias = alias
        self._redact = redact
        self._lock = threading.Lock()
        self._logged_at: dict[tuple[str, str], float] = {}

    def log(self, level: int, template: str, *arguments: object) -> None:
        facility = str(arguments[0]) if arguments else ""
        text = self._redact(template % arguments)
        # Connection attempts repeat four times a second and differ only in their duration.
        kind, now = (facility, text.split("(after", 1)[0]), time.monotonic()
        with self._lock:
            self._logged_at = {
                each: at for each, at in self._logged_at.items() if now - at < _REPEAT_SECONDS
            }
            of_facility = sum(each[0] == facility for each in self._logged_at)
            if kind in self._logged_at or of_facility >= _MOST_KINDS:
                return
            self._logged_at[kind] = now
        logger.log(min(level, logging.WARNING), "librdkafka on cluster %s: %s", self._alias, text)
