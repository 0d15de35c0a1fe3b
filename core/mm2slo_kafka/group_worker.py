"""Reads committed offsets and members of consumer groups in a separate process.

librdkafka (2.16, confluentinc/librdkafka pull request 5397) uses freed memory when the connection
to a group coordinator breaks during a request, and an assertion then ends the process. That
happens when a cluster stops or returns, which the exporter must survive. `GroupWorker` starts and
replaces the worker process, which runs `serve_groups`; their messages are pickled over a private
socket pair.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from enum import Enum
from multiprocessing.connection import Connection
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaError
from confluent_kafka.admin import AdminClient

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.client_handles import HandleFactory
from mm2slo_kafka.fork_server import FORK_SERVER
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.request_sizes import RequestWindow


@dataclass(frozen=True, slots=True)
class GroupsRequest:
    """Reads *groups* in this order, as many as can be requested *within* so many seconds.

    *timeout* bounds each request, *first_window* the requests in flight before the first answer.
    """

    subject: GroupProperty
    groups: tuple[str, ...]
    first_window: int
    within: float
    timeout: float


@dataclass(frozen=True, slots=True)
class GroupAnswer:
    """What was read of one group: offsets, or the number of members (None if unknown)."""

    group: str
    requested_at: float
    found: GroupOffsets | int | KafkaOperationError | None


@dataclass(frozen=True, slots=True)
class RequestEnded:
    """Follows the last answer: requests per Kafka API since the worker started."""

    requests: Mapping[str, int]


# Quoted: at run time, Connection is subscriptable since Python 3.12.
_Connection: TypeAlias = "Connection[GroupsRequest, GroupAnswer | RequestEnded]"
_Found = TypeVar("_Found")
_FIRST_WINDOW: Final = 16

_GRACE_SECONDS: Final = 5.0
"""Added to the time of a request, for the worker's start and response."""
_UNANSWERED: Final = frozenset({ErrorKind.UNREACHABLE, ErrorKind.TIMEOUT, ErrorKind.AUTHENTICATION})
_CRASH_SIGNALS: Final = frozenset({signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS})


@dataclass(frozen=True, slots=True)
class GroupRead(Generic[_Found]):
    """What was read of one group, or the error."""

    requested_at: float
    found: _Found | KafkaOperationError


class _WorkerEndedError(Exception):
    """The worker ended or does not respond."""

    def __init__(self, kind: ErrorKind, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


class GroupWorker:
    """Reads one cluster's groups. Thread-safe: reads are serialised.

    The worker starts with the first read. It is ended when it does not respond, and after a read
    without any answer, because librdkafka can fail to reconnect (see `AdminHandle`).
    """

    def __init__(self, properties: Mapping[str, str], handles: HandleFactory) -> None:
        self._properties = dict(properties)
        self._handles = handles
        self._lock = threading.Lock()
        self._running: _WorkerProcess | None = None
        self._first_window = _FIRST_WINDOW

    @property
    def pid(self) -> int | None:
        """The worker's process id; None while it is not running."""
        running = self._running
        return None if running is None else running.pid

    def offsets(
        self, groups: Iterable[str], *, within: float, timeout: float
    ) -> dict[str, GroupRead[GroupOffsets]]:
        """Committed offsets of each group that could be requested *within* so many seconds.

        *timeout* (seconds) bounds each request.
        """
        return self._read(GroupProperty.OFFSETS, groups, within, timeout)

    def members(
        self, groups: Iterable[str], *, within: float, timeout: float
    ) -> dict[str, GroupRead[int | None]]:
        """The number of members likewise; None if unknown."""
        return self._read(GroupProperty.MEMBERS, groups, within, timeout)

    def close(self) -> None:
        """End the worker and a read in progress; a later read starts another worker."""
        running = self._running
        if running is not None:
            running.kill()
        with self._lock:
            self._end()

    def close_idle(self) -> None:
        """End the worker unless a read is in progress."""
        if self._lock.acquire(blocking=False):
            self._end()
            self._lock.release()

    def _read(
        self, subject: GroupProperty, groups: Iterable[str], within: float, timeout: float
    ) -> dict[str, GroupRead[Any]]:
        wanted = tuple(dict.fromkeys(groups))
        if not wanted:
            return {}
        problem = self._handles.login_problem("reading groups")
        if problem is not None:
            return dict.fromkeys(wanted, GroupRead(time.time(), problem))
        with self._lock:
            request = GroupsRequest(subject, wanted, self._first_window, within, timeout)
            return {
                answer.group: GroupRead(answer.requested_at, answer.found)
                for answer in self._answers(request)
            }

    def _answers(self, request: GroupsRequest) -> list[GroupAnswer]:
        started = time.time()
        answers: list[GroupAnswer] = []
        try:
            if self._running is None:
                self._running = _start_worker(self._handles.alias, self._properties)
            for each in self._running.send(request):
                if isinstance(each, GroupAnswer):
                    answers.append(each)
                else:
                    self._count(self._running, each)
        except _WorkerEndedError as ended:
            self._end()
            # Otherwise, a group that crashes the worker could starve those requested with it.
            self._first_window = 1
            answered = {answer.group for answer in answers}
            pending = [group for group in request.groups if group not in answered]
            in_flight = pending[: request.first_window + len(answers)]
            for group in in_flight:
                failure = KafkaOperationError(
                    ended.kind,
                    cluster=self._handles.alias,
                    operation=request.subject.operation(group),
                    detail=ended.detail,
                )
                answers.append(GroupAnswer(group, started, failure))
            return answers
        self._first_window = _FIRST_WINDOW
        failures = [each.found for each in answers if isinstance(each.found, KafkaOperationError)]
        refused = (each for each in failures if each.kind is ErrorKind.AUTHENTICATION)
        if (refusal := next(refused, None)) is not None:
            self._handles.logins.take_error(KafkaError(KafkaError._AUTHENTICATION, refusal.detail))
        if len(failures) == len(answers) and all(each.kind in _UNANSWERED for each in failures):
            self._end()
        return answers

    def _count(self, process: _WorkerProcess, ended: RequestEnded) -> None:
        for api, count in process.new_requests(ended.requests).items():
            self._handles.counts.add(api, count)

    def _end(self) -> None:
        if self._running is not None:
            self._running.end()
            self._running = None


def _start_worker(alias: str, properties: Mapping[str, str]) -> _WorkerProcess:
    try:
        return _WorkerProcess(alias, properties)
    except OSError as error:
        detail = f"the worker process could not be started: {error}"
        raise _WorkerEndedError(ErrorKind.OTHER, detail) from None


class _WorkerProcess:
    def __init__(self, alias: str, properties: Mapping[str, str]) -> None:
        self._process = FORK_SERVER.start(serve_groups, alias, properties, capture_stderr=True)
        self.pid, self.kill, self.end = self._process.pid, self._process.kill, self._process.end
        self._connection: _Connection = self._process.connection
        self._seen: Counter[str] = Counter()

    def send(self, request: GroupsRequest) -> Iterator[GroupAnswer | RequestEnded]:
        """The worker's messages up to RequestEnded. Raises _WorkerEndedError."""
        deadline = time.monotonic() + request.within + request.timeout + _GRACE_SECONDS
        try:
            self._connection.send(request)
            message: GroupAnswer | RequestEnded | None = None
            while not isinstance(message, RequestEnded):
                if not self._connection.poll(max(0.0, deadline - time.monotonic())):
                    raise _WorkerEndedError(
                        ErrorKind.TIMEOUT, "the worker process does not respond"
                    )
                message = self._connection.recv()
                yield message
        except (EOFError, ConnectionError):
            raise self._exit_error() from None

    def new_requests(self, requests: Mapping[str, int]) -> Counter[str]:
        """Requests since the last call, from the worker's running totals."""
        totals = Counter(requests)
        new = totals - self._seen
        self._seen = totals
        return new

    def _exit_error(self) -> _WorkerEndedError:
        ended = self._process.end(_GRACE_SECONDS)
        # A crash of librdkafka means a broken connection.
        has_crashed = ended.code is not None and -ended.code in _CRASH_SIGNALS
        detail = f"the worker process ended with {ended} and is restarted"
        return _WorkerEndedError(
            ErrorKind.UNREACHABLE if has_crashed else ErrorKind.OTHER,
            f"{detail}: {ended.last_line}" if ended.last_line else detail,
        )


GroupOffsets = dict[TopicPartition, int]


def serve_groups(
    connection: Connection[GroupAnswer | RequestEnded, GroupsRequest],
    alias: str,
    properties: Mapping[str, str],
) -> None:
    """Serve requests in the worker process until its parent closes the connection.

    *properties* are librdkafka's, of the cluster with this alias.
    """
    # The parent's clients of the same cluster log the same.
    logging.getLogger().addHandler(logging.NullHandler())
    handles = HandleFactory(alias, properties)
    admin = handles.admin()
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        for answer in request_groups(handles, admin, request):
            connection.send(answer)
        connection.send(RequestEnded(handles.counts.totals()))


class _Pending(NamedTuple):
    group: str
    requested_at: float
    started: float


def request_groups(
    handles: HandleFactory, admin: AdminClient, request: GroupsRequest
) -> Iterator[GroupAnswer]:
    """Answers in the order of their arrival; groups not requested in time have none."""
    remaining = list(reversed(request.groups))
    window = RequestWindow(request.first_window, request.within)
    in_flight: dict[Future[Any], _Pending] = {}
    while True:
        while remaining and window.is_open and len(in_flight) < window.size(len(remaining)):
            group = remaining.pop()
            future = _start_request(admin, request.subject, group, request.timeout)
            in_flight[future] = _Pending(group, time.time(), time.monotonic())
        if not in_flight:
            admin.poll(0)
            return
        for future in wait(in_flight, return_when=FIRST_COMPLETED).done:
            group, requested_at, started = in_flight.pop(future)
            window.record_answer(time.monotonic() - started)
            found = _settle_request(handles, admin, request.subject, group, future)
            yield GroupAnswer(group, requested_at, found)


def _start_request(
    admin: AdminClient, subject: GroupProperty, group: str, timeout: float
) -> Future[Any]:
    if subject is GroupProperty.MEMBERS:
        return admin.describe_consumer_groups([group], request_timeout=timeout)[group]
    request = ConsumerGroupTopicPartitions(group)
    return admin.list_consumer_group_offsets([request], request_timeout=timeout)[group]


def _settle_request(
    handles: HandleFactory,
    admin: AdminClient,
    subject: GroupProperty,
    group: str,
    future: Future[Any],
) -> GroupOffsets | int | KafkaOperationError | None:
    failure = future.exception()
    if failure is not None:
        admin.poll(0)
        return handles.problem(failure, subject.operation(group))
    handles.last_error.clear()
    if subject is GroupProperty.MEMBERS:
        return _members(future.result())
    return {
        TopicPartition(found.topic, found.partition): found.offset
        for found in future.result().topic_partitions or ()
        if found.error is None and found.offset >= 0
    }


def _members(described: Any) -> int | None:
    """The number of members; None for a group that the broker does not describe."""
    return None if described.state is ConsumerGroupState.DEAD else len(described.members)


class GroupProperty(Enum):
    OFFSETS = "reading committed offsets of"
    MEMBERS = "describing"

    def operation(self, group: str) -> str:
        return f"{self.value} group {group!r}"
