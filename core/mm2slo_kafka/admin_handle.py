"""The admin client of one cluster, replaced when it has failed for too long."""

from __future__ import annotations

import gc
import logging
import threading
import time
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from confluent_kafka.admin import AdminClient

    from mm2slo_kafka.client_handles import HandleFactory

logger = logging.getLogger(__name__)

_REPLACE_AFTER_SECONDS = 15.0
_UNANSWERED = frozenset({ErrorKind.UNREACHABLE, ErrorKind.TIMEOUT})


class AdminHandle:
    """Provides the admin client, and replaces it after 15 s without an answer.

    librdkafka 2.16 can fail to reconnect: after a restart of the only broker, 2 of 12 clients
    never connected again, while a new client connected at once. Thread-safe. Callers that hold
    the old client keep using it.
    """

    def __init__(self, handles: HandleFactory, clock: Callable[[], float] = time.monotonic) -> None:
        self._handles = handles
        self._clock = clock
        self._lock = threading.Lock()
        can_connect = handles.logins.is_open  # a client logs in when it is made
        admin = handles.admin(connects=can_connect)
        self._admin: AdminClient | None = admin if can_connect else None
        self._failing_since: float | None = None
        self._dropped: weakref.ref[AdminClient] | None = None
        self._dropped_at = 0.0

    def get(self) -> AdminClient:
        """The client. Raises KafkaOperationError while requests pause."""
        self._handles.check_login("connecting")
        with self._lock:
            since = self._failing_since
            if since is not None and self._clock() - since >= _REPLACE_AFTER_SECONDS:
                logger.debug("making a new admin client of cluster %s", self._handles.alias)
                self._admin, self._failing_since = None, None
            if self._admin is None:
                self._admin = self._handles.admin()
            return self._admin

    def drop(self) -> None:
        """Close the client once requests in progress have ended."""
        with self._lock:
            if self._admin is not None:
                self._dropped, self._dropped_at = weakref.ref(self._admin), self._clock()
                self._admin = None
            is_late = self._clock() - self._dropped_at > _REPLACE_AFTER_SECONDS
            if is_late and self._dropped is not None:
                if self._dropped() is not None:
                    gc.collect()  # cycles of an error with its frames keep it open
                self._dropped = None

    @contextmanager
    def request(self) -> Iterator[AdminClient]:
        """The client for one request, whose outcome is recorded."""
        try:
            yield self.get()
        except KafkaOperationError as error:
            self._record(error)
            raise
        else:
            self._record(None)

    def record_outcome(self, answer: Future[Any]) -> None:
        """Done callback of a future whose failures are KafkaOperationErrors."""
        self._record(answer.exception())

    def _record(self, failure: BaseException | None) -> None:
        unanswered = isinstance(failure, KafkaOperationError) and failure.kind in _UNANSWERED
        with self._lock:
            if not unanswered:
                self._failing_since = None
            elif self._failing_since is None:
                self._failing_since = self._clock()
