"""The exporter's own health: successes, failures and durations per cluster and stage."""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product

from mm2slo_core.catalogue.metric import COLLECT_BUCKETS
from mm2slo_core.records.mirror_records import DecodeReason
from mm2slo_exporter.supervised_thread import Loop
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError

logger = logging.getLogger(__name__)


class CollectionStage(StrEnum):
    """What is read or written, each with its own successes and failures: the label `stage`."""

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
    ARRIVALS = "arrivals"
    STATE = "state"
    LEADERSHIP = "leadership"


_COMMON_ERROR_KINDS = (
    ErrorKind.AUTHENTICATION,
    ErrorKind.AUTHORIZATION,
    ErrorKind.TIMEOUT,
    ErrorKind.UNREACHABLE,
    ErrorKind.OTHER,
)

_RECORD_KINDS = (
    CollectionStage.OFFSET_SYNCS,
    CollectionStage.COMMITTED_OFFSETS,
    CollectionStage.CHECKPOINTS,
    CollectionStage.STATUS,
    CollectionStage.CONNECTOR_CONFIGS,
    CollectionStage.STATE,
    "heartbeat",
    "canary",
    "timeline",
)


@dataclass(frozen=True, slots=True)
class Durations:
    """A histogram of stage durations: observations per bucket, and their sum."""

    counts: tuple[int, ...] = (0,) * (len(COLLECT_BUCKETS) + 1)
    total_seconds: float = 0.0

    def add(self, seconds: float) -> Durations:
        counts = list(self.counts)
        counts[bisect_left(COLLECT_BUCKETS, seconds)] += 1
        return Durations(tuple(counts), self.total_seconds + seconds)


@dataclass(frozen=True, slots=True)
class HealthReport:
    """A consistent copy of the counts, keyed by (cluster, stage)."""

    last_success: Mapping[tuple[str, CollectionStage], float]
    errors: Mapping[tuple[str, CollectionStage, str], int]
    durations: Mapping[tuple[str, CollectionStage], Durations]
    malformed: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    loop_failures: Mapping[Loop, int] = field(default_factory=dict)
    listing_intervals: Mapping[str, float] = field(default_factory=dict)
    """Seconds between listings of topics, by cluster."""


class CollectionHealth:
    """Collects the results of all stages. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last_success: dict[tuple[str, CollectionStage], float] = {}
        self._errors: Counter[tuple[str, CollectionStage, str]] = Counter()
        self._durations: defaultdict[tuple[str, CollectionStage], Durations] = defaultdict(
            Durations
        )
        self._malformed: Counter[tuple[str, str, str]] = Counter()
        self._loop_failures = Counter(dict.fromkeys(Loop, 0))
        self._listing_intervals: dict[str, float] = {}
        self._failing: dict[tuple[str, CollectionStage], str] = {}
        self._incomplete: dict[tuple[str, CollectionStage], frozenset[str]] = {}
        self._sharing: dict[str, frozenset[str]] = {}

    def share(self, aliases: Iterable[str]) -> None:
        """Record results of each of *aliases* for all of them: they are one cluster."""
        sharing = frozenset(aliases)
        with self._lock:
            self._sharing |= dict.fromkeys(sharing, sharing)

    def record_success(self, cluster: str, stage: CollectionStage, at: float | None = None) -> None:
        with self._lock:
            recovered = self._failing.get((cluster, stage))
            for alias in self._aliases(cluster):
                self._last_success[alias, stage] = self._clock() if at is None else at
                self._failing.pop((alias, stage), None)
        if recovered is not None:
            logger.info(
                "%s on cluster %s has recovered",
                stage,
                cluster,
                extra={"cluster": cluster, "stage": stage.value},
            )

    def record_failure(
        self, cluster: str, stage: CollectionStage, reason: str, message: str
    ) -> None:
        """Count a failure; log a warning only when its reason is new."""
        with self._lock:
            fresh = self._failing.get((cluster, stage)) != reason
            for alias in self._aliases(cluster):
                self._errors[alias, stage, reason] += 1
                self._failing[alias, stage] = reason
        logger.log(
            logging.WARNING if fresh else logging.DEBUG,
            message,
            extra={"cluster": cluster, "stage": stage.value, "reason": reason},
        )

    def record_partial_failures(
        self, cluster: str, stage: CollectionStage, failures: Iterable[tuple[str, str]]
    ) -> None:
        """Count failures within a stage that succeeds as a whole; call it after each round.

        *failures* are (reason, message), one per topic, partition or group. The first message of
        a reason is logged, unless the preceding round had that reason too.
        """
        first: dict[str, str] = {}
        with self._lock:
            for reason, message in failures:
                for alias in self._aliases(cluster):
                    self._errors[alias, stage, reason] += 1
                first.setdefault(reason, message)
            before = self._incomplete.get((cluster, stage), frozenset())
            self._incomplete[cluster, stage] = frozenset(first)
        for reason in first.keys() - before:
            extra = {"cluster": cluster, "stage": stage.value, "reason": reason}
            logger.warning(first[reason], extra=extra)

    def record_malformed(self, cluster: str, kind: str, reason: str) -> None:
        with self._lock:
            for alias in self._aliases(cluster):
                self._malformed[alias, kind, reason] += 1

    def record_listing_interval(self, cluster: str, seconds: float) -> None:
        with self._lock:
            self._listing_intervals |= dict.fromkeys(self._aliases(cluster), seconds)

    def record_loop_failure(self, loop: Loop) -> None:
        """Count an unexpected exception; the loop logs it."""
        with self._lock:
            self._loop_failures[loop] += 1

    def failing_stages(self, cluster: str) -> Mapping[CollectionStage, str]:
        """Currently failing stages of *cluster*, with the reason."""
        with self._lock:
            return {stage: why for (found, stage), why in self._failing.items() if found == cluster}

    def create_counters(self, cluster: str) -> None:
        """Create the error counters of a cluster at 0, so that the first error is an increase."""
        # increase() and rate() compare samples: a counter that appears with 1 shows no increase.
        with self._lock:
            for stage, reason in product(CollectionStage, _COMMON_ERROR_KINDS):
                self._errors[cluster, stage, reason] += 0
            for kind, decode_reason in product(_RECORD_KINDS, DecodeReason):
                self._malformed[cluster, kind, decode_reason] += 0

    @contextmanager
    def stage(self, cluster: str, stage: CollectionStage) -> Iterator[None]:
        """Time a stage and record its result; a KafkaOperationError is counted and re-raised."""
        started = time.perf_counter()
        try:
            yield
        except KafkaOperationError as error:
            self.record_failure(cluster, stage, error.kind, str(error))
            raise
        else:
            self.record_success(cluster, stage)
        finally:
            elapsed = time.perf_counter() - started
            with self._lock:
                for alias in self._aliases(cluster):
                    self._durations[alias, stage] = self._durations[alias, stage].add(elapsed)

    def report(self) -> HealthReport:
        with self._lock:
            return HealthReport(
                last_success=dict(self._last_success),
                errors=dict(self._errors),
                durations=dict(self._durations),
                malformed=dict(self._malformed),
                loop_failures=dict(self._loop_failures),
                listing_intervals=dict(self._listing_intervals),
            )

    def _aliases(self, cluster: str) -> Iterable[str]:
        return self._sharing.get(cluster, (cluster,))
