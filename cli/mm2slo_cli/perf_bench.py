"""Runs the cells of a measurement over one flow: topic, generator, reader, and what they found."""

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mm2slo_audit.scope.cluster_readings import open_clients
from mm2slo_core.config.config_model import Config
from mm2slo_core.perf.perf_model import CPU, DEFAULT_FETCH_BYTES, FETCH_BYTES, ROUND_TRIP
from mm2slo_core.perf.perf_report import PerfLedger, PerfProbe, PerfRun
from mm2slo_core.perf.perf_schedule import (
    KEPT_BYTES,
    MAX_SLIP,
    TOPIC,
    PerfCell,
    PerfLoad,
    PerfMode,
    RateSearch,
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
from mm2slo_kafka.perf_reader import PerfReader, steady_clock

_LEFT_SECONDS: Final = 30.0
"""How long the last records may take to arrive."""
_MAX_READER_DELAY: Final = 0.1
_BUSY: Final = 0.85
"""Of the machine's CPU: above it, the CPU is what limits."""
_DRAINS: Final = 4
_AGREE: Final = 0.1
_POLL: Final = 0.05
_FIRST_GUESS: Final = 0.7
"""Of the rate of a backlog: writing takes its share of what limits."""


@dataclass(slots=True)
class PerfBench:
    """Measures one flow. What it creates it deletes, also after an error or Ctrl-C."""

    config: Config
    flow: Flow
    say: Callable[[str], None]
    wait: float
    """Seconds; until MirrorMaker 2 copies a new topic."""
    after: Callable[[str], None] = lambda _topic: None
    """Called with the topic of each run, before it is deleted."""
    pause: Callable[[float], None] = time.sleep
    interrupted: bool = False
    """Whether Ctrl-C ended the last run, which has what was measured until then."""

    def run(self, cell: PerfCell) -> PerfRun:
        """Measure *cell* once. Raises UserError if nothing is copied."""
        (settings,) = self.config.as_settings().select([self.flow.label])
        topic = f"{TOPIC}.{uuid.uuid4().hex[:10]}"
        pairs = replicated_topics(settings, [topic])
        if not pairs:
            raise UserError(
                f"{self.flow.label} does not copy {topic}: expected topics that select {TOPIC}.*"
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
                measure = _Measurement(cell, generator, reader, self.say)
                try:
                    measure.run()
                except KeyboardInterrupt:
                    self.interrupted = True
                found = measure.result()
            self.after(topic)
            return found

    @contextmanager
    def _topic(
        self, source: ClusterClient, target: ClusterClient, topic: str, copy: str, load: PerfLoad
    ) -> Iterator[None]:
        kept = KEPT_BYTES // load.partitions
        # MirrorMaker 2 gives the copy the same settings. Segments of less than 1 MiB are refused.
        limits = {"retention.bytes": f"{kept}", "segment.bytes": f"{max(kept // 8, 1 << 20)}"}
        if not source.create_topic(topic, partitions=load.partitions, config=limits):
            raise UserError(f"{topic} exists on {source.alias}: nothing was written")
        try:
            if load.copy_partitions:
                target.create_topic(copy, partitions=load.copy_partitions, config=limits)
            yield
        finally:
            left = [each for each in ((source, topic), (target, copy)) if not delete_topic(*each)]
            if left:
                names = ", ".join(f"{name} on {client.alias}" for client, name in left)
                self.say(f"not deleted: {names}")

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


class _Measurement:
    """One run: warm-up, what the mode asks for, and the rest of the records."""

    def __init__(
        self,
        cell: PerfCell,
        generator: PerfGenerator,
        reader: PerfReader,
        say: Callable[[str], None],
    ) -> None:
        self._cell = cell
        self._load = cell.load
        self._generator = generator
        self._reader = reader
        self._say = say
        self._started_at = time.time()
        self._measured: list[PerfSegment] = []
        self._rate = 0.0
        self._cpu: float | None = None
        self._limit = ""
        self._probes: list[PerfProbe] = []
        self._problems: list[str] = []
        self._most = max(int(self._load.max_bytes // self._load.record_size), 1)

    def run(self) -> None:
        modes = {
            PerfMode.LATENCY: self._measure_latency,
            PerfMode.SUSTAINED: self._search_rate,
            PerfMode.DRAIN: self._measure_drain,
        }
        modes[self._load.mode]()

    def result(self) -> PerfRun:
        """What was measured; waits for the records that are on their way."""
        unacknowledged = self._generator.flush()
        self._wait_arrived(_LEFT_SECONDS)
        found, generator = self._reader.look(), self._generator
        slip = max((each.slip for each in self._measured if each.rate is not None), default=0.0)
        latencies = [found.latencies.get(each.number, Latencies()) for each in self._measured]
        missing = generator.acknowledged - found.arrived
        if self._reader.problem:
            self._problems.append(f"the reader failed: {self._reader.problem}")
        if unacknowledged or generator.problem:
            left = generator.number - generator.acknowledged
            reason = generator.problem or "no answer"
            self._problems.append(f"{left:,} records were not accepted: {reason}")
        if missing > 0 and self._load.mode is PerfMode.LATENCY:
            self._problems.append(
                f"{missing:,} records had not arrived after {_LEFT_SECONDS:g} s: the flow does "
                "not sustain the rate, or has stopped"
            )
        # The search for a rate also tries those that cannot be sent: they are no results.
        if slip > MAX_SLIP and self._load.mode is PerfMode.LATENCY:
            self._problems.append(
                f"the generator was late by {slip * 1000:,.0f} ms, more than "
                f"{MAX_SLIP * 1000:g} ms: lower the rate, or use a machine with less other work"
            )
        if found.delay > _MAX_READER_DELAY and self._load.mode is PerfMode.LATENCY:
            self._problems.append(
                f"the reader was late by up to {found.delay * 1000:,.0f} ms: lower the rate"
            )
        if not sum(each.count for each in latencies):
            self._problems.append("nothing was measured")
        return PerfRun(
            started_at=self._started_at,
            rate=self._rate,
            latencies=Latencies.merged(latencies),
            sent=_by_second(self._measured, sum_of([each.sent_by_tick for each in self._measured])),
            arrived=_by_second(self._measured, found.by_tick),
            ledger=PerfLedger(
                sent=generator.number,
                acknowledged=generator.acknowledged,
                arrived=found.arrived,
                missing=max(missing, 0),
                duplicates=found.duplicates,
                reordered=found.reordered,
                moved=found.moved,
                by_partition=dict(sorted(found.by_partition.items())),
            ),
            slip=slip,
            reader_delay=found.delay,
            cpu=self._cpu,
            limit=self._limit,
            probes=self._probes,
            problems=self._problems,
        )

    def _measure_latency(self) -> None:
        load = self._load
        self._say(f"warming up at {load.rate:,.0f} records/s")
        before, ended = None, time.monotonic() + load.warm_up
        while True:
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
        with self._measuring_cpu():
            self._measured.append(self._generator.send(load.rate, load.seconds, self._left()))

    def _measure_drain(self) -> None:
        """Copy backlogs until two take equally long: the first ones warm MirrorMaker 2 up."""
        rates: list[float] = []
        for number in range(_DRAINS):
            self._say(f"backlog {number + 1}")
            most = min(KEPT_BYTES // 2 // self._load.record_size, self._left() // 2)
            # The first one warms up, and says how much takes about the time that was asked for.
            wanted = int(1.5 * self._rate * self._load.seconds) if self._rate else most // 4
            rate = self._drain(min(most, wanted))
            if rate is None:
                return
            rates.append(rate)
            self._rate = rate
            if len(rates) > 1 and abs(rates[-1] / rates[-2] - 1) < _AGREE:
                break
        self._limit = self._name_limit(self._rate)

    def _drain(self, most: int) -> float | None:
        """The rate at which a backlog was copied after the writing had ended; None for none."""
        rate = self._load.rate
        segment = self._generator.send(None, self._load.seconds, min(most, int(rate * 60)))
        self._generator.flush()
        written = self._now()
        self._measured = [segment]
        with self._measuring_cpu():
            if not self._wait_arrived(max(20 * self._load.seconds, 120)):
                self._problems.append("the backlog was not copied: the flow has stopped")
                return None
        ticks = self._reader.look().by_tick
        # Without the first and the last tick, which are partly outside.
        inside = [ticks[t] for t in range(int(written / TICK) + 2, int(self._now() / TICK) + 1)]
        while inside and not inside[-1]:
            inside.pop()
        inside = inside[:-1]
        if len(inside) * TICK < 1 or sum(inside) < segment.sent / 5:
            self._problems.append(
                "no backlog: the flow copies as fast as the generator writes, "
                f"{segment.sent / max(segment.ended - segment.started, TICK):,.0f} records/s"
            )
            return None
        return sum(inside) / (len(inside) * TICK)

    def _search_rate(self) -> None:
        load = self._load
        self._measure_drain()
        if not self._rate:
            return
        self._problems.clear()
        search = RateSearch(_FIRST_GUESS * self._rate, load.rate)
        best: tuple[PerfSegment, float | None] | None = None
        while not search.is_over and self._left() > search.next_rate * load.seconds:
            rate = search.next_rate
            self._say(f"trying {rate:,.0f} records/s")
            self._generator.send(rate, load.seconds / 2)
            with self._measuring_cpu():
                segment = self._generator.send(rate, load.seconds / 2)
            self._wait_arrived(2 * load.p99)
            p99 = self._latencies(segment).percentile(99)
            arrived = sum(
                self._reader.look().by_tick[tick]
                for tick in range(int(segment.started / TICK), int(segment.ended / TICK))
            )
            is_sent = segment.slip <= MAX_SLIP
            good = is_sent and sustains(segment.sent, arrived, p99, load.p99)
            self._probes.append(PerfProbe(rate, good, p99))
            if good:
                best = (segment, self._cpu)
            elif not is_sent and (self._cpu or 0) < _BUSY:
                self._limit = f"the generator: late by {segment.slip * 1000:,.0f} ms"
            search.learn(sustained=good)
            self._wait_arrived(20 * load.seconds)
        self._rate = search.found
        self._measured = []
        if best is None:
            self._problems.append("no rate was sustained")
            return
        self._measured, self._cpu = [best[0]], best[1]
        if not self._limit.startswith("the generator"):
            self._limit = self._name_limit(self._rate)
        if not search.is_over:
            self._problems.append("the limit of bytes was reached before a rate was found")

    def _name_limit(self, rate: float) -> str:
        cell, load = self._cell, self._load
        if self._cpu is not None and self._cpu >= _BUSY:
            return CPU
        settings = (v for k, v in cell.properties.items() if k.endswith(FETCH_BYTES))
        fetch = int(next(settings, DEFAULT_FETCH_BYTES))
        share = rate * load.record_size / load.partitions
        if cell.round_trip_ms and share >= 0.5 * fetch / (cell.round_trip_ms / 1000):
            return ROUND_TRIP
        return "not known"

    def _left(self) -> int:
        return max(self._most - self._generator.number, 0)

    def _latencies(self, segment: PerfSegment) -> Latencies:
        return self._reader.look().latencies.get(segment.number, Latencies())

    def _wait_arrived(self, seconds: float) -> bool:
        """Wait until all that was sent has arrived; whether it did."""
        deadline, pause = time.monotonic() + seconds, threading.Event()
        while self._reader.arrived() < self._generator.number and not self._reader.problem:
            if time.monotonic() > deadline:
                return False
            self._generator.serve()
            pause.wait(_POLL)
        return not self._reader.problem

    def _now(self) -> float:
        return self._generator.now()

    @contextmanager
    def _measuring_cpu(self) -> Iterator[None]:
        before = _cpu_times()
        yield
        after = _cpu_times()
        if before is not None and after is not None and after[1] > before[1]:
            self._cpu = 1 - (after[0] - before[0]) / (after[1] - before[1])


def sum_of(counters: list[Counter[int]]) -> Counter[int]:
    """All counts together."""
    found: Counter[int] = Counter()
    for each in counters:
        found.update(each)
    return found


def _by_second(segments: list[PerfSegment], ticks: Counter[int]) -> list[int]:
    """Counts by second, from the start of what was measured to its last arrival."""
    if not segments:
        return []
    first = int(segments[0].started / TICK)
    per_second = round(1 / TICK)
    found: Counter[int] = Counter()
    for tick, count in ticks.items():
        if tick >= first:
            found[(tick - first) // per_second] += count
    return [found[second] for second in range(max(found, default=-1) + 1)]


def _cpu_times() -> tuple[int, int] | None:
    """Idle and all ticks of all CPUs since boot (proc(5)); None without /proc."""
    with suppress(OSError, ValueError):
        fields = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0].split()[1:9]
        times = [int(each) for each in fields]
        return times[3] + times[4], sum(times)
    return None
