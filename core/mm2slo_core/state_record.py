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
from enum import StrEnum
from typing import Any, NamedTuple, Self, TypeAlias

from mm2slo_core.indicators.certain_loss import SavedLoss
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
