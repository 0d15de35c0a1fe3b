"""State of a flow that survives the exporter: certain loss, verdicts, recovery point.

Key: `<flow>/<kind>/<name>`, UTF-8, with the flow's slug, in a compacted topic on the target. Name:
a topic (the second and later parts of one with many partitions end in `/1`, `/2`, ...), a group, or
nothing. Value: JSON in UTF-8, version 1, at most 100 KB:

    losses    i  string|null  topic id; `p` {partition: [records lost, judged to]}
    group     b  [[reason, topic|null, partition|null, records|null]]; `c` checkpoint lag; `r`
                 [lower, upper] redelivery; `s` [lower, upper] skipped; `t` [time of the
                 checkpoint, of the commits]; `u` [unreplicated records, seconds]
    recovery  u  [unreplicated records, seconds]; `t` time of the source's last reading
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Self, TypeAlias

from mm2slo_core.indicators.group_readiness import Blocked, BlockReason, GroupReadiness
from mm2slo_core.records.connect_records import decode_versioned, unexpected_shape
from mm2slo_core.topology import TopicPartition

VERSION = 1

PARTITIONS_PER_RECORD = 1_500
"""48 bytes each at most: 72 KB, well below a producer's default `max.request.size` of 1 MiB."""
_KIND = "state"
_dump = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class StateKind(StrEnum):
    LOSSES = "losses"
    GROUP = "group"
    RECOVERY = "recovery"


class StateKey(NamedTuple):
    """*flow* is a slug; *name* a topic or group, with a suffix for parts of a topic."""

    flow: str
    kind: StateKind
    name: str

    def encode(self) -> bytes:
        return "/".join(self).encode()

    @classmethod
    def decode(cls, key: bytes | None) -> Self:
        """Raises DecodeError for another key."""
        try:
            # Slugs and names of topics have no slash; a group may have any characters, so the rest
            # is its name.
            flow, kind, name = (key or b"").decode().split("/", 2)
            return cls(flow, StateKind(kind), name)
        except ValueError:
            raise unexpected_shape(_KIND, "the key is not flow/kind/name") from None


class TopicLosses(NamedTuple):
    """The losses of a topic's partitions; *topic_id* is that of the log they refer to."""

    topic_id: str | None
    partitions: Mapping[int, SavedLoss]

    def split(self, flow: str, topic: str) -> Iterator[tuple[StateKey, TopicLosses]]:
        """The records of a topic, each of a range of its partitions."""
        parts: dict[int, dict[int, SavedLoss]] = {}
        for number, loss in sorted(self.partitions.items()):
            parts.setdefault(number // PARTITIONS_PER_RECORD, {})[number] = loss
        for part, losses in parts.items():
            name = f"{topic}/{part}" if part else topic
            yield StateKey(flow, StateKind.LOSSES, name), self._replace(partitions=losses)


class GroupVerdict(NamedTuple):
    """The last readiness of a group, without that of its partitions; times in epoch seconds."""

    readiness: GroupReadiness
    checkpoint_at: float | None
    commits_at: float | None
    unreplicated: tuple[int | None, float | None]
    """Records, and the age of the oldest in seconds."""

    def is_same(self, other: State | None) -> bool:
        """Whether both are ready, or blocked for the same reasons."""
        if not isinstance(other, GroupVerdict):
            return False
        reasons = ({each.reason for each in v.readiness.blocked} for v in (self, other))
        return next(reasons) == next(reasons)


class RecoveryPoint(NamedTuple):
    """The unreplicated records and seconds of a flow when its source was last read."""

    records: int | None
    seconds: float | None
    read_at: float


State: TypeAlias = TopicLosses | GroupVerdict | RecoveryPoint


def encode_state(state: State) -> bytes:
    """Encode the value of a record."""
    fields: dict[str, Any]
    match state:
        case TopicLosses():
            losses = {str(n): (loss.total, loss.judged_to) for n, loss in state.partitions.items()}
            fields = {"i": state.topic_id, "p": losses}
        case GroupVerdict():
            found = state.readiness
            fields = {
                "b": [
                    (each.reason, *(each.partition or (None, None)), each.records)
                    for each in found.blocked
                ],
                "c": found.checkpoint_lag,
                "r": (found.redelivery_lower, found.redelivery_upper),
                "s": found.skipped,
                "t": (state.checkpoint_at, state.commits_at),
                "u": state.unreplicated,
            }
        case RecoveryPoint():
            fields = {"u": (state.records, state.seconds), "t": state.read_at}
    return _dump({"v": VERSION, **fields}).encode()


def decode_state(key: StateKey, value: bytes) -> State:
    """Decode the value of a record. Raises DecodeError if it is damaged or of another version."""
    found = decode_versioned(_KIND, value, VERSION)
    try:
        match key.kind:
            case StateKind.LOSSES:
                return _losses(found)
            case StateKind.GROUP:
                return _verdict(key.name, found)
            case StateKind.RECOVERY:
                records, seconds = found["u"]
                return RecoveryPoint(records, seconds, float(found["t"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise unexpected_shape(_KIND, f"{key.kind} record: {error!r}") from None


def _losses(found: dict[str, Any]) -> TopicLosses:
    return TopicLosses(
        found["i"],
        {
            int(number): SavedLoss(int(total), int(judged_to))
            for number, (total, judged_to) in found["p"].items()
        },
    )


def _verdict(group: str, found: dict[str, Any]) -> GroupVerdict:
    blocked = tuple(
        Blocked(
            BlockReason(reason),
            None if topic is None else TopicPartition(topic, int(partition)),
            records,
        )
        for reason, topic, partition, records in found["b"]
    )
    lower, upper = found["r"]
    least, most = found["s"]
    checkpoint_at, commits_at = found["t"]
    records, seconds = found["u"]
    readiness = GroupReadiness(
        group=group,
        ready=not blocked,
        blocked=blocked,
        checkpoint_lag=found["c"],
        redelivery_lower=lower,
        redelivery_upper=upper,
        partitions=(),
        skipped=(least, most),
    )
    return GroupVerdict(readiness, checkpoint_at, commits_at, (records, seconds))


@dataclass(frozen=True, slots=True)
class SavedLoss:
    """The state of a partition's loss counter that must survive a restart."""

    total: int
    judged_to: int
    """All lower offsets are replicated or counted as lost."""


class _Sample(NamedTuple):
    at: float
    next_offset: int
    log_start: int
    live: bool
    target_end: int | None


class _Skip(NamedTuple):
    """A live position passed [first, until) with *records* fewer copies."""

    first: int
    until: int
    records: int


class CertainLoss:
    """Counts the records of one partition that retention removed before they were replicated.

    A gap (log start beyond the position) counts when a second sample confirms it, at least one
    position period later: one committed position may be a minute old. It is confirmed if
    (a) the position is still below the log start of the first sample, or
    (b) the position has jumped over it (MM2 resumed at the log start) while the target grew by
        fewer records than the position advanced; both positions must be live.
    A running or resuming MM2 is often at its new position before the log start is read. So offsets
    that a live position passed without copies count as well if the next reading of the log start
    shows that they were removed. Most of the removed ones must be without a copy: in topics with
    transactions that are purged at once, some are without a record.

    Invariants, where each offset is a record:
    A. The total never decreases.
    B. It never exceeds the true loss: what one sample cannot prove does not count yet.
    C. Each offset is judged once: all below `judged_to` are replicated or counted as lost.
    D. The loss of a flow that is stopped is complete after two samples.
    Compacted offsets and transaction markers count as well: an upper bound in such topics.
    """

    __slots__ = ("_before", "_judged_to", "_skips", "_total")

    def __init__(self) -> None:
        self._total = 0
        self._judged_to = 0
        self._before: _Sample | None = None
        self._skips: tuple[_Skip, ...] = ()

    @property
    def total(self) -> int:
        return self._total

    @property
    def saved(self) -> SavedLoss:
        """The state to restore after a restart."""
        return SavedLoss(self._total, self._judged_to)

    def observe(
        self,
        at: float,
        next_offset: int,
        log_start: int,
        *,
        position_period: float = 0.0,
        target_end: int | None = None,
        log_start_read: bool = False,
    ) -> int:
        """Add the sample of time *at* and return the number of newly confirmed lost records.

        *position_period*: longest time between updates of a healthy position; 0 for a live one,
        MM2's flush interval if only committed offsets are known. *target_end* is the end offset of
        the target partition at this position. *log_start_read*: whether *log_start* was read
        after the position, not in an earlier round.
        """
        before = self._before
        if before is not None and at - before.at < position_period:
            return 0
        now = _Sample(at, next_offset, log_start, position_period == 0, target_end)
        self._before = now
        lost = 0
        if before is not None:
            lost = self._confirmed(before, now)
            if lost:
                self._judged_to = max(self._judged_to, before.log_start)  # C
            else:
                self._note_skip(before, now)
        if log_start_read:
            lost += self._removed(log_start)
            self._skips = ()
        self._total += lost
        # C: records below the position are replicated or counted; a position that goes back later
        # (MM2 resumes from an older commit after a crash) must not turn them into loss.
        self._judged_to = max(self._judged_to, next_offset)
        return lost

    def continue_from(self, saved: SavedLoss) -> None:
        """Take over what another process has counted of the same log."""
        self._total = max(self._total, saved.total)
        self._judged_to = max(self._judged_to, saved.judged_to)

    def add_skipped(self, records: int, next_offset: int) -> None:
        """Count records that MirrorMaker 2 skipped below *next_offset* of a re-created log."""
        self._total += records
        self._judged_to = next_offset

    def source_recreated(self) -> None:
        """Restart after a re-creation or truncation, which counts no loss."""
        self._before = None
        self._judged_to = 0
        self._skips = ()

    def _note_skip(self, before: _Sample, now: _Sample) -> None:
        copies = _copies(before, now)
        if not copies:
            return  # no copy shows where MM2 is: the position passed offsets without records
        first = self._judged_to
        if now.next_offset > first + copies:
            skip = _Skip(first, now.next_offset, now.next_offset - first - copies)
            self._skips = (*self._skips, skip)

    def _removed(self, log_start: int) -> int:
        """How many of the offsets without copies were removed."""
        lost = 0
        for skip in self._skips:
            removed = min(log_start, skip.until) - skip.first
            if 0 < removed < 2 * skip.records:
                lost += min(skip.records, removed)
        return lost

    def _confirmed(self, before: _Sample, now: _Sample) -> int:
        # B: the log start of the first sample. What retention removed since then, the position may
        # have passed before.
        first = self._judged_to
        gap = before.log_start - first
        if gap <= 0:
            return 0
        if now.next_offset < before.log_start:
            return before.log_start - max(first, now.next_offset)
        copies = _copies(before, now)
        return 0 if copies is None else min(max(now.next_offset - first - copies, 0), gap)


def _copies(before: _Sample, now: _Sample) -> int | None:
    """The growth of the target; None without live positions, or if the target was re-created."""
    if not (before.live and now.live) or before.target_end is None or now.target_end is None:
        return None
    copies = now.target_end - before.target_end
    return copies if copies >= 0 else None
