"""What the exporter and the canary process send each other: settings, events, ledger states.

Events are plain tuples, cheap to pickle. Times are epoch seconds by the canary process's clock.
`flow` is the flow's label. Ledger states are those of the newest scraped counters: others are lost
with the process.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from mm2slo_kafka.kafka_errors import KafkaOperationError


class InstanceNamed(NamedTuple):
    """The name that this replica's canaries carry from now on."""

    flow: str
    instance: str


class Scheduled(NamedTuple):
    """A canary is due; it counts even if it cannot be sent."""

    flow: str
    sequence: int
    partition: int
    at: float


class Produced(NamedTuple):
    """The source acknowledged a canary at this offset."""

    flow: str
    sequence: int
    partition: int
    offset: int
    at: float


class ProduceFailed(NamedTuple):
    """The source did not accept a canary; its outcome is unknown."""

    flow: str
    sequence: int
    reason: str
    at: float


class Arrived(NamedTuple):
    """A canary of this instance was read on the target, for the first time or again.

    *reread*: the record existed when reading started, so `at` is the time of the read, not of the
    arrival. It may have been read before, if the copy is read from its start again.
    """

    flow: str
    sequence: int
    partition: int
    at: float
    reread: bool = False


class HeartbeatSeen(NamedTuple):
    """One of MirrorMaker 2's heartbeats arrived on the target.

    `replayed`: it already existed when reading started, so its arrival time is unknown.
    """

    flow: str
    emitter: str
    """Alias of the cluster whose herder wrote it; each herder has its own schedule."""
    emitted_at: float
    at: float
    replayed: bool


class ReadUpTo(NamedTuple):
    """The target's carrier topic was read up to this offset (exclusive)."""

    flow: str
    partition: int
    offset: int
    at: float


class SourceTopicRecreated(NamedTuple):
    """The carrier topic was deleted and created again; offsets before are of the deleted topic."""

    flow: str
    at: float


class TargetReadRestarted(NamedTuple):
    """The copy was re-created, or lost records: it is read from its start again."""

    flow: str
    at: float


class EarlierCanary(NamedTuple):
    """A canary of an earlier process of this instance, found on the source at start."""

    flow: str
    sequence: int
    partition: int
    offset: int
    sent_at: float
    floor: int | None
    newest_arrived: int | None
    settled_to: float | None = None


class RestoreFinished(NamedTuple):
    """All earlier canaries and arrivals of a flow have been reported; live events follow."""

    flow: str
    at: float


class StageFailed(NamedTuple):
    flow: str
    cluster: str
    stage: str
    kind: str
    message: str
    at: float

    @classmethod
    def of(
        cls, problem: KafkaOperationError, *, flow: str, cluster: str, stage: str, at: float
    ) -> Self:
        return cls(flow, cluster, stage, problem.kind.value, str(problem), at)


class Malformed(NamedTuple):
    """A record of a carrier topic could not be decoded and was skipped."""

    flow: str
    cluster: str
    kind: str
    reason: str


class StageSucceeded(NamedTuple):
    flow: str
    cluster: str
    stage: str
    at: float


CanaryEvent = (
    InstanceNamed
    | Scheduled
    | Produced
    | ProduceFailed
    | Arrived
    | HeartbeatSeen
    | ReadUpTo
    | SourceTopicRecreated
    | TargetReadRestarted
    | EarlierCanary
    | RestoreFinished
    | StageFailed
    | Malformed
    | StageSucceeded
)


class EventBuffer:
    """Events in order, put and taken by different threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: list[CanaryEvent] = []

    def put(self, *events: CanaryEvent) -> None:
        with self._lock:
            self._events += events

    def take(self) -> list[CanaryEvent]:
        with self._lock:
            events, self._events = self._events, []
        return events


class LedgerState(NamedTuple):
    """All sequences below `floor` are settled; `newest_arrived` is the highest that arrived.

    Deadlines up to `settled_to` are settled.
    """

    floor: int | None = None
    newest_arrived: int | None = None
    settled_to: float | None = None


LedgerStates = dict[str, LedgerState]
"""By flow label. Written by one thread and read by others: entries are replaced as a whole."""


@dataclass(frozen=True, slots=True)
class CanarySpec:
    """The settings of one flow. Client properties contain secrets and are never printed."""

    flow: str
    instance: str | None
    """Name of this replica in its canaries; None: by a leased number."""
    source_alias: str
    target_alias: str
    source_client: Mapping[str, str] = field(repr=False)
    target_client: Mapping[str, str] = field(repr=False)
    heartbeats_topic_on_target: str | None
    """None: the flow's engine has no heartbeats, or the name of their copy is not known."""
    carrier: str
    """`heartbeats`, `topic`, or `off`; with `off`, nothing is sent and heartbeats are only read."""
    source_topic: str
    target_topic: str
    interval_seconds: float
    restore_seconds: float
    """How far back canaries of an earlier process are read at start."""
