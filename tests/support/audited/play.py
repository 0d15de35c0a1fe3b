"""One story on the lab with every fault in it, told once for many tests.

MirrorMaker 2 runs with a transform that drops what is marked, reads committed, and commits its
offsets every ten seconds. It is killed under load once, and while it is away records of another
topic leave the source.
"""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from fault_injection import MARK, Content, Injector

from audited.contents import keyed, keyless, now, odd
from audited.waiting import commits, copied, source_ends, wait_copied, wait_flushed
from mm2slo_core.topology import Flow
from mm2slo_kafka.traffic import Load, OpenTransaction, produce, produce_in_transaction
from mm2slo_lab.transforms import dropping
from mm2slo_lab.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mm2slo_lab import Lab

US_EU: Final = Flow("us", "eu")
FLUSH_MS: Final = 10_000
SETTINGS: Final = {
    **dropping(US_EU, MARK),
    "eu.offset.flush.interval.ms": str(FLUSH_MS),
    "us.consumer.isolation.level": "read_committed",
}
CLEAN_RECORDS: Final = 205_000
TIMED_RECORDS: Final = 8_000
AFTER_THE_STOP: Final = 30
REPLAYED: Final = 2_000
"""Records after a commit, at least, that the kill leaves to be copied again."""

# Names on the source.
FAULTS, REPLAY, EXPIRED, CLEAN = "faults", "replay", "expired", "clean"
TRANSACTIONS, COMPACTED, ODD = "transactions", "compacted", "odd"
APPENDED, STAMPED, WIDER = "appended", "stamped", "wider"
BALANCED, STOPPED = "balanced", "stopped"
TOPICS: Final = {
    FAULTS: 2,
    REPLAY: 2,
    EXPIRED: 2,
    CLEAN: 4,
    TRANSACTIONS: 2,
    COMPACTED: 2,
    ODD: 2,
    APPENDED: 2,
    STAMPED: 2,
    WIDER: 5,
    BALANCED: 1,
    STOPPED: 1,
}
"""Partitions of each topic on the source."""
_COMMITTED: Final = tuple(name for name in TOPICS if name not in {REPLAY, TRANSACTIONS})
TARGET_PARTITIONS: Final = {**TOPICS, WIDER: 10}


@dataclass(slots=True)
class Story:
    """What was done, and what is true of it."""

    lab: Lab
    prefix: str
    start: int
    """Before the first record; epoch ms."""
    injectors: dict[str, Injector] = field(default_factory=dict)

    def topic(self, name: str) -> str:
        """The source topic."""
        return f"{self.prefix}.{name}"

    def copy(self, name: str) -> str:
        """The target topic."""
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


def create(story: Story) -> None:
    """The topics, and beforehand those copies that differ from what MirrorMaker 2 would make."""
    us, eu = (story.lab.cluster(alias).admin for alias in ("us", "eu"))
    stamped = {"message.timestamp.type": "LogAppendTime"}
    for name in (APPENDED, STAMPED):
        eu.create_topic(story.copy(name), TARGET_PARTITIONS[name], stamped)
    eu.create_topic(story.copy(WIDER), TARGET_PARTITIONS[WIDER])
    configs = {
        ODD: {"max.message.bytes": "1100000"},
        COMPACTED: {"cleanup.policy": "compact"},
        STAMPED: stamped,
    }
    for name, partitions in TOPICS.items():
        us.create_topic(story.topic(name), partitions, configs.get(name))


def send(story: Story) -> None:
    """The first part: everything that needs no fault of the processes."""
    story.injector(EXPIRED).plain(keyed(2, 500))
    _faulty(story.injector(FAULTS))
    story.injector(ODD).plain(odd(2))
    story.injector(WIDER).plain(keyed(5, 3_000))
    _compacted(story.injector(COMPACTED))
    _balanced(story.injector(BALANCED))
    story.injector(STOPPED).plain(keyed(1, 20))
    _transactions(story)
    properties = story.lab.cluster("us").librdkafka()
    # Slow enough for many polls to divide them.
    timed = Load(TIMED_RECORDS, value_size=60, rate=TIMED_RECORDS / 4)
    with ThreadPoolExecutor() as senders:
        sent = [
            senders.submit(produce, properties, story.topic(name), timed)
            for name in (APPENDED, STAMPED)
        ]
    for each in sent:
        each.result()
    produce(properties, story.topic(CLEAN), Load(CLEAN_RECORDS, value_size=60))


def kill(story: Story) -> None:
    """MirrorMaker 2 is killed under load; records expire before it is back."""
    lab, topic, copy = story.lab, story.topic(REPLAY), story.copy(REPLAY)
    wait_copied(lab, US_EU, story.copy(TRANSACTIONS), 600)
    with traffic(lab, topic, rate=2_500):
        # No other topic has a block to replay.
        wait_committed(story)
        before = commits(lab, US_EU, topic)
        wait_for(lambda: _moved(before, commits(lab, US_EU, topic)), "a flush", 40)
        start = copied(lab, US_EU, copy)
        wait_for(lambda: copied(lab, US_EU, copy) >= start + REPLAYED, "a block to replay", 30)
        lab.mm2.kill()
        story.injector(EXPIRED).expire(lab.cluster("us").admin, keyed(2, 200, first=500))
        story.injector(EXPIRED).plain(keyed(2, 50, first=700))
        lab.mm2.start()
    wait_committed(story, REPLAY)


def strike(story: Story) -> None:
    """What is done to the target by hand."""
    for injector in story.injectors.values():
        injector.strike()


def stop(story: Story) -> int:
    """MirrorMaker 2 stops, and records come that it will not copy; when they came, epoch ms."""
    story.lab.mm2.stop()
    start = now()
    story.injector(STOPPED).plain(keyed(1, AFTER_THE_STOP, first=20))
    return start


def wait_committed(story: Story, *more: str) -> None:
    """Wait until all that was sent is committed; a transaction's marker never is."""
    for name in (*_COMMITTED, *more):
        wait_flushed(story.lab, US_EU, story.topic(name), _last(story.lab, story.topic(name)), 90)


@contextmanager
def traffic(lab: Lab, topic: str, rate: float) -> Iterator[None]:
    """Records keep coming to *topic*, *rate* per second, until the block ends."""
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
    """Each fault a record can suffer, several times, between records that suffer none."""
    injector.plain(keyed(2, 400))
    injector.lose(keyed(2, 7, first=1_000, keys=7, text="lost"))
    body = injector.plain(itertools.chain(keyless(2, 300), keyed(2, 300, first=400)))
    injector.lose(keyless(2, 5, text="lost"))
    injector.alter(keyed(2, 6, first=2_000, keys=6, text="original"), b"changed")
    injector.alter(keyed(2, 1, first=2_100, text="erased"), None)
    # Two keyless records of one millisecond: told apart by their order alone.
    at = now()
    injector.alter([(1, Content(at, None, b"one")), (1, Content(at, None, b"two"))], b"changed")
    injector.alter(keyless(2, 3, text="original"), b"changed as well")
    injector.move(keyed(1, 4, first=3_000, keys=4, text="moved"), 1)
    injector.move(keyless(1, 2, text="moved"), 1)
    injector.plain(keyed(2, 400, first=700))
    # Alternating, so that the duplicates are no block that was copied again.
    for number, record in enumerate(body[10:590:60]):
        injector.duplicate(record)
        injector.foreign(record.place.partition, Content(now(), b"foreign", b"%d" % number))
    # A third copy, and a stranger that has the key and the value of a record, but not its time.
    injector.duplicate(body[10])
    stranger = replace(body[20].content, timestamp=body[20].content.timestamp + 1)
    injector.foreign(body[20].place.partition, stranger)


def _balanced(injector: Injector) -> None:
    """One loss and one duplicate: both sides have as many records."""
    body = injector.plain(keyed(1, 100))
    injector.lose(keyed(1, 1, first=100))
    injector.duplicate(body[50])
    injector.plain(keyed(1, 100, first=101))


def _compacted(injector: Injector) -> None:
    """Keys that were written many times; one lost its newest value, one its tombstone."""
    injector.plain(keyed(2, 1_000, keys=100))
    injector.plain((0, Content(now(), b"deleted", b"%d" % number)) for number in range(3))
    injector.plain([(0, Content(now(), b"deleted", None))])
    injector.plain([(1, Content(now(), b"stale", b"old")), (1, Content(now(), b"undead", b"old"))])
    injector.lose([(1, Content(now(), b"stale", b"new")), (1, Content(now(), b"undead", None))])
    injector.lose([(0, Content(now(), b"never-copied", b"new"))])
    injector.plain(keyed(2, 100, keys=100, first=1_000))


def _transactions(story: Story) -> None:
    properties = story.lab.cluster("us").librdkafka()
    topic = story.topic(TRANSACTIONS)
    for number, abort in enumerate((False, True, False)):
        load = Load(300, first=300 * number, value_size=20)
        produce_in_transaction(properties, topic, load, transactional_id=story.prefix, abort=abort)


@contextmanager
def open_transaction(story: Story) -> Iterator[None]:
    """A transaction of 40 records stays open meanwhile, and is aborted at the end."""
    with OpenTransaction(
        story.lab.cluster("us").librdkafka(),
        story.topic(TRANSACTIONS),
        transactional_id=f"{story.prefix}-open",
    ) as transaction:
        transaction.send(Load(40, first=900, value_size=20))
        yield


def _moved(before: Mapping[int, int], after: Mapping[int, int]) -> bool:
    """Whether both partitions of the replayed topic have a newer commit."""
    partitions = range(TOPICS[REPLAY])
    return all(after.get(each, -1) > before.get(each, -1) for each in partitions)


def _last(lab: Lab, topic: str) -> dict[int, int]:
    """The offset of each partition's last record, of those that have one."""
    ends = source_ends(lab, US_EU, topic)
    return {partition: end - 1 for partition, end in ends.items() if end}
