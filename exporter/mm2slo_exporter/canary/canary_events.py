"""Events from the canary process to the exporter: plain tuples, cheap to pickle.

Times are epoch seconds by the canary process's clock. `flow` is the flow's label.
"""

from __future__ import annotations

from typing import NamedTuple


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
    """A stage of the canary process failed."""

    flow: str
    cluster: str
    stage: str
    kind: str
    message: str
    at: float


class Malformed(NamedTuple):
    """A record of a carrier topic could not be decoded and was skipped."""

    flow: str
    cluster: str
    kind: str
    reason: str


class StageSucceeded(NamedTuple):
    """A stage of the canary process succeeded."""

    flow: str
    cluster: str
    stage: str
    at: float


Event = (
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
