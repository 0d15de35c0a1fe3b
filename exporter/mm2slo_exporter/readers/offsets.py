"""Reads the offsets of one flow, in the order that keeps lag from being negative."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from mm2slo_exporter.health import Health, Stage
from mm2slo_exporter.observation import OffsetsRead
from mm2slo_kafka.errors import ErrorKind, KafkaOperationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mm2slo_core.topology import TopicPartition
    from mm2slo_kafka.offsets import Isolation, OffsetReading

READ_COMMITTED: Final = "read_committed"
READ_UNCOMMITTED: Final = "read_uncommitted"
_SHORT_SECONDS = 1.0
_PATIENT_EVERY_SECONDS = 30.0


class OffsetSource(Protocol):
    """The part of a cluster client that asks for offsets, many partitions at a time."""

    alias: str

    def end_offsets(
        self, partitions: Sequence[TopicPartition], isolation: Isolation = ..., timeout: float = ...
    ) -> OffsetReading:
        """High watermarks, or last stable offsets when reading committed."""

    def start_offsets(
        self, partitions: Sequence[TopicPartition], timeout: float = ...
    ) -> OffsetReading:
        """Log starts."""


class SideReader:
    """End and start offsets of one side of a flow; starts are read less often than ends."""

    def __init__(
        self,
        client: OffsetSource,
        health: Health,
        *,
        starts_every: float,
        stable_ends: bool = False,
        timeout: float = 5.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._health = health
        self._starts_every = starts_every
        self._stable_ends = stable_ends
        self._timeout = timeout
        self._clock = clock
        self._starts_due = 0.0
        self._partitions: Sequence[TopicPartition] = ()
        self._failing = False
        self._patient_at = 0.0
        self.newest: OffsetsRead | None = None

    @property
    def readable(self) -> bool:
        """Whether the newest round was answered."""
        return self.newest is not None and not self._failing

    def read(self, partitions: Sequence[TopicPartition]) -> None:
        """Read one round; on failure the newest answer stays, and `readable` is False."""
        if not partitions:
            self.newest, self._failing = self._empty(), False
            return
        try:
            self._read_ends(partitions)
            if self._clock() >= self._starts_due or partitions != self._partitions:
                self._read_starts(partitions)
        except KafkaOperationError:
            if not self._failing or self._clock() >= self._patient_at:
                self._patient_at = self._clock() + _PATIENT_EVERY_SECONDS
            self._failing = True
        else:
            self._failing = False
            self._partitions = partitions

    @property
    def _patience(self) -> float:
        """A cluster that did not answer last time is given little time to delay the other side.

        Now and then it is given all the time there is: it may be slow, not dead.
        """
        if not self._failing or self._clock() >= self._patient_at:
            return self._timeout
        return min(self._timeout, _SHORT_SECONDS)

    def _empty(self) -> OffsetsRead:
        now = self._clock()
        before = self.newest
        return OffsetsRead(
            requested_at=now,
            answered_at=now,
            previous_requested_at=None if before is None else before.requested_at,
            previous_answered_at=None if before is None else before.answered_at,
        )

    def _read_ends(self, partitions: Sequence[TopicPartition]) -> None:
        before = self.newest
        stable = {}
        with self._health.stage(self._client.alias, Stage.END_OFFSETS):
            if self._stable_ends:
                # Before the high watermark, so that it is never the greater of the two.
                stable = self._client.end_offsets(
                    partitions, READ_COMMITTED, self._patience
                ).offsets
            reading = self._client.end_offsets(partitions, READ_UNCOMMITTED, self._patience)
            self._note(Stage.END_OFFSETS, reading)
        self.newest = OffsetsRead(
            ends=reading.offsets,
            starts={} if before is None else before.starts,
            stable_ends=stable,
            requested_at=reading.requested_at,
            answered_at=reading.answered_at,
            previous_requested_at=None if before is None else before.requested_at,
            previous_answered_at=None if before is None else before.answered_at,
        )

    def _read_starts(self, partitions: Sequence[TopicPartition]) -> None:
        with self._health.stage(self._client.alias, Stage.START_OFFSETS):
            reading = self._client.start_offsets(partitions, self._patience)
            self._note(Stage.START_OFFSETS, reading)
        self._starts_due = self._clock() + self._starts_every
        if self.newest is not None:
            self.newest = replace(self.newest, starts=reading.offsets)

    def _note(self, stage: Stage, reading: OffsetReading) -> None:
        """Count the partitions that gave no offset; the rest of the round is good.

        Raises KafkaOperationError when none gave one: a hung or forbidding cluster may answer so.
        """
        alias = self._client.alias
        kinds = Counter(reading.errors.values())
        if not reading.offsets and kinds and kinds.keys() != {ErrorKind.UNKNOWN_TOPIC}:
            kind, count = kinds.most_common(1)[0]
            raise KafkaOperationError(
                kind, cluster=alias, operation=f"reading {stage}", detail=f"all of {count} failed"
            )
        failures = (
            (kind, f"reading {stage} of {here} on cluster {alias} failed ({kind})")
            for here, kind in reading.errors.items()
        )
        self._health.incomplete(alias, stage, failures)
