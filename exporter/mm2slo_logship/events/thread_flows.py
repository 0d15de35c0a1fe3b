"""The flows of a worker's task threads."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

_LIMIT: Final = 10_000


class ThreadFlows:
    """Remembers in which flow a thread of a worker works.

    MirrorMaker 2 runs the connectors of all flows in one process under the same names, but each
    flow has a worker of its own with its own threads, and Java does not reuse the id of a thread.
    A task names its flow when it starts; that is the flow of this thread until the process ends.
    """

    def __init__(self) -> None:
        self._flows: OrderedDict[tuple[str, str], str] = OrderedDict()

    def learn(self, worker_start: str, thread_id: str, flow: str) -> None:
        """Remember the flow of a thread; the oldest are forgotten."""
        self._flows[worker_start, thread_id] = flow
        self._flows.move_to_end((worker_start, thread_id))
        if len(self._flows) > _LIMIT:
            self._flows.popitem(last=False)

    def flow(self, worker_start: str, thread_id: str) -> str:
        """Return the flow of a thread, or an empty string."""
        return self._flows.get((worker_start, thread_id), "")
