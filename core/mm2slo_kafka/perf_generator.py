"""Writes numbered records on a fixed schedule; each carries the time it was intended for."""

import os
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import KafkaException, Producer

from mm2slo_core.perf.perf_schedule import TOPIC
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import translate

HEADER: Final = "mm2slo.perf"
STAMP: Final = struct.Struct(">dQI")
"""Intended time (epoch seconds), number of the record in its run, and number of the segment."""

TICK: Final = 0.1
"""Seconds; records are counted by ticks of the clock."""

_VALUES: Final = 64
_BURST: Final = 200
_NAP: Final = 0.0002
_QUEUE_RECORDS: Final = 500_000
_FLUSH_SECONDS: Final = 60.0


@dataclass(slots=True)
class PerfSegment:
    """A part of a run with one rate; None: as fast as possible."""

    number: int
    rate: float | None
    started: float
    ended: float = 0.0
    sent: int = 0
    sent_by_tick: Counter[int] = field(default_factory=Counter)
    slip: float = 0.0
    """The longest delay of a record after its intended time, in seconds."""


class PerfGenerator:
    """The writer of one run; *now* is the clock that reader and generator share."""

    def __init__(
        self,
        source: ClusterClient,
        topic: str,
        *,
        partitions: int,
        record_size: int,
        now: Callable[[], float],
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._source = source
        self._topic = topic
        self._partitions = partitions
        self.now = now
        self._pause = pause
        # Half of each value repeats itself, as text does.
        half = record_size // 2
        self._values = [os.urandom(record_size - half) + bytes(half) for _ in range(_VALUES)]
        settings = {
            "acks": "all",
            "enable.idempotence": "true",
            "linger.ms": "1",
            "queue.buffering.max.messages": str(_QUEUE_RECORDS),
            "queue.buffering.max.kbytes": str(1 << 19),
            "message.max.bytes": "10000000",
        }
        self._producer: Producer = source.handles.producer(settings)
        self._segments = 0
        self.segment: PerfSegment | None = None
        """The newest one."""
        self.number = 0
        """Records sent so far, and the number of the next one."""
        self.acknowledged = 0
        self.refused = 0
        self.problem = ""
        """The newest record that was not accepted."""

    def send(self, rate: float | None, seconds: float, most: int = sys.maxsize) -> PerfSegment:
        """Send for *seconds*, or until *most* records. Also at Ctrl-C `segment` has what was sent.

        Raises KafkaOperationError if the client refuses a record.
        """
        start = self.now()
        segment = self.segment = PerfSegment(self._segments, rate, start, start)
        self._segments += 1
        total = most if rate is None else min(int(rate * seconds), most)
        try:
            while segment.sent < total:
                now = self.now()
                if rate is not None:
                    due = int((now - start) * rate) + 1
                elif now - start < seconds:
                    due = segment.sent + _BURST
                else:
                    break
                self._send_due(segment, min(due, total), now)
                self._producer.poll(0)
                if rate is not None and segment.sent < total:
                    self._pause(max(start + segment.sent / rate - self.now(), _NAP))
        finally:
            segment.ended = self.now()
        return segment

    def _send_due(self, segment: PerfSegment, due: int, now: float) -> None:
        start, rate = segment.started, segment.rate
        while segment.sent < due:
            intended = now if rate is None else start + segment.sent / rate
            stamp = STAMP.pack(intended, self.number, segment.number)
            try:
                self._producer.produce(
                    self._topic,
                    self._values[self.number % len(self._values)],
                    partition=self.number % self._partitions,
                    headers=[(HEADER, stamp)],
                    on_delivery=self._acknowledge,
                )
            except BufferError:  # the source takes less than that: the delay is slip
                self._producer.poll(0.01)
                now = self.now()
                continue
            except KafkaException as error:
                redact = self._source.handles.redact
                raise translate(error, self._source.alias, "produce", redact=redact) from error
            # Only what the clock shows: reading it for each record would double the cost.
            segment.slip = max(segment.slip, now - intended)
            segment.sent_by_tick[int(now / TICK)] += 1
            segment.sent += 1
            self.number += 1

    def serve(self) -> None:
        """Count what was acknowledged meanwhile."""
        self._producer.poll(0)

    def flush(self) -> int:
        """Wait until all is acknowledged; returns how many are not."""
        return int(self._producer.flush(_FLUSH_SECONDS))

    def _acknowledge(self, error: object, _message: Any) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.refused += 1
            self.problem = self._source.handles.redact(str(error))


def generator_rate(record_size: int, records: int = 30_000) -> float:
    """Records per second that this machine can put into a client's queue, without a cluster."""
    silent = {"bootstrap.servers": "", "log_level": 0, "queue.buffering.max.messages": records * 2}
    producer = Producer({**silent, "queue.buffering.max.kbytes": 1 << 20})
    value, stamp = bytes(record_size), bytes(STAMP.size)
    count = max(min(records, (1 << 28) // record_size), 1)
    started = time.perf_counter()
    for _ in range(count):
        producer.produce(TOPIC, value, partition=0, headers=[(HEADER, stamp)])
    elapsed = time.perf_counter() - started
    producer.purge()
    producer.flush(1)
    return count / elapsed
