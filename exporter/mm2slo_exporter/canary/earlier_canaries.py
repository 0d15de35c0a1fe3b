"""Reads the canaries on a carrier topic that an earlier process of this replica sent."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mm2slo_kafka.kafka_errors import ErrorKind
from mm2slo_kafka.tailed_topic import TailState
from mm2slo_kafka.topic_tail import TopicTail

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from mm2slo_exporter.canary.canary_receiver import Receiver
    from mm2slo_kafka.cluster_client import ClusterClient

_POLL_SECONDS = 0.2
_REPORT_SECONDS = 5.0


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

    def report(self, stopping: threading.Event) -> bool:
        """Report them to the receivers; False if *stopping* was set before the source answered.

        That it denies the access is an answer. Going on without one would lose them.
        """
        while (name := self._instance()) is None:
            if stopping.wait(_POLL_SECONDS):
                return False
        for receiver in self._receivers:
            receiver.report_instance(name)
        start = min(receiver.since for receiver in self._receivers)
        tail = TopicTail(self._source, self._topic, start=start, headers=True)
        report_at = 0.0
        try:
            while not stopping.is_set():
                batch = tail.poll(max_records=1000, timeout=_POLL_SECONDS)
                for receiver in self._receivers:
                    receiver.take_earlier(batch.records)
                if tail.caught_up or tail.state is TailState.ABSENT:
                    return True
                if batch.problem is not None and time.monotonic() >= report_at:
                    report_at = time.monotonic() + _REPORT_SECONDS
                    for receiver in self._receivers:
                        receiver.report_unread(batch.problem)
                    if batch.problem.kind is ErrorKind.AUTHORIZATION:
                        return True
        finally:
            tail.close()
        return False
