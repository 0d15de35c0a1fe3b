"""The admin client of one cluster, made anew when it has failed for too long."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mm2slo_kafka.errors import ErrorKind, KafkaOperationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from confluent_kafka.admin import AdminClient

    from mm2slo_kafka.handles import HandleFactory

logger = logging.getLogger(__name__)

_PATIENCE_SECONDS = 15.0
_UNANSWERED = frozenset({ErrorKind.UNREACHABLE, ErrorKind.TIMEOUT})


class AdminHandle:
    """Hands out the admin client, and replaces one that nothing has answered for 15 s.

    librdkafka 2.16 can miss the return of a broker for good: after a restart of the only broker,
    2 of 12 clients never connected again, whatever was asked of them, and a new one did at once.
    Thread-safe. Who uses the old client still goes on with it.
    """

    def __init__(self, handles: HandleFactory, clock: Callable[[], float] = time.monotonic) -> None:
        self._handles = handles
        self._clock = clock
        self._lock = threading.Lock()
        self._admin = handles.admin()
        self._failing_since: float | None = None

    def get(self) -> AdminClient:
        """The client to ask now."""
        with self._lock:
            since = self._failing_since
            if since is not None and self._clock() - since >= _PATIENCE_SECONDS:
                logger.debug("making a new admin client of cluster %s", self._handles.alias)
                self._admin = self._handles.admin()
                self._failing_since = None
            return self._admin

    @contextmanager
    def asking(self) -> Iterator[AdminClient]:
        """The client for one request, whose outcome is taken note of."""
        try:
            yield self.get()
        except KafkaOperationError as problem:
            self._note(problem)
            raise
        else:
            self._note(None)

    def note(self, answer: Future[Any]) -> None:
        """Take note of a future's outcome, as its callback; its failures are KafkaProblems."""
        self._note(answer.exception())

    def _note(self, failure: BaseException | None) -> None:
        unanswered = isinstance(failure, KafkaOperationError) and failure.kind in _UNANSWERED
        with self._lock:
            if not unanswered:
                self._failing_since = None
            elif self._failing_since is None:
                self._failing_since = self._clock()
