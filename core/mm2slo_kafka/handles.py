"""Makes librdkafka handles: properties, logging, error memory and statistics in one place."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from mm2slo_kafka.errors import CauseMemory, translate, translated
from mm2slo_kafka.request_counts import RequestCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from confluent_kafka import KafkaError

    from mm2slo_kafka.errors import KafkaOperationError

logger = logging.getLogger(__name__)

_STATISTICS_MS = 10_000
_REPEAT_SECONDS = 60.0
_REDACTED = "[redacted]"
_SECRET_MARKS = ("password", "secret", "key.pem", "jaas", "oauthbearer.config", "token", "userinfo")
_SHORTEST_SECRET = 3  # below that, replacing it would tear up unrelated words

_COMMON: dict[str, str] = {
    "client.id": "mm2slo",
    # Idle connections are closed by brokers after ten minutes: no news.
    "log.connection.close": "false",
    "reconnect.backoff.ms": "250",
    "reconnect.backoff.max.ms": "5000",
    "socket.keepalive.enable": "true",
}
_NO_GROUP: dict[str, str] = {
    # Partitions are assigned by hand and nothing is committed: the broker never sees the group.
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "allow.auto.create.topics": "false",
}


class HandleFactory:
    """Client handles of one cluster, sharing cause memory, redaction and request counts."""

    def __init__(self, alias: str, properties: Mapping[str, str]) -> None:
        self.alias = alias
        self.causes = CauseMemory()
        self.counts = RequestCounts()
        self._properties = dict(properties)
        self._secrets = _secrets(properties)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.alias!r})"

    def admin(self) -> AdminClient:
        """A new admin client; raises KafkaOperationError for properties that cannot work."""
        with self.errors("configuring the client"):
            return AdminClient(self._settings({}), logger=_Log(self.alias, self.redact))

    def consumer(self, overrides: Mapping[str, str], *, statistics: bool = True) -> Consumer:
        """A new consumer for assigned partitions, without group membership."""
        settings = self._settings(
            {"group.id": f"mm2slo-{uuid.uuid4()}", **_NO_GROUP, **overrides}, statistics=statistics
        )
        with self.errors("configuring the client"):
            return Consumer(settings, logger=_Log(self.alias, self.redact))

    def producer(self, overrides: Mapping[str, str]) -> Producer:
        """A new producer."""
        with self.errors("configuring the client"):
            return Producer(self._settings(overrides), logger=_Log(self.alias, self.redact))

    def errors(self, operation: str, *, answered: bool = False) -> AbstractContextManager[None]:
        """Raise what happens inside as KafkaOperationError.

        With *answered*, getting through means that the cluster answered.
        """
        return translated(
            self.alias, operation, causes=self.causes, redact=self.redact, answered=answered
        )

    def problem(self, error: KafkaError | BaseException, operation: str) -> KafkaOperationError:
        """Translate one error, with its remembered cause."""
        return translate(error, self.alias, operation, causes=self.causes, redact=self.redact)

    def redact(self, text: str) -> str:
        """The text without the values of this cluster's secret properties."""
        for secret in self._secrets:
            text = text.replace(secret, _REDACTED)
        return text

    def _settings(self, overrides: Mapping[str, str], *, statistics: bool = True) -> dict[str, Any]:
        settings: dict[str, Any] = {**_COMMON, **self._properties, **overrides}
        settings["error_cb"] = self.causes.remember
        if statistics:
            settings["statistics.interval.ms"] = _STATISTICS_MS
            settings["stats_cb"] = self.counts.new_handle()
        return settings


def _secrets(properties: Mapping[str, str]) -> tuple[str, ...]:
    found = {
        str(value)
        for name, value in properties.items()
        if any(mark in name for mark in _SECRET_MARKS) and len(str(value)) >= _SHORTEST_SECRET
    }
    return tuple(sorted(found, key=len, reverse=True))


class _Log:
    """What librdkafka logs, redacted, with repetitions left out, as this module's log.

    librdkafka calls `log(level, format, facility, name, text)` as a `logging.Logger` has it.
    A failure is at most a warning here: the caller gets it as KafkaOperationError and decides.
    """

    def __init__(self, alias: str, redact: Callable[[str], str]) -> None:
        self._alias = alias
        self._redact = redact
        self._lock = threading.Lock()
        self._told: dict[tuple[str, str], float] = {}

    def log(self, level: int, template: str, *arguments: object) -> None:
        facility = str(arguments[0]) if arguments else ""
        text = self._redact(template % arguments)
        # Connection attempts repeat four times a second; what differs is the time they took.
        kind, now = (facility, text.split("(after", 1)[0]), time.monotonic()
        with self._lock:
            if now - self._told.get(kind, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
                return
            if len(self._told) > 1000:
                self._told.clear()
            self._told[kind] = now
        logger.log(min(level, logging.WARNING), "librdkafka on cluster %s: %s", self._alias, text)
