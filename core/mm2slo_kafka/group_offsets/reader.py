"""The asking side: starts the other process, and outlives it."""

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

from mm2slo_kafka.errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.group_offsets.asking import operation_of
from mm2slo_kafka.group_offsets.messages import Answer, Ask, Cluster, Failed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from multiprocessing.connection import Connection

    from mm2slo_kafka.group_offsets.asking import GroupOffsets
    from mm2slo_kafka.request_counts import RequestCounts

_MODULE: Final = "mm2slo_kafka.group_offsets.answering"
_GRACE_SECONDS: Final = 5.0
"""After a reading's own timeout: for the start of the process and its answer."""
_UNANSWERED: Final = frozenset({ErrorKind.UNREACHABLE, ErrorKind.TIMEOUT})
_OWN_FAULT: Final = frozenset({signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS})


class GroupOffsetsReader:
    """Committed offsets of one cluster's groups. Thread-safe: readings take turns.

    The process starts with the first reading. It is ended after one that nothing answered, for
    librdkafka can miss a broker's return for good (see `AdminHandle`), and when it is silent.
    """

    def __init__(self, alias: str, properties: Mapping[str, str], counts: RequestCounts) -> None:
        self._cluster = Cluster(alias, dict(properties))
        self._counts = counts
        self._lock = threading.Lock()
        self._running: _Process | None = None

    @property
    def pid(self) -> int | None:
        """Of the process that asks; None while there is none."""
        running = self._running
        return None if running is None else running.pid

    def read(
        self, groups: Iterable[str], *, max_in_flight: int, timeout: float
    ) -> dict[str, GroupOffsets | KafkaOperationError]:
        """Committed offsets of each group, or why not; *timeout* bounds the whole call."""
        ask = Ask(tuple(dict.fromkeys(groups)), max_in_flight, timeout)
        if not ask.groups:
            return {}
        with self._lock:
            answers = self._answers(ask)
        return {group: self._told(group, each) for group, each in answers.items()}

    def close(self) -> None:
        """End the process, and a reading under way; a later one starts another."""
        running = self._running
        if running is not None:
            running.kill()
        with self._lock:
            self._end()

    def _answers(self, ask: Ask) -> Mapping[str, GroupOffsets | Failed]:
        if self._running is None:
            self._running = _Process(self._cluster)
        outcome = self._running.ask(ask)
        if isinstance(outcome, Failed):
            self._end()
            return dict.fromkeys(ask.groups, outcome)
        for api, count in self._running.newly_sent(outcome.requests).items():
            self._counts.add(api, count)
        if all(isinstance(a, Failed) and a.kind in _UNANSWERED for a in outcome.groups.values()):
            self._end()
        return outcome.groups

    def _end(self) -> None:
        if self._running is not None:
            self._running.end()
            self._running = None

    def _told(self, group: str, found: GroupOffsets | Failed) -> GroupOffsets | KafkaOperationError:
        if not isinstance(found, Failed):
            return found
        return KafkaOperationError(
            found.kind,
            cluster=self._cluster.alias,
            operation=operation_of(group),
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
                # It finds what this process finds, wherever that came from.
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        self.pid = process.pid
        self.end = weakref.finalize(self, _end, process, ours)
        self._process = process
        self._connection: Connection[Cluster | Ask, Answer] = ours
        self._unsent: Cluster | None = cluster
        self._seen: Counter[str] = Counter()

    def ask(self, ask: Ask) -> Answer | Failed:
        """The answer; what stands for it when the process ends or says nothing."""
        deadline = time.monotonic() + ask.timeout + _GRACE_SECONDS
        try:
            if self._unsent is not None:
                self._connection.send(self._unsent)
                self._unsent = None
            self._connection.send(ask)
            if not self._connection.poll(max(0.0, deadline - time.monotonic())):
                return Failed(ErrorKind.TIMEOUT, "the process that asks for them is silent", "")
            return self._connection.recv()
        except (EOFError, ConnectionError):
            return self._ended()

    def kill(self) -> None:
        """Let a reading under way fail at once."""
        self._process.kill()

    def newly_sent(self, requests: Mapping[str, int]) -> Counter[str]:
        """Requests since the last call, of totals since the process started."""
        totals = Counter(requests)
        new = totals - self._seen
        self._seen = totals
        return new

    def _ended(self) -> Failed:
        code = self._process.wait()
        assert self._process.stderr is not None  # noqa: S101 - for the type checker
        told = self._process.stderr.read().decode(errors="replace").strip().splitlines()
        # Whose fault it is decides what to do about it: that of a broken connection, or of ours.
        fault = code < 0 and -code in _OWN_FAULT
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        detail = f"the process that asks for them ended by {how}, and is started again"
        return Failed(
            ErrorKind.UNREACHABLE if fault else ErrorKind.OTHER,
            f"{detail}: {told[-1]}" if told else detail,
            "",
        )


def _end(process: subprocess.Popen[bytes], connection: Connection[Cluster | Ask, Answer]) -> None:
    process.kill()  # it holds nothing that could be lost
    process.wait()
    connection.close()
    if process.stderr is not None:
        process.stderr.close()
