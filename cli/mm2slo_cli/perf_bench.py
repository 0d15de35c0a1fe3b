"""Runs the cells of a measurement over one flow: topic, generator, reader, and what they found."""

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mm2slo_audit.scope.cluster_readings import open_clients
from mm2slo_core.config.config_model import Config
from mm2slo_core.perf.perf_model import CPU, ROUND_TRIP, busiest_share, round_trip_bytes
from mm2slo_core.perf.perf_report import PerfLedger, PerfProbe, PerfRun
from mm2slo_core.perf.perf_schedule import (
    KEPT_BYTES,
    MAX_SLIP,
    RECORD_OVERHEAD,
    TOPIC,
    PerfCell,
    PerfLoad,
    PerfMode,
    RateSearch,
    backlog_growth,
    is_settled,
    sustains,
)
from mm2slo_core.perf.perf_statistics import Latencies
from mm2slo_core.topic_selection import replicated_topics
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.drill_clients import delete_topic
from mm2slo_kafka.perf_generator import TICK, PerfGenerator, PerfSegment
from mm2slo_kafka.perf_reader import ArrivedRecords, PerfReader, steady_clock

UNLIMITED: Final = 1e9
"""Records per second: the highest rate is searched from what a backlog shows."""

_LEFT_SECONDS: Final = 30.0
"""How long the last records may take to arrive."""
_BUSY: Final = 0.85
"""Of the machine's CPU: above it, the CPU is what limits."""
_NEAR: Final = 0.5
"""Of what a round trip can bring: above it, the round trip is what limits."""
_DRAINS: Final = 4
_AGREE: Final = 0.1
_POLL: Final = 0.05
_FIRST_GUESS: Final = 0.7
"""Of the rate of a backlog: writing takes its share of what limits."""
_NOT_KNOWN: Final = "not known"
_NO_BYTES: Final = "--max-bytes ended the search: raise it, or shorten --length"


@dataclass(slots=True)
class PerfBench:
    """Measures one flow. What it creates it deletes, also after an error or Ctrl-C."""

    config: Config
    flow: Flow
    say: Callable[[str], None]
    wait: float
    """Seconds; until MirrorMaker 2 copies a new topic."""
    is_lab: bool = False
    """Whether brokers and MirrorMaker 2 run on this machine."""
    after: Callable[[str], None] = lambda _topic: None
    """Called with the topic of each run, before it is deleted."""
    pause: Callable[[float], None] = time.sleep
    interrupted: bool = False
    """Whether Ctrl-C ended the last run, which has what was measured until then."""
    notes: list[str] = field(default_factory=list)
    """What is left to delete."""

    def run(self, cell: PerfCell) -> PerfRun:
        """Measure *cell* once. Raises UserError if nothing is copied."""
        (settings,) = self.config.as_settings().select([self.flow.label])
        topic = f"{TOPIC}.{uuid.uuid4().hex[:10]}"
        pairs = [each for each in replicated_topics(settings, [topic]) if each.target]
        if not pairs or pairs[0].may_drop:
            raise UserError(
                f"{self.flow.label} does not copy {topic}, or transforms change its name or drop "
                f"records: expected topics that select {TOPIC}.*"
            )
        copy, load = pairs[0].target, cell.load
        offset = time.time() - time.monotonic()
        with (
            open_clients(self.config) as clients,
            self._topic(clients[self.flow.source], clients[self.flow.target], topic, copy, load),
        ):
            copy_partitions = self._wait_copy(clients[self.flow.target], copy)
            reader = PerfReader(
                self.flow.target,
                self.config.clusters[self.flow.target].librdkafka_properties(),
                copy,
                copy_partitions=copy_partitions,
                partitions=load.partitions,
                offset=offset,
            )
            generator = PerfGenerator(
                clients[self.flow.source],
                topic,
                partitions=load.partitions,
                record_size=load.record_size,
                now=steady_clock(offset),
                pause=self.pause,
            )
            with reader:
                measurement = Measurement(cell, generator, reader, self.say, names_cpu=self.is_lab)
                try:
                    measurement.run()
                except KeyboardInterrupt:
                    self.interrupted = measurement.interrupted = True
                found = measurement.result()
            if not self.interrupted:
                self.after(topic)
            return found

    @contextmanager
    def _topic(
        self, source: ClusterClient, target: ClusterClient, topic: str, copy: str, load: PerfLoad
    ) -> Iterator[None]:
        kept = KEPT_BYTES // load.partitions
        # MirrorMaker 2 gives the copy the same settings. Segments of less than 1 MiB are refused.
        limits = {"retention.bytes": f"{kept}", "segment.bytes": f"{max(kept // 8, 1 << 20)}"}
        self.say(f"creating {topic} on {source.alias}")
        try:
            if load.copy_partitions:  # before MirrorMaker 2 makes it
                target.create_topic(copy, partitions=load.copy_partitions, config=limits)
            if not source.create_topic(topic, partitions=load.partitions, config=limits):
                raise UserError(f"{topic} exists on {source.alias}: nothing was written")
            yield
        finally:
            # The name is new, so that it is ours also where creating it was interrupted.
            self.notes += [
                f"{name} on {client.alias} is left to delete"
                for client, name in ((source, topic), (target, copy))
                if not delete_topic(client, name)
            ]

    def _wait_copy(self, target: ClusterClient, copy: str) -> int:
        self.say(f"waiting for {copy}")
        pause, deadline = threading.Event(), time.monotonic() + self.wait
        while not (count := target.topics().partition_counts.get(copy, 0)):
            if time.monotonic() > deadline:
                raise UserError(
                    f"{copy} does not exist on {target.alias} after {self.wait:g} s: "
                    "is the flow running? MirrorMaker 2 looks for new topics every "
                    "refresh.topics.interval.seconds (10 minutes by default; --wait)"
                )
            pause.wait(0.2)
        return count


class Measurement:
    """One run: warm-up, what the mode asks for, and the rest of the records."""

    def __init__(
        self,
        cell: PerfCell,
        generator: PerfGenerator,
        reader: PerfReader,
        say: Callable[[str], None],
        *,
        names_cpu: bool,
    ) -> None:
        self.interrupted = False
        self._cell = cell
        self._load = cell.load
        self._generator = generator
        self._reader = reader
        self._say = say
        self._names_cpu = names_cpu
        self._started_at = time.time()
        self._measured: PerfSegment | None = None
        self._rate = 0.0
        self._cpu: float | None = None
        self._limit = ""
        self._probes: list[PerfProbe] = []
        self._problems: list[str] = []
        size = self._load.record_size + RECORD_OVERHEAD
        self._most = max(int(self._load.max_bytes // size), 1)

    def run(self) -> None:
        """Measure; what KeyboardInterrupt leaves is in `result`."""
        modes = {
            PerfMode.LATENCY: self._measure_latency,
            PerfMode.SUSTAINED: self._search_rate,
            PerfMode.DRAIN: self._measure_drain,
        }
        modes[self._load.mode]()

    def result(self) -> PerfRun:
        """What was measured; waits for the records that are on their way."""
        generator, measured, problems = self._generator, self._measured, self._problems
        unacknowledged = generator.flush()
        self._wait_arrived(_LEFT_SECONDS)
        found = self._reader.look()
        is_latency = self._load.mode is PerfMode.LATENCY
        if self.interrupted and not is_latency:
            problems.append(f"interrupted before a {self._load.mode} rate was found")
        if self._reader.problem:
            problems.append(f"the reader failed: {self._reader.problem}")
        if unacknowledged or generator.problem:
            left = generator.number - generator.acknowledged
            reason = generator.problem or "no answer"
            problems.append(f"{left:,} records were not accepted: {reason}")
        missing = max(generator.acknowledged - found.arrived, 0)
        if missing:
            problems.append(
                f"{missing:,} records had not arrived after {_LEFT_SECONDS:g} s: the flow does "
                "not sustain the rate, or has stopped"
            )
        latencies = Latencies()
        if measured is not None:
            latencies = found.latencies.get(measured.number, latencies)
        if is_latency and measured is not None:
            problems += self._doubts(measured, found)
        if not latencies.count and not problems:
            problems.append("nothing was measured")
        return PerfRun(
            started_at=self._started_at,
            rate=self._rate,
            latencies=latencies,
            sent=_by_second(measured, measured.sent_by_tick) if measured else [],
            arrived=_by_second(measured, found.by_tick, latencies) if measured else [],
            ledger=PerfLedger(
                sent=generator.number,
                acknowledged=generator.acknowledged,
                arrived=found.arrived,
                missing=missing,
                duplicates=found.duplicates,
                reordered=found.reordered,
                moved=found.moved,
                by_partition=dict(sorted(found.by_partition.items())),
            ),
            slip=measured.slip if measured and measured.rate is not None else 0.0,
            reader_delay=found.delay,
            cpu=self._cpu,
            limit=self._limit,
            probes=self._probes,
            problems=problems,
        )

    def _doubts(self, measured: PerfSegment, found: ArrivedRecords) -> Iterator[str]:
        """Why a latency would be that of the measurement, or of a queue that grows."""
        load = self._load
        if measured.slip > MAX_SLIP:
            yield (
                f"the generator was late by {measured.slip * 1000:,.0f} ms, more than "
                f"{MAX_SLIP * 1000:g} ms: lower the rate, or use a machine with less other work"
            )
        if found.delay > MAX_SLIP:
            yield f"the reader was late by up to {found.delay * 1000:,.0f} ms: lower the rate"
        if self.interrupted:
            return
        if measured.sent < int(load.rate * load.seconds):
            yield "--max-bytes ended the measurement: raise it, or shorten --length"
        if grown := backlog_growth(load, measured.sent, _arrived_within(measured, found)):
            yield f"the backlog grew by {grown:,} records: the flow does not sustain the rate"

    def _measure_latency(self) -> None:
        load = self._load
        self._say(f"warming up at {load.rate:,.0f} records/s")
        before, ended = None, time.monotonic() + load.warm_up
        while self._left():
            segment = self._generator.send(load.rate, load.window, self._left())
            self._wait_arrived(load.window)
            after = self._latencies(segment).percentile(50)
            if is_settled(before, after):
                break
            if time.monotonic() > ended:
                self._problems.append(f"latency did not settle within {load.warm_up:g} s")
                break
            before = after
        self._say(f"measuring for {load.seconds:g} s")
        self._rate = load.rate
        self._reader.forget_delay()
        with self._measuring():
            self._generator.send(load.rate, load.seconds, self._left())

    def _measure_drain(self) -> None:
        """Copy backlogs until two take equally long: the first ones warm MirrorMaker 2 up."""
        rates: list[float] = []
        for number in range(_DRAINS):
            self._say(f"backlog {number + 1}")
            most = min(KEPT_BYTES // 2 // self._load.record_size, self._left() // 2)
            # The first one warms up, and says how much takes about the time that was asked for.
            wanted = int(1.5 * rates[-1] * self._load.seconds) if rates else most // 4
            if not (rate := self._drain(min(most, wanted))):
                return
            rates.append(rate)
            if len(rates) > 1 and abs(rates[-1] / rates[-2] - 1) < _AGREE:
                break
        else:
            tried = ", ".join(f"{each:,.0f}" for each in rates)
            self._problems.append(f"no two backlogs took equally long: {tried} records/s")
        self._rate = rates[-1]
        self._limit = self._name_limit(self._rate, self._cpu)

    def _drain(self, most: int) -> float | None:
        """The rate at which a backlog was copied after the writing had ended; None for none."""
        with self._measuring(cpu=False):
            segment = self._generator.send(None, self._load.seconds, most)
        self._generator.flush()
        written = self._generator.now()
        with self._measuring_cpu():
            if not self._wait_arrived(max(20 * self._load.seconds, 120)):
                self._problems.append("the backlog was not copied: the flow has stopped")
                return None
        ticks = self._reader.look().by_tick
        # Without the first and the last tick, which are partly outside.
        inside = [ticks[each] for each in range(int(written / TICK) + 2, max(ticks) + 1)][:-1]
        if len(inside) * TICK < 1 or sum(inside) < segment.sent / 5:
            if self._load.max_bytes < KEPT_BYTES:
                self._problems.append(_NO_BYTES)
                return None
            self._problems.append(
                "no backlog: the flow copies as fast as the generator writes, "
                f"{segment.sent / max(segment.ended - segment.started, TICK):,.0f} records/s"
            )
            return None
        return sum(inside) / (len(inside) * TICK)

    def _search_rate(self) -> None:
        load = self._load
        guess = load.rate
        if guess >= UNLIMITED:
            self._measure_drain()
            if not self._rate:
                return
            guess = _FIRST_GUESS * self._rate
            self._problems.clear()
            self._rate, self._measured = 0.0, None
        search = RateSearch(guess, load.rate)
        best: tuple[PerfSegment, float | None] | None = None
        limits: dict[float, str] = {load.rate: "--rate"}
        while not search.is_over:
            rate = search.next_rate
            if self._left() < rate * load.seconds:
                self._problems.append(_NO_BYTES)
                break
            good, segment, limit = self._probe(rate)
            if good:
                best = (segment, self._cpu)
            else:
                limits[rate] = limit
            search.learn(sustained=good)
            if not self._wait_arrived(20 * load.seconds):
                self._problems.append("records did not arrive any more: the flow has stopped")
                break
        self._measured = None
        if best is None:
            self._problems.append("no rate was sustained")
            return
        self._rate, (self._measured, self._cpu) = search.found, best
        above = [rate for rate in limits if rate >= search.found]
        self._limit = limits[min(above)] if above else "not known"

    def _probe(self, rate: float) -> tuple[bool, PerfSegment, str]:
        """Whether *rate* is sustained, by the second half of a window; else what limits it."""
        load = self._load
        self._say(f"trying {rate:,.0f} records/s")
        self._generator.send(rate, load.seconds / 2)
        self._reader.forget_delay()
        with self._measuring_cpu():
            segment = self._generator.send(rate, load.seconds / 2)
        self._wait_arrived(2 * load.p99)
        p99 = self._latencies(segment).percentile(99, segment.sent)
        found = self._reader.look()
        is_sent = segment.slip <= MAX_SLIP
        arrived = _arrived_within(segment, found)
        good = is_sent and sustains(segment.sent, arrived, p99, load.p99)
        self._probes.append(PerfProbe(rate, good, p99))
        limit = self._name_limit(rate, self._cpu)
        if limit == _NOT_KNOWN and not is_sent:
            limit = "the generator"
        elif limit == _NOT_KNOWN and found.delay > MAX_SLIP:
            limit = "the reader"
        return good, segment, limit

    def _name_limit(self, rate: float, cpu: float | None) -> str:
        cell, load = self._cell, self._load
        if self._names_cpu and cpu is not None and cpu >= _BUSY:
            return CPU
        share = rate * load.record_size * busiest_share(cell) / load.partitions
        trip = (cell.round_trip_ms or 0) / 1000
        return ROUND_TRIP if trip and share >= _NEAR * round_trip_bytes(cell) / trip else _NOT_KNOWN

    def _left(self) -> int:
        return max(self._most - self._generator.number, 0)

    def _latencies(self, segment: PerfSegment) -> Latencies:
        return self._reader.look().latencies.get(segment.number, Latencies())

    def _wait_arrived(self, seconds: float) -> bool:
        """Wait until all that was accepted has arrived; whether it did."""
        deadline, pause = time.monotonic() + seconds, threading.Event()
        generator = self._generator
        while self._reader.arrived() < generator.number - generator.refused:
            if time.monotonic() > deadline or self._reader.problem:
                return False
            generator.serve()
            pause.wait(_POLL)
        return True

    @contextmanager
    def _measuring(self, *, cpu: bool = True) -> Iterator[None]:
        """What is sent inside is what was measured, also at Ctrl-C."""
        try:
            with self._measuring_cpu() if cpu else nullcontext():
                yield
        finally:
            self._measured = self._generator.segment

    @contextmanager
    def _measuring_cpu(self) -> Iterator[None]:
        before = _cpu_times()
        yield
        after = _cpu_times()
        if before is not None and after is not None and after[1] > before[1]:
            self._cpu = 1 - (after[0] - before[0]) / (after[1] - before[1])


def _arrived_within(segment: PerfSegment, found: ArrivedRecords) -> int:
    """How many records arrived while *segment* was sent."""
    ticks = range(int(segment.started / TICK), int(segment.ended / TICK))
    return sum(found.by_tick[each] for each in ticks)


def _by_second(
    segment: PerfSegment, ticks: Counter[int], latencies: Latencies | None = None
) -> list[int]:
    """Counts by second, from the start of *segment* to its end, or to its last arrival."""
    longest = latencies.percentile(100) if latencies else None
    first, last = int(segment.started / TICK), int((segment.ended + (longest or 0)) / TICK)
    per_second = round(1 / TICK)
    found: Counter[int] = Counter()
    for tick in range(first, last + 1):
        found[(tick - first) // per_second] += ticks[tick]
    return [found[second] for second in range(max(found, default=-1) + 1)]


def _cpu_times() -> tuple[int, int] | None:
    """Idle and all ticks of all CPUs since boot (proc(5)); None without /proc."""
    with suppress(OSError, ValueError):
        fields = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0].split()[1:9]
        times = [int(each) for each in fields]
        return times[3] + times[4], sum(times)
    return None
