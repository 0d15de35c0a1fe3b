"""Creates librdkafka clients with their properties, logins, logs, errors and statistics.

`HandleFactory` makes every client of a cluster. `AdminHandle` replaces an admin client that fails
for too long; `LoginGate` pauses all requests after a refused login, because librdkafka does not
distinguish it from a lost connection: each client logs in again within a second, and every five
seconds later, at each broker. That fills the brokers' logs and locks accounts of user directories.
"""

import gc
import importlib
import json
import logging
import threading
import time
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from mm2slo_core.log_redaction import Redactor
from mm2slo_core.user_errors import MissingExtraError
from mm2slo_kafka.kafka_errors import (
    ErrorKind,
    KafkaOperationError,
    LastConnectionError,
    is_refused_login,
    kind_of,
    translate,
    translated,
)

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
_LOGIN_TIMED_OUT = KafkaError(KafkaError._TIMED_OUT)

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
        failure = _LOGIN_TIMED_OUT
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
            settings["oauth_cb"] = msk_token_callback(settings["sasl.oauthbearer.config"])
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


_REPLACE_AFTER_SECONDS = 15.0
_UNANSWERED_KINDS = frozenset({ErrorKind.UNREACHABLE, ErrorKind.TIMEOUT})


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
        unanswered = isinstance(failure, KafkaOperationError) and failure.kind in _UNANSWERED_KINDS
        with self._lock:
            if not unanswered:
                self._failing_since = None
            elif self._failing_since is None:
                self._failing_since = self._clock()


_LOGIN_PAUSES: Final = (5.0, 56.0)
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
            seconds = _LOGIN_PAUSES[-1] if has_timed_out else _UNREACHABLE_SECONDS
            self._next_login = self._clock() + seconds

    def _shut(self, refusal: KafkaError) -> None:
        if self.is_open and self._clock() - self._opened_at > _PROVEN_SECONDS:
            self._refusals = 0
        self._refusal = refusal
        self._next_login = (
            self._clock() + _LOGIN_PAUSES[min(self._refusals, len(_LOGIN_PAUSES) - 1)]
        )
        self._refusals += 1
        self.is_open = False


class RequestCounts:
    """Requests sent to one cluster since start, over all its clients. Thread-safe.

    Each client reports running totals per broker and API name (`brokers.<name>.req` in
    librdkafka's STATISTICS.md); counts of closed clients are kept.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals: Counter[str] = Counter()

    def totals(self) -> Mapping[str, int]:
        """Requests per API name, such as `ListOffsets`, by each client's newest statistics."""
        with self._lock:
            return dict(self._totals)

    def add(self, api: str, count: int = 1) -> None:
        """Count requests of a client without statistics."""
        with self._lock:
            self._totals[api] += count

    def new_handle(self) -> Callable[[str], None]:
        """A statistics callback for one new client."""
        seen: Counter[str] = Counter()

        def on_statistics(document: str) -> None:
            current: Counter[str] = Counter()
            for broker in json.loads(document)["brokers"].values():
                current.update({api: count for api, count in broker["req"].items() if count})
            with self._lock:
                self._totals.update(current - seen)
            seen.clear()
            seen.update(current)

        return on_statistics


_MSK_SIGNER = "aws_msk_iam_sasl_signer.MSKAuthTokenProvider"


def msk_token_callback(config: str) -> Callable[[str], tuple[str, float]]:
    """The `oauth_cb` of a client; *config* as rendered by `client_security`."""
    aws = json.loads(config)
    try:
        signer = importlib.import_module(_MSK_SIGNER)
    except ModuleNotFoundError as missing:
        module = missing.name or _MSK_SIGNER
        raise MissingExtraError(module=module, extra="msk") from None
    name = "generate_auth_token_from_role_arn" if "role_arn" in aws else "generate_auth_token"

    def new_token(_config: str) -> tuple[str, float]:
        token, expiry_ms = getattr(signer, name)(**aws)
        return token, expiry_ms / 1000

    return new_token
