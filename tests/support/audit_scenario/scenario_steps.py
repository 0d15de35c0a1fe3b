"""Steps of a scenario on the lab with every kind of fault, run once for many tests.

MirrorMaker 2 runs with a transform that drops marked records, reads committed records, and commits
its offsets every ten seconds. It is killed under load once; meanwhile records of another topic
expire on the source.
"""

import itertools
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from fault_injection import MARK, Content, Injector
from topic_reader import committed_offsets, count_copies
from transactional_traffic import OpenTransaction, produce_in_transaction

from audit_scenario.flow_waits import wait_all_committed, wait_copied
from audit_scenario.record_contents import keyed, keyless, now, unusual_records
from mm2slo_core.topology import Flow
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.lab_faults import dropping
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

US_EU: Final = Flow("us", "eu")
FLUSH_MS: Final = 5_000
SETTINGS: Final = {
    **dropping(US_EU, MARK),
    "eu.offset.flush.interval.ms": str(FLUSH_MS),
    "us.consumer.isolation.level": "read_committed",
}
CLEAN_RECORDS: Final = 10_000
TIMED_RECORDS: Final = 8_000
RECORDS_AFTER_STOP: Final = 30
MIN_REPLAYED: Final = 2_000
"""At least so many records after a commit, which the kill causes to be replicated again."""

# Names on the source.
FAULTS, REPLAY, EXPIRED, CLEAN = "faults", "replay", "expired", "clean"
TRANSACTIONS, COMPACTED, UNUSUAL = "transactions", "compacted", "odd"
TARGET_STAMPED, BOTH_STAMPED, MORE_PARTITIONS = "appended", "stamped", "wider"
BALANCED, STOPPED = "balanced", "stopped"
TOPICS: Final = {
    FAULTS: 2,
    REPLAY: 2,
    EXPIRED: 2,
    CLEAN: 4,
    TRANSACTIONS: 2,
    COMPACTED: 2,
    UNUSUAL: 2,
    TARGET_STAMPED: 2,
    BOTH_STAMPED: 2,
    MORE_PARTITIONS: 5,
    BALANCED: 1,
    STOPPED: 1,
}
"""Partitions of each topic on the source."""
_COMMITTED: Final = tuple(name for name in TOPICS if name not in {REPLAY, TRANSACTIONS})
TARGET_PARTITIONS: Final = {**TOPICS, MORE_PARTITIONS: 10}


@dataclass(slots=True)
class ScenarioTopics:
    """The topics of a run, and their injectors."""

    lab: Lab
    prefix: str
    start: int
    """Before the first record, epoch ms."""
    injectors: dict[str, Injector] = field(default_factory=dict)

    def topic(self, name: str) -> str:
        """Source topic."""
        return f"{self.prefix}.{name}"

    def copy(self, name: str) -> str:
        """Target topic."""
        return f"us.{self.prefix}.{name}"

    def injector(self, name: str) -> Injector:
        """The injector of a topic, made on first use."""
        if name not in self.injectors:
            self.injectors[name] = Injector(
                source=self.lab.cluster("us").librdkafka(),
                target=self.lab.cluster("eu").librdkafka(),
                topic=self.topic(name),
                copy=self.copy(name),
            )
        return self.injectors[name]


def create_topics(topics: ScenarioTopics) -> None:
    """Create source topics, and those copies that differ from MirrorMaker 2's."""
    us, eu = (topics.lab.cluster(alias).admin for alias in ("us", "eu"))
    stamped = {"message.timestamp.type": "LogAppendTime"}
    for name in (TARGET_STAMPED, BOTH_STAMPED):
        eu.create_topic(topics.copy(name), TARGET_PARTITIONS[name], stamped)
    eu.create_topic(topics.copy(MORE_PARTITIONS), TARGET_PARTITIONS[MORE_PARTITIONS])
    configs = {
        UNUSUAL: {"max.message.bytes": "1100000"},
        COMPACTED: {"cleanup.policy": "compact"},
        BOTH_STAMPED: stamped,
    }
    for name, partitions in TOPICS.items():
        us.create_topic(topics.topic(name), partitions, configs.get(name))


def send_records(topics: ScenarioTopics) -> None:
    """Send all records that need no process fault."""
    topics.injector(EXPIRED).plain(keyed(2, 500))
    _faulty(topics.injector(FAULTS))
    topics.injector(UNUSUAL).plain(unusual_records(2))
    topics.injector(MORE_PARTITIONS).plain(keyed(5, 3_000))
    _compacted(topics.injector(COMPACTED))
    _balanced(topics.injector(BALANCED))
    topics.injector(STOPPED).plain(keyed(1, 20))
    _transactions(topics)
    properties = topics.lab.cluster("us").librdkafka()
    # Slow enough to span many polls.
    timed = Load(TIMED_RECORDS, value_size=60, rate=TIMED_RECORDS / 4)
    with ThreadPoolExecutor() as senders:
        sent = [
            senders.submit(produce, properties, topics.topic(name), timed)
            for name in (TARGET_STAMPED, BOTH_STAMPED)
        ]
    for each in sent:
        each.result()
    produce(properties, topics.topic(CLEAN), Load(CLEAN_RECORDS, value_size=60))


def kill_mirrormaker(topics: ScenarioTopics) -> None:
    """Kill MirrorMaker 2 under load, and let records expire before it restarts."""
    lab, topic = topics.lab, topics.topic(REPLAY)
    wait_copied(lab, US_EU, topics.copy(TRANSACTIONS), 600)
    with traffic(lab, topic, rate=1_500):
        # No other topic may have a block to replay.
        wait_committed(topics)
        while True:
            _wait_for_block(lab, topic)
            # Paused, it cannot flush between the check and the kill.
            lab.mm2.pause()
            flushed = sum(each + 1 for each in committed_offsets(lab, US_EU, topic).values())
            if count_copies(lab, topic) >= flushed + MIN_REPLAYED:
                break
            lab.mm2.resume()
        lab.mm2.kill()
        topics.injector(EXPIRED).expire(lab.cluster("us").admin, keyed(2, 200, first=500))
        topics.injector(EXPIRED).plain(keyed(2, 50, first=700))
        lab.mm2.start()
    wait_committed(topics, REPLAY)


def _wait_for_block(lab: Lab, topic: str) -> None:
    """Wait for a flush and copies after it, which may be flushed meanwhile."""
    before = committed_offsets(lab, US_EU, topic)
    wait_for(lambda: _committed_more(before, committed_offsets(lab, US_EU, topic)), "a flush")
    start = count_copies(lab, topic)
    wait_for(lambda: count_copies(lab, topic) >= start + MIN_REPLAYED, "copies")


def write_target_faults(topics: ScenarioTopics) -> None:
    """Write foreign records and duplicates to the target."""
    for injector in topics.injectors.values():
        injector.write_target()


def stop_mirrormaker(topics: ScenarioTopics) -> int:
    """Stop MirrorMaker 2, then produce records; returns the time between, epoch ms."""
    topics.lab.mm2.stop()
    start = now()
    topics.injector(STOPPED).plain(keyed(1, RECORDS_AFTER_STOP, first=20))
    return start


def wait_committed(topics: ScenarioTopics, *more: str) -> None:
    """Wait until all sent records are committed; MM2 does not commit transaction markers."""
    for name in (*_COMMITTED, *more):
        wait_all_committed(topics.lab, US_EU, topics.topic(name))


@contextmanager
def traffic(lab: Lab, topic: str, rate: float) -> Iterator[None]:
    """Produce *rate* records per second to *topic* until the block ends."""
    ended = threading.Event()
    properties = lab.cluster("us").librdkafka()

    def run() -> None:
        for batch in itertools.count():
            if ended.is_set():
                return
            step = int(rate // 2)
            produce(properties, topic, Load(step, first=batch * step, rate=rate))

    sender = threading.Thread(target=run, name=f"traffic-{topic}")
    sender.start()
    try:
        yield
    finally:
        ended.set()
        sender.join()


def _faulty(injector: Injector) -> None:
    """Inject each fault of a record several times, between records without a fault."""
    injector.plain(keyed(2, 400))
    injector.lose(keyed(2, 7, first=1_000, keys=7, text="lost"))
    body = injector.plain(itertools.chain(keyless(2, 300), keyed(2, 300, first=400)))
    injector.lose(keyless(2, 5, text="lost"))
    injector.alter(keyed(2, 6, first=2_000, keys=6, text="original"), b"changed")
    injector.alter(keyed(2, 1, first=2_100, text="erased"), None)
    # Two keyless records of one millisecond: only their order distinguishes them.
    at = now()
    injector.alter([(1, Content(at, None, b"one")), (1, Content(at, None, b"two"))], b"changed")
    injector.alter(keyless(2, 3, text="original"), b"changed as well")
    injector.move(keyed(1, 4, first=3_000, keys=4, text="moved"), 1)
    injector.move(keyless(1, 2, text="moved"), 1)
    injector.plain(keyed(2, 400, first=700))
    # Alternating, so that the duplicates do not form a replay.
    for number, record in enumerate(body[10:590:60]):
        injector.duplicate(record)
        injector.foreign(record.place.partition, Content(now(), b"foreign", b"%d" % number))
    # A third copy, and a foreign record with a record's key and value but another timestamp.
    injector.duplicate(body[10])
    foreign = replace(body[20].content, timestamp=body[20].content.timestamp + 1)
    injector.foreign(body[20].place.partition, foreign)


def _balanced(injector: Injector) -> None:
    """One loss and one duplicate: both sides have the same number of records."""
    body = injector.plain(keyed(1, 100))
    injector.lose(keyed(1, 1, first=100))
    injector.duplicate(body[50])
    injector.plain(keyed(1, 100, first=101))


def _compacted(injector: Injector) -> None:
    """Keys with many records; one lost its newest value, one its tombstone."""
    injector.plain(keyed(2, 1_000, keys=100))
    injector.plain((0, Content(now(), b"deleted", b"%d" % number)) for number in range(3))
    injector.plain([(0, Content(now(), b"deleted", None))])
    injector.plain([(1, Content(now(), b"stale", b"old")), (1, Content(now(), b"undead", b"old"))])
    injector.lose([(1, Content(now(), b"stale", b"new")), (1, Content(now(), b"undead", None))])
    injector.lose([(0, Content(now(), b"never-copied", b"new"))])
    injector.plain(keyed(2, 100, keys=100, first=1_000))


def _transactions(topics: ScenarioTopics) -> None:
    properties = topics.lab.cluster("us").librdkafka()
    topic = topics.topic(TRANSACTIONS)
    for number, abort in enumerate((False, True, False)):
        load = Load(300, first=300 * number, value_size=20)
        produce_in_transaction(properties, topic, load, transactional_id=topics.prefix, abort=abort)


@contextmanager
def open_transaction(topics: ScenarioTopics) -> Iterator[None]:
    """Keep a transaction of 40 records open, and abort it at the end."""
    with OpenTransaction(
        topics.lab.cluster("us").librdkafka(),
        topics.topic(TRANSACTIONS),
        transactional_id=f"{topics.prefix}-open",
    ) as transaction:
        transaction.send(Load(40, first=900, value_size=20))
        yield


def _committed_more(before: Mapping[int, int], after: Mapping[int, int]) -> bool:
    """Whether each partition of the replayed topic has a newer commit."""
    partitions = range(TOPICS[REPLAY])
    return all(after.get(each, -1) > before.get(each, -1) for each in partitions)
