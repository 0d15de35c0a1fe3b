"""Reads what only a cutover needs, while clients ask: transactions, tails of groups, ACLs.

Nothing is read before the first question, and nothing from a quarter of an hour after the last one.
A failure is part of the evidence: what was not read is unknown.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from mm2slo_core.cutover.cutover_evidence import AccessFacts, AccessGap, CutoverEvidence
from mm2slo_core.kafka_permissions import AclPattern, AclRule, reader_parity
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_exporter.cutover.cutover_watch import CutoverReads, CutoverWatch, UnreadTail
from mm2slo_exporter.supervised_thread import Loop, SupervisedThread
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import KafkaOperationError
from mm2slo_kafka.partition_offsets import Isolation

_EVERY_SECONDS: Final = 5.0
_ACCESS_SECONDS: Final = 60.0
_LONGEST_QUIET: Final = 30 * 86_400.0
_SHORT: Final = 8.0
_MAX_TAILS: Final = 200
"""Read at once; the others follow."""


class CutoverReader:
    """One thread per flow from its first question on."""

    def __init__(
        self,
        flow: Flow,
        source: ClusterClient,
        target: ClusterClient,
        on_failure: Callable[[Loop], None],
        *,
        isolation: Callable[[], Isolation] = lambda: "read_uncommitted",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._source = source
        self._target = target
        self._isolation = isolation
        self._clock = clock
        self.watch = CutoverWatch()
        self._reads = CutoverReads()
        self._lock = threading.Lock()
        self._is_started = False
        self._wake, self._stopping = threading.Event(), threading.Event()
        self._thread = SupervisedThread(
            Loop.CUTOVER, flow.label, self._run, self._stopping, on_failure
        )

    def evidence(self) -> CutoverEvidence | None:
        """What is known now; None before the first round after the first question."""
        evidence = self.watch.evidence(self._clock(), self._reads)
        with self._lock:
            if not self._is_started:
                self._is_started = True
                self._thread.start()
        self._wake.set()
        return evidence

    def stop(self) -> None:
        """Stop the thread; waits briefly for a read in progress."""
        self._stopping.set()
        self._wake.set()
        if self._is_started:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()  # before the check: a question in between is not missed
            if not self.watch.is_asked(self._clock()):
                self._reads = CutoverReads()
                self._wake.wait()
            self.read()
            self._stopping.wait(_EVERY_SECONDS)

    def read(self) -> None:
        """Read everything once."""
        counts, copies, groups = self.watch.pairs()
        if not counts:
            return
        self._reads = self._read_transactions(self._reads, counts)
        self._reads = self._read_tails(self._reads, self.watch.unread_tails())
        self._reads = self._read_quiet(self._reads)
        known = self._reads.access
        if known is None or self._clock() - known.read_at >= _ACCESS_SECONDS:
            self._reads = replace(self._reads, access=self._read_access(copies, groups))

    def _read_transactions(self, reads: CutoverReads, counts: Mapping[str, int]) -> CutoverReads:
        """The last stable offset is below the end while a transaction is open (KIP-98)."""
        partitions = [
            TopicPartition(topic, number)
            for topic, count in counts.items()
            for number in range(count)
        ]
        try:
            reading = self._source.end_offsets(partitions, "read_committed")
        except KafkaOperationError:
            return replace(reads, read_at=None)
        return replace(reads, read_at=reading.requested_at, stable_ends=reading.offsets)

    def _read_tails(self, reads: CutoverReads, tails: Sequence[UnreadTail]) -> CutoverReads:
        """The shortest unknown tail of each partition: a call takes one range for each."""
        existing = set(tails)
        kept = {tail: known for tail, known in reads.tails.items() if tail in existing}
        wanted: dict[TopicPartition, tuple[int, int]] = {}
        for tail in tails:
            if tail not in kept and len(wanted) < _MAX_TAILS:
                wanted.setdefault(tail.partition, (tail.start, tail.end))
        if wanted:
            try:
                # As MirrorMaker 2 reads: an aborted record has no copy, either.
                found = self._source.first_records(wanted, self._isolation()).found
            except KafkaOperationError:
                found = {}
            for partition, record in found.items():
                kept[UnreadTail(partition, *wanted[partition])] = record is not None
        return replace(reads, tails=kept)

    def _read_quiet(self, reads: CutoverReads) -> CutoverReads:
        """Find the time after which no record was written, by the records' own timestamps.

        ListOffsets returns the end for a time after the last record (KIP-79). Once for given ends.
        """
        ends, changed_at = self.watch.ends()
        if not ends or (reads.quiet is not None and reads.quiet[0] >= changed_at):
            return reads
        asked_at, partitions = self._clock(), list(ends)
        quiet, busy = 0.0, _LONGEST_QUIET  # ages: nothing is younger than `quiet`
        try:
            if not self._is_quiet(partitions, ends, asked_at):
                return replace(reads, quiet=None)
            while busy - quiet > max(0.05 * quiet, 1.0):
                # Half of the way, in proportion: seconds count at first, days at last.
                middle = (quiet + busy) / 2
                age = min(middle, math.sqrt(max(quiet, 1.0) * busy)) if busy > _SHORT else middle
                if self._is_quiet(partitions, ends, asked_at - age):
                    quiet = age
                else:
                    busy = age
        except KafkaOperationError:
            return replace(reads, quiet=None)
        return replace(reads, quiet=(asked_at, asked_at - quiet))

    def _is_quiet(
        self, partitions: Sequence[TopicPartition], ends: Mapping[TopicPartition, int], at: float
    ) -> bool:
        found = self._source.offsets_at(partitions, at)
        return not found.errors and all(found.offsets[each] >= ends[each] for each in partitions)

    def _read_access(self, copies: Mapping[str, str], groups: Sequence[str]) -> AccessFacts:
        now = self._clock()
        try:
            source, target = self._source.acls(), self._target.acls()
        except KafkaOperationError as problem:
            return AccessFacts(now, problem=str(problem))
        return access_facts(now, source, target, copies, groups)


def access_facts(
    at: float,
    source: Collection[AclRule],
    target: Collection[AclRule],
    copies: Mapping[str, str],
    groups: Collection[str],
) -> AccessFacts:
    """What the ACLs of both clusters mean for consumers and producers that move."""
    names = {"topic": sorted(copies.values()), "group": sorted(groups)}
    denied = [
        AccessGap(rule.principal, f"{rule.operation} on {rule.kind} {name}")
        for rule in target
        if not rule.allows
        for name in names[rule.kind]
        if rule.pattern.covers(AclPattern(name))
    ]
    readers = list(reader_parity(source, target, copies, groups, {}))
    missing = [
        AccessGap(each.principal, f"Read on {', '.join(each.denied)}")
        for each in readers
        if each.denied
    ]
    writers = sorted(
        {
            rule.principal
            for rule in source
            if rule.allows and rule.kind == "topic" and rule.operation in {"Write", "All"}
            if any(rule.pattern.covers(AclPattern(topic)) for topic in copies)
        }
    )
    return AccessFacts(
        at,
        unjudged=bool(target) and not readers,
        denied=tuple(denied),
        missing=tuple(missing),
        writers=tuple(writers),
    )
