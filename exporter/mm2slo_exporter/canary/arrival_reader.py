"""Reads the copies of all carrier topics on one target, in one thread with one consumer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mm2slo_kafka.shared_tail import SharedTail
from mm2slo_kafka.tail_group import TailGroup

if TYPE_CHECKING:
    import threading

    from mm2slo_exporter.canary.canary_receiver import CopyStream, Receiver
    from mm2slo_kafka.cluster_client import ClusterClient

_BATCH = 1000
_POLL_SECONDS = 0.2


class ArrivalReader:
    """Receivers are added in any thread, and read from then on."""

    def __init__(self, target: ClusterClient) -> None:
        self._target = target
        self._shared: SharedTail[CopyStream] = SharedTail()
        self._receivers: list[Receiver] = []

    def add(self, receiver: Receiver) -> None:
        """Read the heartbeats of *receiver*."""
        for stream in receiver.heartbeats:
            self._shared.follow(stream)
        self._receivers.append(receiver)

    def add_canaries(self, receiver: Receiver) -> None:
        """Read the canaries of *receiver*, whose earlier ones were reported."""
        for stream in receiver.canaries:
            self._shared.follow(stream)

    def run(self, stopping: threading.Event) -> None:
        # MirrorMaker 2 may use transactions: aborted records never arrived.
        group = TailGroup(self._target, isolation="read_committed", headers=True)
        self._shared.open(group)
        try:
            while not stopping.is_set():
                self._shared.poll(_BATCH, _POLL_SECONDS)
                at = time.time()
                for receiver in list(self._receivers):
                    receiver.report(at)
        finally:
            group.close()
