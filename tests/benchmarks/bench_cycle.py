"""Cost of an exporter cycle with 10,000 partitions on each of two clusters, by part.

First nothing changes, then all partitions change between cycles. The exporter runs in its own
process; ratios are to the bare library in the same run. CPU time of a part is that of its thread,
or of the whole process if librdkafka's threads do the work.
"""

import argparse
import statistics
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from exposition_baselines import bare_sender, fetch
from large_flow import ExporterProcess, LargeFlow, Mover, Shape

from mm2slo_kafka.offset_requests import PART_SIZE

WARM_UP = 3
POLL_SECONDS = 5.0
REST_GOAL, MOVING_GOAL = 4.0, 10.0
"""Seconds of CPU per minute."""
AT_ONCE = PART_SIZE
"""Partitions per bare call; more at once cost the square of their number."""
COLLECTION_GOAL = 0.06
"""Seconds of CPU per 10,000 offsets."""
MEMORY_GOALS = {"partition": 200, "topic": 140}
"""Megabytes by granularity."""
REQUEST_GOAL = 0.002
"""Seconds that a scrape may take beyond the bare send, whatever its size."""
END, START = -1, -2
STARTS_EVERY = 6
"""Cycles of 5 s between two reads of start offsets, which default to 30 s."""
KMINION_SECONDS = 0.5
"""The faster of KMinion's scrapes of 28,000 series, one broker of 10,000 partitions."""


def say(what: str, figure: str, ratio: str = "") -> None:
    print(f"  {what:<58}{figure:>14}{ratio:>26}")


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


@dataclass(frozen=True)
class Bare:
    """CPU of one library call per cluster, both together, in seconds."""

    thread: float
    process: float


def bare_library(flow: LargeFlow) -> dict[int, Bare]:
    """Cost of reading end and start offsets of both clusters with the bare library."""
    spent = {}
    for moment in (END, START):
        thread = process = 0.0
        for properties, prefix in ((flow.source, ""), (flow.target, "us.")):
            consumer = Consumer({**properties, "group.id": "bench", "log_level": 2})
            asked = [
                TopicPartition(prefix + here.topic, here.partition, moment)
                for here in flow.shape.source_partitions
            ]
            found = [_cost(consumer, asked) for _ in range(7)][
                1:
            ]  # the first call looks up leaders
            thread += statistics.median(cost[0] for cost in found)
            process += statistics.median(cost[1] for cost in found)
            consumer.close()
        spent[moment] = Bare(thread, process)
    return spent


def _cost(consumer: Consumer, asked: list[TopicPartition]) -> tuple[float, float]:
    thread, process = time.thread_time(), time.process_time()
    for start in range(0, len(asked), AT_ONCE):
        consumer.offsets_for_times(asked[start : start + AT_ONCE], timeout=60)
    return time.thread_time() - thread, time.process_time() - process


class Scrapes:
    """Scrapes in the background, *pause* seconds apart, and records durations."""

    def __init__(self, port: int, pause: float) -> None:
        self._port = port
        self._pause = pause
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.seconds: list[float] = []

    def __enter__(self) -> list[float]:
        self._thread.start()
        return self.seconds

    def __exit__(self, *_exception: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._pause):
            started = time.perf_counter()
            fetch(self._port, request("gzip"))
            self.seconds.append(time.perf_counter() - started)


def request(encoding: str) -> bytes:
    return (
        f"GET /metrics HTTP/1.1\r\nHost: bench\r\nAccept: application/openmetrics-text\r\n"
        f"Accept-Encoding: {encoding}\r\nConnection: close\r\n\r\n"
    ).encode()


def next_cycle(exporter: ExporterProcess) -> dict[str, Any]:
    exporter.taken("cycle")
    return exporter.next("cycle")


def warm_up(exporter: ExporterProcess, mover: Mover) -> None:
    while not next_cycle(exporter)["ready"]:
        pass
    for _ in range(WARM_UP):
        mover.move()
        next_cycle(exporter)


def moving_cycles(
    exporter: ExporterProcess, mover: Mover, cycles: int, *, pause: float
) -> tuple[list[dict[str, Any]], list[float]]:
    exporter.taken("cycle")
    found = []
    with Scrapes(exporter.port, pause) as scrapes:
        for _ in range(cycles):
            found.append(exporter.next("cycle"))
            mover.move()
    return found, scrapes


class CpuRate:
    """CPU per minute of the exporter and its processes, from construction on."""

    def __init__(self, exporter: ExporterProcess) -> None:
        self._exporter = exporter
        self._since, self._cpu = time.monotonic(), exporter.cpu_seconds()

    def report(self, what: str, goal: float) -> None:
        spent = self._exporter.cpu_seconds() - self._cpu
        per_minute = spent / (time.monotonic() - self._since) * 60
        say(f"CPU per minute, {what}", f"{per_minute:.2f} s", f"(goal: {goal:.0f} s)")


def resting_cycles(exporter: ExporterProcess, cycles: int) -> None:
    """Cost of cycles between which nothing changes, all processes of the exporter included."""
    next_cycle(exporter)
    next_cycle(exporter)
    rate = CpuRate(exporter)
    found = [exporter.next("cycle") for _ in range(cycles)]
    rate.report("at rest", REST_GOAL)
    print_parts(Spent(found), found, "nothing moving")


class Spent:
    """Cost of parts over some cycles."""

    def __init__(self, cycles: Sequence[Mapping[str, Any]]) -> None:
        self._cycles = cycles
        self.names = sorted({name for cycle in cycles for name in cycle["parts"]})

    def calls(self, part: str) -> float:
        return sum(self._of(part, "calls")) / len(self._cycles)

    def mean(self, part: str, clock: str) -> float:
        """Mean over all cycles."""
        return sum(self._of(part, clock)) / len(self._cycles)

    def per_call(self, part: str, clock: str) -> float:
        each = [
            cycle["parts"][part][clock] / cycle["parts"][part]["calls"]
            for cycle in self._cycles
            if part in cycle["parts"]
        ]
        return float(statistics.median(each or [0.0]))

    def _of(self, part: str, clock: str) -> list[float]:
        return [cycle["parts"][part][clock] for cycle in self._cycles if part in cycle["parts"]]


def print_parts(spent: Spent, cycles: Sequence[Mapping[str, Any]], what: str) -> None:
    print(f"parts; {len(cycles)} cycles, {what}: calls per cycle, CPU, wall per call")
    for name in spent.names:
        clock = "process" if name.startswith(("collect", "topic", "groups")) else "thread"
        cpu, wall = spent.per_call(name, clock), spent.per_call(name, "wall")
        say(name, milliseconds(cpu), f"x{spent.calls(name):.2f}, wall {milliseconds(wall)}")
    whole = statistics.median(cycle["process"] for cycle in cycles)
    say(
        "the whole process, per cycle of 5 s",
        milliseconds(whole),
        f"{whole / POLL_SECONDS:.1%} of a core",
    )


def print_collection(spent: Spent, bare: Mapping[int, Bare], partitions: int) -> None:
    """The exporter's cost is the bare call plus additional CPU time of its thread.

    librdkafka's threads do the same work either way; taken from the process they would count
    whatever else the exporter does at that moment.
    """
    needed = bare[END].process + bare[START].process / STARTS_EVERY
    needed_thread = bare[END].thread + bare[START].thread / STARTS_EVERY
    parts = ("collect", "collect: requests")  # those in threads of their own
    beyond = sum(spent.mean(part, "thread") for part in parts) - needed_thread
    ours = needed + beyond
    offsets = 2 * partitions * (1 + 1 / STARTS_EVERY)
    each = ours / offsets * 10_000
    print(f"collection, CPU; the bare call is Consumer.offsets_for_times, {AT_ONCE} at once")
    say("bare: ends of both clusters", milliseconds(bare[END].process))
    say("bare: starts of both clusters", milliseconds(bare[START].process))
    say("our threads beyond the bare calls", milliseconds(beyond))
    say("collection per cycle", milliseconds(ours), f"{ours / needed:.2f}x")
    say("per 10,000 offsets", milliseconds(each), f"(goal: {milliseconds(COLLECTION_GOAL)})")


def print_requests(cycles: Sequence[Mapping[str, Any]]) -> None:
    first, last = Counter(cycles[0]["requests"]), Counter(cycles[-1]["requests"])
    seconds = cycles[-1]["at"] - cycles[0]["at"]
    print(f"requests per cycle of {POLL_SECONDS:.0f} s, by the exporter's counters")
    for name, count in sorted((last - first).items()):
        say(name, f"{count / seconds * POLL_SECONDS:.2f}")


def print_timeline(cycles: Sequence[Mapping[str, Any]]) -> None:
    seconds = cycles[-1]["at"] - cycles[0]["at"]
    written = {
        name: cycles[-1][f"timeline_{name}"] - cycles[0][f"timeline_{name}"]
        for name in ("records", "bytes")
    }
    print("timeline, all partitions changing, before compression")
    say("records per second", f"{written['records'] / seconds:.0f}")
    say("bytes per second", f"{written['bytes'] / seconds:,.0f}")


def print_memory(exporter: ExporterProcess, granularity: str) -> None:
    print(f"resident memory, {granularity} granularity")
    for name, size in exporter.resident().items():
        goal = f"(goal: {MEMORY_GOALS[granularity]} MB)" if name == "exporter" else ""
        say(name, f"{size / 1e6:.1f} MB", goal)


def print_rendering(exporter: ExporterProcess, spent: Spent) -> None:
    compared = exporter.compare_rendering()
    theirs, ours = compared["prometheus_client"], spent.per_call("publish: render", "thread")
    print(f"rendering {compared['series']:,} lines, both formats, with and without gzip; CPU")
    say("prometheus_client.generate_latest, classic text", milliseconds(theirs))
    say("render, every value new", milliseconds(ours), f"{ours / theirs:.3f}x (goal: 0.25x)")
    say(
        "render, nothing kept from before",
        milliseconds(compared["first"]),
        f"{compared['first'] / theirs:.3f}x",
    )


def print_scrapes(exporter: ExporterProcess, while_cycling: Sequence[float]) -> None:
    print("a scrape, wall; ratio to a bare loopback send of the same bytes")
    for encoding in ("identity", "gzip"):
        whole = urllib.request.Request(
            f"http://127.0.0.1:{exporter.port}/metrics", headers={"Accept-Encoding": encoding}
        )
        with urllib.request.urlopen(whole) as answer:
            content = answer.read()
        with bare_sender(content) as port:
            pairs = [
                (timed_fetch(port, encoding), timed_fetch(exporter.port, encoding))
                for _ in range(41)
            ]
        bare, ours = (statistics.median(side) for side in zip(*pairs, strict=True))
        say(f"{encoding}: {len(content):,} bytes, bare send", milliseconds(bare))
        goal = f"(goal: 3x, or {milliseconds(REQUEST_GOAL)} more)"
        say(f"{encoding}: scrape", milliseconds(ours), f"{ours / bare:.2f}x {goal}")
        say(
            f"{encoding}: faster than KMinion's 0.5 s by",
            f"{KMINION_SECONDS / ours:.0f}x",
            "(goal: 25x)",
        )
    ordered = sorted(while_cycling)
    say("gzip, throughout the cycles: median", milliseconds(statistics.median(ordered)))
    say("gzip, throughout the cycles: slowest of " + str(len(ordered)), milliseconds(ordered[-1]))


def timed_fetch(port: int, encoding: str) -> float:
    started = time.perf_counter()
    fetch(port, request(encoding))
    return time.perf_counter() - started


def check_lag(flow: LargeFlow, exporter: ExporterProcess, mover: Mover) -> None:
    """Lag is 0 if all is replicated, and the number of appended records if nothing is."""
    partitions = len(flow.shape.source_partitions)
    print("lag of the idle flow, records")
    mover.settle()
    for expected, step in ((0, mover.move), (partitions, mover.settle)):
        next_cycle(exporter)  # may have started before the records were written
        found = next_cycle(exporter)["lag"]
        say(f"expected {expected:,}", f"{found:,}", "exact" if found == expected else "WRONG")
        step()


def measure_by_topic(flow: LargeFlow, cycles: int, history: str) -> None:
    """At topic granularity, with nothing moving after a start that reads *history*."""
    print(f"a start with {history}")
    with ExporterProcess(flow.lab, granularity="topic") as exporter:
        while not next_cycle(exporter)["ready"]:
            pass
        resting_cycles(exporter, cycles)
        print_memory(exporter, "topic")


def measure(flow: LargeFlow, mover: Mover, cycles: int) -> None:
    bare = bare_library(flow)
    with ExporterProcess(flow.lab) as exporter:
        warm_up(exporter, mover)
        mover.settle()
        resting_cycles(exporter, cycles)
        print_memory(exporter, "partition")
        mover.move()
        next_cycle(exporter)
        rate = CpuRate(exporter)
        moving_cycles(exporter, mover, cycles, pause=15)
        rate.report("all partitions moving, scraped every 15 s", MOVING_GOAL)
        found, scrapes = moving_cycles(exporter, mover, cycles, pause=0.25)
        spent = Spent(found)
        print(f"{found[-1]['series']:,} series of {len(flow.shape.source_partitions):,} partitions")
        print_parts(spent, found, "all partitions moving")
        print_memory(exporter, "partition")
        print_collection(spent, bare, len(flow.shape.source_partitions))
        print_requests(found)
        print_timeline(found)
        print_scrapes(exporter, scrapes)
        check_lag(flow, exporter, mover)
        print_rendering(exporter, spent)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument(
        "--topics", type=int, default=2000, help="topics with five partitions each"
    )
    arguments.add_argument(
        "--cycles",
        type=int,
        default=24,
        help="of 5 s each; whole minutes, because some work is done once a minute",
    )
    chosen = arguments.parse_args()
    with LargeFlow.start(Shape(topics=chosen.topics)) as flow:
        measure_by_topic(flow, chosen.cycles, "no history")
        measure(flow, Mover(flow), chosen.cycles)
        measure_by_topic(flow, chosen.cycles, "minutes of history in which all partitions moved")


if __name__ == "__main__":
    main()
