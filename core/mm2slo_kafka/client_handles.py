"""Creates librdkafka clients with their properties, logging, error and statistics callbacks."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from mm2slo_core.redaction import Redactor
from mm2slo_kafka.kafka_errors import LastConnectionError, translate, translated
from mm2slo_kafka.msk_iam import token_callback
from mm2slo_kafka.request_counts import RequestCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from confluent_kafka import KafkaError

    from mm2slo_kafka.kafka_errors import KafkaOperationError

logger = logging.getLogger(__name__)

_STATISTICS_MS = 10_000
_REPEAT_SECONDS = 60.0
_MOST_KINDS = 10  # lines of a facility within that time: a broker may answer random bytes
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

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.alias!r})"

    def admin(self) -> AdminClient:
        """A new admin client; raises KafkaOperationError for invalid properties."""
        with self._configuring():
            return AdminClient(self._settings({}), logger=_Log(self.alias, self.redact))

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

    def _settings(self, overrides: Mapping[str, str], *, statistics: bool = True) -> dict[str, Any]:
        settings: dict[str, Any] = {**_COMMON, **self._properties, **overrides}
        settings["error_cb"] = self.last_error.record
        if "sasl.oauthbearer.config" in settings:
            settings["oauth_cb"] = token_callback(settings["sasl.oauthbearer.config"])
        if statistics:
            settings["statistics.interval.ms"] = _STATISTICS_MS
            settings["stats_cb"] = self.counts.new_handle()
        return settings


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
