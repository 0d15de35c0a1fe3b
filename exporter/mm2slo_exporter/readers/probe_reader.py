"""Reads the first record at positions that do not advance, in one thread per flow."""

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.collection_health import CollectionHealth, CollectionStage
from mm2slo_exporter.flow_observation import ProbeSpan, TailProbe
from mm2slo_exporter.supervised_thread import Loop, SupervisedThread
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.first_records import FirstRecord
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.partition_offsets import Isolation

_PER_ROUND = 500
"""Partitions per round; the rest follow in the next round."""


class ProbeReader:
    """One thread per flow; `request` replaces earlier requests; `answers` is never mutated."""

    def __init__(
        self,
        name: str,
        client: ClusterClient,
        isolation: Isolation,
        health: CollectionHealth,
        *,
        every: float,
    ) -> None:
        self._client = client
        self.isolation: Isolation = isolation
        self._health = health
        self._every = every
        self._wanted: Mapping[TopicPartition, ProbeSpan] = {}
        self._in_use: frozenset[TopicPartition] = frozenset()
        self._lookups: tuple[tuple[int, TopicPartition, int], ...] = ()
        self._lookup_results: list[tuple[int, bool]] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = SupervisedThread(
            Loop.PROBES, name, self._run, self._stopping, health.record_loop_failure
        )
        self.answers: Mapping[TopicPartition, TailProbe] = {}

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; waits briefly for a read in progress."""
        self._stopping.set()
        self._wake.set()
        self._thread.join()

    def request(
        self,
        wanted: Mapping[TopicPartition, ProbeSpan],
        lookups: tuple[tuple[int, TopicPartition, int], ...] = (),
        in_use: frozenset[TopicPartition] = frozenset(),
    ) -> None:
        """Request the first record in [position, end) of partitions.

        *lookups* are canaries to look up: (sequence, source partition, offset). The next read
        drops answers of partitions that are neither wanted nor *in_use*.
        """
        # Replaced, not added: a position that has advanced since needs no answer.
        with self._lock:
            self._wanted, self._lookups, self._in_use = wanted, lookups, in_use
        if wanted or lookups:
            self._wake.set()

    def take_lookup_results(self) -> list[tuple[int, bool]]:
        """Results of lookups since the last call: (sequence, whether the source has the record)."""
        with self._lock:
            results, self._lookup_results = self._lookup_results, []
        return results

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait()
            self._wake.clear()
            if self._stopping.is_set():
                return
            self.read_wanted()
            self._stopping.wait(self._every)

    def read_wanted(self) -> None:
        with self._lock:
            wanted, lookups, self._lookups = self._wanted, self._lookups, ()
            needed = wanted.keys() | self._in_use
        failures = self._run_stage(partial(self._probe, wanted, needed))
        for sequence, partition, offset in lookups:
            failures |= self._run_stage(partial(self._look_up, sequence, partition, offset))
        alias, denied = self._client.alias, ErrorKind.AUTHORIZATION
        self._health.record_partial_failures(
            alias,
            CollectionStage.TAIL_RECORDS,
            (
                (why, f"reading records of {partition} on cluster {alias} failed ({why})")
                for partition, why in failures.items()
                if why is denied  # other failures end by themselves
            ),
        )

    def _run_stage(
        self, read: Callable[[], dict[TopicPartition, ErrorKind]]
    ) -> dict[TopicPartition, ErrorKind]:
        try:
            with self._health.stage(self._client.alias, CollectionStage.TAIL_RECORDS):
                return read()
        except KafkaOperationError:
            return {}  # counted and logged by the stage; requested again in the next round

    def _probe(
        self,
        wanted: Mapping[TopicPartition, ProbeSpan],
        needed: Collection[TopicPartition],
    ) -> dict[TopicPartition, ErrorKind]:
        failures: dict[TopicPartition, ErrorKind] = {}
        answers = {p: a for p, a in self.answers.items() if p in needed}
        spans = {p: span for p, span in wanted.items() if not is_answered(answers.get(p), span)}
        spans = dict(list(spans.items())[:_PER_ROUND])
        if spans:
            ranges = {partition: (span.start, span.end) for partition, span in spans.items()}
            reading = self._client.first_records(ranges, self.isolation)
            failures = reading.failures
            # Read after the records: nothing from there on was removed before they were read.
            log_starts = self._client.start_offsets(list(reading.found)).offsets
            for partition, log_start in log_starts.items():
                probe = tail_probe(spans[partition], reading.found[partition], log_start)
                if probe is not None:
                    answers[partition] = _join(answers.get(partition), probe)
        self.answers = answers
        return failures

    def _look_up(
        self, sequence: int, partition: TopicPartition, offset: int
    ) -> dict[TopicPartition, ErrorKind]:
        span = {partition: (offset, offset + 1)}
        reading = self._client.first_records(span, "read_uncommitted")
        if partition in reading.found:
            first = reading.found[partition]
            # Below the log start the result is the first remaining record, not the canary.
            present = first is not None and first.offset == offset
            with self._lock:
                self._lookup_results.append((sequence, present))
        return reading.failures


def tail_probe(span: ProbeSpan, first: FirstRecord | None, log_start: int) -> TailProbe | None:
    """What the first record of *span* proves; None if all of it, or that record, was removed.

    Offsets below *log_start* were removed, with or without records: they are not empty.
    """
    start, end = max(span.start, log_start), span.end
    if start > end or (first is not None and first.offset < start):
        return None
    if first is None:
        return TailProbe(start, end, None, None, span.log)
    stamp = None if first.timestamp_ms is None else first.timestamp_ms / 1000
    return TailProbe(start, end, first.offset, stamp, span.log)


def _join(before: TailProbe | None, probe: TailProbe) -> TailProbe:
    """Extend *probe* by the offsets before it that an earlier one proved to be empty.

    The estimated position may still be among them.
    """
    if before is None or before.log != probe.log or not is_empty_up_to(before, probe.next_offset):
        return probe
    return replace(probe, next_offset=before.next_offset)


def is_answered(probe: TailProbe | None, span: ProbeSpan) -> bool:
    """Whether *probe* still covers *span*: it has its first record, or proves that it is empty."""
    if probe is None or probe.log != span.log:
        return False
    start, end, _ = span
    if not probe.next_offset <= start <= probe.through:
        return False
    if probe.first_offset is not None:
        return start <= probe.first_offset
    return probe.through >= end


def is_empty_up_to(probe: TailProbe, offset: int) -> bool:
    """Whether *probe* proves that no record is between its position and *offset*."""
    return probe.first_offset is None and probe.next_offset <= offset <= probe.through
