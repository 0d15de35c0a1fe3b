"""The exporter's own health: per cluster and stage, what worked when, and what failed why."""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from typing import TYPE_CHECKING

from mm2slo_core.catalogue.buckets import COLLECT_BUCKETS
from mm2slo_core.records import DecodeReason
from mm2slo_kafka.errors import ErrorKind, KafkaOperationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


logger = logging.getLogger(__name__)


class Stage(StrEnum):
    """What is read or written; the closed list of the `stage` label."""

    TOPICS = "topics"
    TOPIC_IDS = "topic_ids"
    TOPIC_CONFIGS = "topic_configs"
    END_OFFSETS = "end_offsets"
    START_OFFSETS = "start_offsets"
    GROUPS = "groups"
    TAIL_RECORDS = "tail_records"
    OFFSET_SYNCS = "offset_syncs"
    COMMITTED_OFFSETS = "committed_offsets"
    CHECKPOINTS = "checkpoints"
    STATUS = "status"
    CONNECTOR_CONFIGS = "connector_configs"
    CANARY_SEND = "canary_send"
    CANARY_RECEIVE = "canary_receive"
    HEARTBEATS = "heartbeats"
    TIMELINE = "timeline"
    LEADERSHIP = "leadership"


_LIKELY = (
    ErrorKind.AUTHENTICATION,
    ErrorKind.AUTHORIZATION,
    ErrorKind.TIMEOUT,
    ErrorKind.UNREACHABLE,
    ErrorKind.OTHER,
)
_RECORD_KINDS = (
    Stage.OFFSET_SYNCS,
    Stage.COMMITTED_OFFSETS,
    Stage.CHECKPOINTS,
    Stage.STATUS,
    Stage.CONNECTOR_CONFIGS,
    "heartbeat",
    "canary",
    "timeline",
)


@dataclass(frozen=True, slots=True)
class Durations:
    """A histogram of how long a stage took: observations per bucket, and their sum."""

    counts: tuple[int, ...] = (0,) * (len(COLLECT_BUCKETS) + 1)
    total_seconds: float = 0.0

    def add(self, seconds: float) -> Durations:
        """Count one more observation."""
        counts = list(self.counts)
        counts[bisect_left(COLLECT_BUCKETS, seconds)] += 1
        return Durations(tuple(counts), self.total_seconds + seconds)


@dataclass(frozen=True, slots=True)
class HealthReport:
    """A consistent copy of the figures, keyed by (cluster, stage)."""

    last_success: Mapping[tuple[str, Stage], float]
    errors: Mapping[tuple[str, Stage, str], int]
    durations: Mapping[tuple[str, Stage], Durations]
    malformed: Mapping[tuple[str, str, str], int] = field(default_factory=dict)


class Health:
    """Collects the outcome of each stage, from any thread."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last_success: dict[tuple[str, Stage], float] = {}
        self._errors: Counter[tuple[str, Stage, str]] = Counter()
        self._durations: defaultdict[tuple[str, Stage], Durations] = defaultdict(Durations)
        self._malformed: Counter[tuple[str, str, str]] = Counter()
        self._failing: dict[tuple[str, Stage], str] = {}
        self._incomplete: dict[tuple[str, Stage], frozenset[str]] = {}

    def succeeded(self, cluster: str, stage: Stage, at: float | None = None) -> None:
        """Note that a stage did its work."""
        with self._lock:
            self._last_success[cluster, stage] = self._clock() if at is None else at
            recovered = self._failing.pop((cluster, stage), None)
        if recovered is not None:
            logger.info(
                "%s on cluster %s works again",
                stage,
                cluster,
                extra={"cluster": cluster, "stage": stage.value},
            )

    def failed(self, cluster: str, stage: Stage, reason: str, message: str) -> None:
        """Count a failure, and log it when its reason is new: not again each round."""
        with self._lock:
            self._errors[cluster, stage, reason] += 1
            fresh = self._failing.get((cluster, stage)) != reason
            self._failing[cluster, stage] = reason
        logger.log(
            logging.WARNING if fresh else logging.DEBUG,
            message,
            extra={"cluster": cluster, "stage": stage.value, "reason": reason},
        )

    def incomplete(self, cluster: str, stage: Stage, failures: Iterable[tuple[str, str]]) -> None:
        """Count what failed within a stage that works as a whole; to be told after each round.

        *failures* are reasons and messages, one for each topic, partition or group. The first of
        a reason is logged, unless the round before had that reason too.
        """
        first: dict[str, str] = {}
        with self._lock:
            for reason, message in failures:
                self._errors[cluster, stage, reason] += 1
                first.setdefault(reason, message)
            before = self._incomplete.get((cluster, stage), frozenset())
            self._incomplete[cluster, stage] = frozenset(first)
        for reason in first.keys() - before:
            extra = {"cluster": cluster, "stage": stage.value, "reason": reason}
            logger.warning(first[reason], extra=extra)

    def malformed(self, cluster: str, kind: str, reason: str) -> None:
        """Count a record that could not be decoded."""
        with self._lock:
            self._malformed[cluster, kind, reason] += 1

    def failing(self, cluster: str) -> Mapping[Stage, str]:
        """Stages of *cluster* that fail at present, with the reason."""
        with self._lock:
            return {stage: why for (found, stage), why in self._failing.items() if found == cluster}

    def declare(self, cluster: str) -> None:
        """Pre-create the error counters of a cluster at 0: a first error must be an increase."""
        with self._lock:
            for stage, reason in product(Stage, _LIKELY):
                self._errors[cluster, stage, reason] += 0
            for kind, flaw in product(_RECORD_KINDS, DecodeReason):
                self._malformed[cluster, kind, flaw] += 0

    @contextmanager
    def stage(self, cluster: str, stage: Stage) -> Iterator[None]:
        """Time a stage and note its outcome; a KafkaOperationError is counted by its kind, then raised."""
        started = time.perf_counter()
        try:
            yield
        except KafkaOperationError as problem:
            self.failed(cluster, stage, problem.kind, str(problem))
            raise
        else:
            self.succeeded(cluster, stage)
        finally:
            elapsed = time.perf_counter() - started
            with self._lock:
                self._durations[cluster, stage] = self._durations[cluster, stage].add(elapsed)

    def report(self) -> HealthReport:
        """Copy the figures."""
        with self._lock:
            return HealthReport(
                dict(self._last_success),
                dict(self._errors),
                dict(self._durations),
                dict(self._malformed),
            )
