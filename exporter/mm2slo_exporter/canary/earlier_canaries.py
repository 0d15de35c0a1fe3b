"""Reads the canaries on a carrier topic that an earlier process of this replica sent."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mm2slo_kafka.tailed_topic import TailState
from mm2slo_kafka.topic_tail import TopicTail

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from mm2slo_exporter.canary.canary_receiver import Receiver
    from mm2slo_kafka.cluster_client import ClusterClient

_INSTANCE_TIMEOUT_SECONDS = 25.0
_READ_TIMEOUT_SECONDS = 15.0
_POLL_SECONDS = 0.2


class EarlierCanaries:
    """Those of all flows that share the topic; it is read once."""

    def __init__(
        self,
        source: ClusterClient,
        topic: str,
        receivers: Sequence[Receiver],
        instance: Callable[[], str | None],
    ) -> None:
        """*instance*: the name of this replica, None while it has none."""
        self._source = source
        self._topic = topic
        self._receivers = receivers
        self._instance = instance

    def report(self, stopping: threading.Event) -> None:
        """Report them to the receivers; without a name after 25 s, or an answer, go on."""
        name = self._await_instance(stopping)
        if name is None:
            return
        for receiver in self._receivers:
            receiver.report_instance(name)
        start = min(receiver.since for receiver in self._receivers)
        tail = TopicTail(self._source, self._topic, start=start, headers=True)
        deadline = time.monotonic() + _READ_TIMEOUT_SECONDS
        problem = None
        try:
            while not stopping.is_set() and time.monotonic() < deadline:
                batch = tail.poll(max_records=1000, timeout=_POLL_SECONDS)
                problem = batch.problem or problem
                for receiver in self._receivers:
                    receiver.take_earlier(batch.records)
                if tail.caught_up or tail.state is TailState.ABSENT:
                    return
        finally:
            tail.close()
        if problem is not None:
            for receiver in self._receivers:
                receiver.report_unread(problem)

    def _await_instance(self, stopping: threading.Event) -> str | None:
        """Wait for the name under which an earlier process may have sent canaries."""
        deadline = time.monotonic() + _INSTANCE_TIMEOUT_SECONDS
        while (name := self._instance()) is None and time.monotonic() < deadline:
            if stopping.wait(_POLL_SECONDS):
                return None
        return name
