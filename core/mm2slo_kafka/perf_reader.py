"""Reads the copies of numbered records in a process of its own, and notes when each arrived.

A consumer in the generator's process would wait for its interpreter lock, and count that as
latency. Both processes have one clock: the epoch at the start plus the monotonic time since.
"""

import multiprocessing
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as RawPartition

from mm2slo_core.perf.perf_statistics import Latencies, bucket_of
from mm2slo_kafka.client_handles import HandleFactory
from mm2slo_kafka.kafka_errors import KafkaOperationError
from mm2slo_kafka.perf_generator import HEADER, STAMP, TICK

_BATCH: Final = 500
_POLL_SECONDS: Final = 0.05
_REPORT_SECONDS: Final = 0.25
_START_SECONDS: Final = 60.0


def steady_clock(offset: float) -> Callable[[], float]:
    """Epoch seconds that never step; *offset* is the epoch minus the monotonic clock."""
    monotonic = time.monotonic
    return lambda: offset + monotonic()


@dataclass(slots=True)
class ArrivedRecords:
    """What has arrived: in the part since the last report, or in all."""

    latencies: dict[int, Latencies] = field(default_factory=dict)
    """By segment, of the first copy of each record."""
    by_tick: Counter[int] = field(default_factory=Counter)
    """Different records."""
    by_partition: Counter[int] = field(default_factory=Counter)
    arrived: int = 0
    """Different records."""
    duplicates: int = 0
    reordered: int = 0
    moved: int = 0
    delay: float = 0.0
    """The longest time since the reader had seen all: an arrival may be as old as that."""

    def add(self, part: "ArrivedRecords") -> None:
        """Count *part* as well."""
        for segment, found in part.latencies.items():
            self.latencies.setdefault(segment, Latencies()).counts.update(found.counts)
        self.by_tick.update(part.by_tick)
        self.by_partition.update(part.by_partition)
        self.arrived += part.arrived
        self.duplicates += part.duplicates
        self.reordered += part.reordered
        self.moved += part.moved
        self.delay = max(self.delay, part.delay)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What the process is asked to do; its fields can be sent to it."""

    alias: str
    properties: Mapping[str, str]
    copy: str
    copy_partitions: int
    partitions: int
    offset: float


class PerfReader:
    """The parent's side of the process; a context manager that ends it."""

    def __init__(
        self,
        alias: str,
        properties: Mapping[str, str],
        copy: str,
        *,
        copy_partitions: int,
        partitions: int,
        offset: float,
    ) -> None:
        self._reading = _Reading(alias, dict(properties), copy, copy_partitions, partitions, offset)
        # A fork would copy the threads' locks of librdkafka.
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(
            target=read_copies, args=(self._reading, theirs), daemon=True
        )
        self._theirs = theirs
        self._lock = threading.Lock()
        self._found = ArrivedRecords()
        self._ready = threading.Event()
        self._is_stopped = False
        self.problem = ""
        """Why the process has ended."""

    def __enter__(self) -> "PerfReader":
        self._process.start()
        self._theirs.close()
        threading.Thread(target=self._receive, daemon=True).start()
        if not self._ready.wait(_START_SECONDS):
            self.problem = self.problem or f"not ready within {_START_SECONDS:g} s"
        return self

    def __exit__(self, *_exception: object) -> None:
        self._is_stopped = True
        with suppress(OSError):
            self._ours.send("stop")
        self._process.join(10)
        self._process.kill()
        self._process.join()

    def look(self) -> ArrivedRecords:
        """All that has arrived so far."""
        with self._lock:
            found = ArrivedRecords()
            found.add(self._found)
            return found

    def arrived(self) -> int:
        """How many different records have arrived so far."""
        with self._lock:
            return self._found.arrived

    def forget_delay(self) -> None:
        """Let `delay` be that of what follows: of a measurement, not of its warm-up."""
        with self._lock:
            self._found.delay = 0.0

    def _receive(self) -> None:
        try:
            while True:
                part = self._ours.recv()
                if isinstance(part, str):
                    self.problem = part
                elif part is not None:
                    with self._lock:
                        self._found.add(part)
                self._ready.set()
        except (EOFError, OSError):
            if not self._is_stopped:
                self.problem = self.problem or "its process has ended"
            self._ready.set()


def read_copies(reading: _Reading, connection: Connection) -> None:
    """The process: reports until its parent stops it or ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which then stops it
    settings = {
        "enable.auto.commit": "false",
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": "100",
        "fetch.min.bytes": "1",
        "queued.max.messages.kbytes": "262144",
        "auto.offset.reset": "earliest",
    }
    try:
        handles = HandleFactory(reading.alias, reading.properties)
        consumer: Consumer = handles.consumer(settings, statistics=False)
        consumer.assign(
            [RawPartition(reading.copy, each, 0) for each in range(reading.copy_partitions)]
        )
        connection.send(None)
        try:
            _read(reading, consumer, connection)
        finally:
            consumer.close()
    except (KafkaException, KafkaOperationError) as error:
        with suppress(OSError):
            connection.send(f"reading {reading.copy}: {error}")
    except OSError:
        return  # the parent has ended


def _read(reading: _Reading, consumer: Consumer, connection: Connection) -> None:
    now = steady_clock(reading.offset)
    ledger = RecordLedger(reading.partitions)
    due = now() + _REPORT_SECONDS
    emptied = now()
    while True:
        # `consume` waits for a full batch: poll returns with the first record.
        looked = now()
        first = consumer.poll(_POLL_SECONDS)
        arrived = now()
        delay = max(looked - emptied, arrived - looked - _POLL_SECONDS)
        batch = []
        if first is not None:
            ledger.note(first, arrived)
            batch = consumer.consume(_BATCH, timeout=0)
            arrived = now()
            for message in batch:
                ledger.note(message, arrived)
        if len(batch) < _BATCH:
            emptied = arrived
        ledger.part.delay = max(ledger.part.delay, delay)
        if now() >= due:
            connection.send(ledger.part)
            ledger.part = ArrivedRecords()
            due = now() + _REPORT_SECONDS
            if connection.poll():
                connection.recv()
                return


class RecordLedger:
    """Which numbers have arrived, and where."""

    def __init__(self, partitions: int) -> None:
        self.part = ArrivedRecords()
        self._partitions = partitions
        self._seen = bytearray()
        self._newest: dict[int, int] = {}

    def note(self, message: Any, arrived: float) -> None:
        if (error := message.error()) is not None:
            raise KafkaException(error)
        stamp = next((v for name, v in message.headers() or () if name == HEADER), None)
        if stamp is None:
            return  # not ours
        intended, number, segment = STAMP.unpack(stamp)
        part, partition = self.part, message.partition()
        if number >= len(self._seen):
            self._seen.extend(bytes(max(number + 1 - len(self._seen), 1 << 16)))
        part.by_partition[partition] += 1
        if self._seen[number]:
            part.duplicates += 1
            return
        part.by_tick[int(arrived / TICK)] += 1
        self._seen[number] = 1
        part.arrived += 1
        part.moved += partition != number % self._partitions
        newest = self._newest.get(partition, -1)
        if number < newest:
            part.reordered += 1
        else:
            self._newest[partition] = number
        latencies = part.latencies.get(segment)
        if latencies is None:
            latencies = part.latencies[segment] = Latencies()
        latencies.counts[bucket_of(arrived - intended)] += 1
