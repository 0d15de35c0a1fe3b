"""Pauses all requests to a cluster that has refused a login.

librdkafka does not distinguish a refused login from a lost connection: each client logs in again
within a second, and every five seconds later, at each broker. That fills the brokers' logs and
locks accounts of user directories.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from mm2slo_kafka.kafka_errors import ErrorKind, is_refused_login, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import KafkaError

_PAUSES: Final = (5.0, 56.0)
"""Seconds after the first and after each further refusal: at most two logins of a process fail
within a minute, thus four of an exporter, whose canaries have a process of their own."""
_PROVEN_SECONDS: Final = 60.0
"""A refusal after so long counts as the first one again."""
_UNREACHABLE_SECONDS: Final = 5.0


class LoginGate:
    """Whether clients of one cluster may log in. Thread-safe.

    *try_login* logs in once, with a client of its own, and returns why it failed. It is called
    before the first client connects, and after each pause.
    """

    def __init__(
        self,
        try_login: Callable[[], KafkaError | None],
        *,
        is_open: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._try_login = try_login
        self.is_open = is_open
        self._clock = clock
        self._lock = threading.Lock()
        self._refusal: KafkaError | None = None
        self._refusals = 0
        self._next_login = self._opened_at = clock()

    @property
    def is_shut(self) -> bool:
        return self._refusal is not None and not self.is_open

    @property
    def seconds_left(self) -> float:
        """Until the next login."""
        return max(self._next_login - self._clock(), 0.0)

    def refusal(self) -> KafkaError | None:
        """Why no client may connect now; logs in if that is due."""
        if self.is_open:
            return None
        with self._lock:  # others wait for the result of a login
            if not self.is_open and not self.seconds_left:
                self._log_in()
            return None if self.is_open else self._refusal

    def take_error(self, error: KafkaError) -> None:
        """Take an error of any client; called by librdkafka, so it does not wait."""
        if self.is_open and is_refused_login(error):
            self._shut(error)

    def retry_now(self) -> None:
        """Log in with the next request."""
        self._refusals = 0
        self._next_login = self._clock()

    def _log_in(self) -> None:
        error = self._try_login()
        if error is not None and is_refused_login(error):
            self._shut(error)
        elif error is None or self._refusal is None:
            # A cluster that does not respond fails each request by itself, with its own reason.
            self._refusal, self._opened_at, self.is_open = None, self._clock(), True
        else:
            # One that timed out may still be refused.
            has_timed_out = kind_of(error) is ErrorKind.TIMEOUT
            seconds = _PAUSES[-1] if has_timed_out else _UNREACHABLE_SECONDS
            self._next_login = self._clock() + seconds

    def _shut(self, refusal: KafkaError) -> None:
        if self.is_open and self._clock() - self._opened_at > _PROVEN_SECONDS:
            self._refusals = 0
        self._refusal = refusal
        self._next_login = self._clock() + _PAUSES[min(self._refusals, len(_PAUSES) - 1)]
        self._refusals += 1
        self.is_open = False
