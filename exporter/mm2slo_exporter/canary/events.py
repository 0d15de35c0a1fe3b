"""What the canary process tells the exporter: plain tuples, cheap to pickle.

Times are epoch seconds by the canary process's clock. `flow` is the flow's label.
"""

from __future__ import annotations

from typing import NamedTuple


class Scheduled(NamedTuple):
    """A canary fell due; it counts from now on, whether or not it can be sent."""

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
    """The source did not take a canary: our blindness, not the flow's fault."""

    flow: str
    sequence: int
    reason: str
    at: float


class Arrived(NamedTuple):
    """A canary of this instance was read on the target, for the first time or again.

    Before `Restored` it is one that was there when reading started: `at` is then the time of the
    read, not of the arrival.
    """

    flow: str
    sequence: int
    partition: int
    at: float


class HeartbeatSeen(NamedTuple):
    """One of MirrorMaker 2's heartbeats arrived on the target.

    `replayed` marks what was already there when reading started: it has no arrival time.
    """

    flow: str
    emitter: str
    """Alias of the cluster whose herder wrote it; each has a rhythm of its own."""
    emitted_at: float
    at: float
    replayed: bool


class ReadThrough(NamedTuple):
    """The target's carrier topic was read up to this offset (exclusive)."""

    flow: str
    partition: int
    offset: int
    at: float


class Resent(NamedTuple):
    """A canary of this instance found on the source at start: sent by an earlier process."""

    flow: str
    sequence: int
    partition: int
    offset: int
    sent_at: float
    floor: int | None
    newest_arrived: int | None


class Restored(NamedTuple):
    """All `Resent` and all earlier arrivals of a flow have been told; live events follow."""

    flow: str
    at: float


class Trouble(NamedTuple):
    """A stage of the canary process failed."""

    flow: str
    cluster: str
    stage: str
    kind: str
    message: str
    at: float


class Malformed(NamedTuple):
    """A record of a carrier topic could not be decoded; it was skipped."""

    flow: str
    cluster: str
    kind: str
    reason: str


class Working(NamedTuple):
    """A stage of the canary process succeeded."""

    flow: str
    cluster: str
    stage: str
    at: float


Event = (
    Scheduled
    | Produced
    | ProduceFailed
    | Arrived
    | HeartbeatSeen
    | ReadThrough
    | Resent
    | Restored
    | Trouble
    | Malformed
    | Working
)
