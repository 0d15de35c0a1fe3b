"""`mm2slo perf` on real clusters: its latencies beside those of an independent consumer."""

import math
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer

from mm2slo_cli.perf_bench import PerfBench
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.perf.perf_report import PerfCellResult, compare
from mm2slo_core.perf.perf_schedule import PerfCell, PerfLoad, PerfMode, blocks
from mm2slo_core.topology import Flow
from mm2slo_kafka.perf_generator import HEADER, STAMP
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_topology import LabTopology
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_EU = Flow("us", "eu")


@pytest.fixture(scope="module")
def lab(lab_progress: Progress) -> Iterator[Lab]:
    topology = LabTopology(flows=(US_EU,), far=True, mm2_heap=512)
    with Lab.start(topology, progress=lab_progress) as own:
        yield own


def bench_of(lab: Lab, pause: Callable[[float], None] = time.sleep) -> PerfBench:
    return PerfBench(load_config(lab.config_yaml()), US_EU, print, 120, is_lab=True, pause=pause)


class Witness(threading.Thread):
    """Reads the copies with a plain consumer, and keeps each record's latency by its segment."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(daemon=True)
        self._properties = lab.cluster("eu").librdkafka()
        self._stop_reading = threading.Event()
        self.latencies: dict[int, list[float]] = {}
        # The steady clock of a run differs from the epoch by what that was corrected meanwhile.
        self._offset = time.time() - time.monotonic()

    def run(self) -> None:
        consumer = Consumer(
            {
                **self._properties,
                "group.id": "witness",
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": 500,
                "allow.auto.create.topics": False,
            }
        )
        consumer.subscribe(["^us\\.mm2slo\\.perf\\..*"])
        while not self._stop_reading.is_set():
            message = consumer.poll(0.1)
            if message is None or message.error() is not None:
                continue
            arrived = self._offset + time.monotonic()
            stamp = dict(message.headers() or ())[HEADER]
            assert isinstance(stamp, bytes)
            intended, _, segment = STAMP.unpack(stamp)
            self.latencies.setdefault(segment, []).append(arrived - intended)
        consumer.close()

    def stop(self) -> dict[int, list[float]]:
        self._stop_reading.set()
        self.join()
        return self.latencies


@pytest.mark.parametrize("round_trip", [0, 80])
def test_percentiles_are_those_of_an_independent_consumer(lab: Lab, round_trip: float) -> None:
    servers = lab.set_round_trip("us", round_trip)
    lab.mm2.configure({"us.bootstrap.servers": servers})
    lab.mm2.restart()
    witness = Witness(lab)
    witness.start()
    run = bench_of(lab).run(PerfCell("x", PerfLoad(rate=500, seconds=20)))
    found = witness.stop()
    assert run.problems == []
    assert (run.ledger.missing, run.ledger.duplicates, run.ledger.moved) == (0, 0, 0)
    (own,) = [each for each in found.values() if len(each) == 500 * 20]
    for percent in (50, 90, 99):
        theirs = sorted(own)[math.ceil(len(own) * percent / 100) - 1]
        ours = run.latencies.percentile(percent)
        assert ours == pytest.approx(theirs, rel=0.02, abs=0.002), percent
    # A fetch waits at the broker, so that the answer alone takes the way: half of a round trip.
    assert min(own) >= round_trip / 2000


def test_stalled_generator_is_caught(lab: Lab) -> None:
    stalled = [False]

    def pause(seconds: float) -> None:
        time.sleep(seconds)
        if sending.is_set() and not stalled[0]:
            stalled[0] = True
            time.sleep(0.3)

    sending = threading.Event()
    bench = bench_of(lab, pause)
    bench.say = lambda line: sending.set() if line.startswith("measuring") else None
    run = bench.run(PerfCell("x", PerfLoad(rate=200, seconds=3)))
    assert run.slip == pytest.approx(0.3, abs=0.1)
    assert [each for each in run.problems if each.startswith("the generator was late")]


def test_rate_of_a_far_source_is_bound_by_the_round_trip(lab: Lab) -> None:
    servers = lab.set_round_trip("us", 80)
    lab.mm2.configure({"us.bootstrap.servers": servers, "tasks.max": "1"})
    lab.mm2.restart()
    load = PerfLoad(mode=PerfMode.SUSTAINED, rate=1e9, partitions=1, seconds=4, max_bytes=2e10)
    run = bench_of(lab).run(PerfCell("x", load, 80))
    assert (run.problems, run.limit) == ([], "round trip")
    assert 0.5 * (1 << 20) / 0.08 < run.rate * 1000 < (1 << 20) / 0.08


def test_longer_linger_is_found(lab: Lab) -> None:
    servers = lab.set_round_trip("us", 0)
    linger = "us->eu.producer.override.linger.ms"
    load = PerfLoad(rate=300, seconds=5)
    fast, slow = (
        PerfCellResult(cell=PerfCell(name, load, properties={linger: value}))
        for name, value in (("fast", "0"), ("slow", "100"))
    )
    for block in blocks((fast, slow), 5):
        for result in block:
            lab.mm2.configure({"us.bootstrap.servers": servers, **result.cell.properties})
            lab.mm2.restart()
            result.runs.append(bench_of(lab).run(result.cell))
    slower = compare(fast, slow)["p50"]
    assert slower is not None
    assert slower.is_different
    assert slower.low > 1
