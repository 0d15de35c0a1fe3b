"""The parent side: starts and replaces the worker process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import Counter
from multiprocessing import Pipe
from typing import TYPE_CHECKING, Final

from mm2slo_kafka.group_offsets.committed_offsets import describe_operation
from mm2slo_kafka.group_offsets.worker_messages import (
    Cluster,
    GroupFailure,
    OffsetsRequest,
    OffsetsResponse,
)
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from multiprocessing.connection import Connection

    from mm2slo_kafka.group_offsets.committed_offsets import GroupOffsets
    from mm2slo_kafka.request_counts import RequestCounts

_MODULE: Final = "mm2slo_kafka.group_offsets.worker_process"
_GRACE_SECONDS: Final = 5.0
"""Added to the timeout of a request, for the worker's start and response."""
_UNANSWERED: Final = frozenset({ErrorKind.UNREACHABLE, ErrorKind.TIMEOUT})
_CRASH_SIGNALS: Final = frozenset({signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS})


class GroupOffsetsReader:
    """Committed offsets of one cluster's groups. Thread-safe: reads are serialised.

    The worker starts with the first read. It is ended when it does not respond, and after a read
    without any answer, because librdkafka can fail to reconnect (see `AdminHandle`).
    """

    def __init__(self, alias: str, properties: Mapping[str, str], counts: RequestCounts) -> None:
        self._cluster = Cluster(alias, dict(properties))
        self._counts = counts
        self._lock = threading.Lock()
        self._running: _Process | None = None

    @property
    def pid(self) -> int | None:
        """The worker's process id; None while it is not running."""
        running = self._running
        return None if running is None else running.pid

    def read(
        self, groups: Iterable[str], *, max_in_flight: int, timeout: float
    ) -> dict[str, GroupOffsets | KafkaOperationError]:
        """Committed offsets, or the error, of each group; *timeout* bounds the whole call."""
        request = OffsetsRequest(tuple(dict.fromkeys(groups)), max_in_flight, timeout)
        if not request.groups:
            return {}
        with self._lock:
            answers = self._answers(request)
        return {group: self._to_result(group, each) for group, each in answers.items()}

    def close(self) -> None:
        """End the worker and a read in progress; a later read starts another worker."""
        running = self._running
        if running is not None:
            running.kill()
        with self._lock:
            self._end()

    def _answers(self, request: OffsetsRequest) -> Mapping[str, GroupOffsets | GroupFailure]:
        if self._running is None:
            self._running = _Process(self._cluster)
        outcome = self._running.send(request)
        if isinstance(outcome, GroupFailure):
            self._end()
            return dict.fromkeys(request.groups, outcome)
        for api, count in self._running.new_requests(outcome.requests).items():
            self._counts.add(api, count)
        if all(
            isinstance(a, GroupFailure) and a.kind in _UNANSWERED for a in outcome.groups.values()
        ):
            self._end()
        return outcome.groups

    def _end(self) -> None:
        if self._running is not None:
            self._running.end()
            self._running = None

    def _to_result(
        self, group: str, found: GroupOffsets | GroupFailure
    ) -> GroupOffsets | KafkaOperationError:
        if not isinstance(found, GroupFailure):
            return found
        return KafkaOperationError(
            found.kind,
            cluster=self._cluster.alias,
            operation=describe_operation(group),
            detail=found.detail,
            code=found.code,
        )


class _Process:
    def __init__(self, cluster: Cluster) -> None:
        ours, theirs = Pipe()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                # The worker imports from the same places as this process.
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        self.pid = process.pid
        self.end = weakref.finalize(self, _end, process, ours)
        self._process = process
        self._connection: Connection[Cluster | OffsetsRequest, OffsetsResponse] = ours
        self._unsent: Cluster | None = cluster
        self._seen: Counter[str] = Counter()

    def send(self, request: OffsetsRequest) -> OffsetsResponse | GroupFailure:
        """The response; a GroupFailure when the worker ends or does not respond."""
        deadline = time.monotonic() + request.timeout + _GRACE_SECONDS
        try:
            if self._unsent is not None:
                self._connection.send(self._unsent)
                self._unsent = None
            self._connection.send(request)
            if not self._connection.poll(max(0.0, deadline - time.monotonic())):
                return GroupFailure(ErrorKind.TIMEOUT, "the worker process does not respond", "")
            return self._connection.recv()
        except (EOFError, ConnectionError):
            return self._exit_failure()

    def kill(self) -> None:
        """Make a read in progress fail at once."""
        self._process.kill()

    def new_requests(self, requests: Mapping[str, int]) -> Counter[str]:
        """Requests since the last call, from the worker's running totals."""
        totals = Counter(requests)
        new = totals - self._seen
        self._seen = totals
        return new

    def _exit_failure(self) -> GroupFailure:
        code = self._process.wait()
        assert self._process.stderr is not None  # noqa: S101 - for the type checker
        output = self._process.stderr.read().decode(errors="replace").strip().splitlines()
        # A crash of librdkafka means a broken connection.
        has_crashed = code < 0 and -code in _CRASH_SIGNALS
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        detail = f"the worker process ended with {how} and is restarted"
        return GroupFailure(
            ErrorKind.UNREACHABLE if has_crashed else ErrorKind.OTHER,
            f"{detail}: {output[-1]}" if output else detail,
            "",
        )


def _end(
    process: subprocess.Popen[bytes],
    connection: Connection[Cluster | OffsetsRequest, OffsetsResponse],
) -> None:
    process.kill()  # the worker has no state to save
    process.wait()
    connection.close()
    if process.stderr is not None:
        process.stderr.close()
