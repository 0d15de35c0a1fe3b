import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from mm2slo_exporter.collection_health import CollectionHealth, CollectionStage
from mm2slo_exporter.readers import internal_topics_reader
from mm2slo_exporter.readers.internal_topics_reader import InternalTopicsReader, Subscription
from mm2slo_kafka.cluster_metadata import TopicIdentity
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.tailed_topic import (
    Restarted,
    RestartReason,
    TailBatch,
    TailedTopic,
    TailRecord,
    TopicDescription,
)

SYNCS = "mm2-offset-syncs.eu.internal"


def record(offset: int, partition: int = 0) -> TailRecord:
    return TailRecord(partition, offset, 0, b"key", str(offset).encode(), None)


class Flow:
    """The subscription of a flow, and what it has applied."""

    def __init__(self, topic: str = SYNCS) -> None:
        self.offsets: list[int] = []
        self.completions = 0
        self.subscription = Subscription(
            topic,
            CollectionStage.OFFSET_SYNCS,
            apply=self._apply,
            clear=self.offsets.clear,
            on_complete=self._complete,
        )

    def _apply(self, records: Sequence[TailRecord]) -> None:
        self.offsets += [each.offset for each in records]

    def _complete(self) -> None:
        self.completions += 1


def is_complete(flow: Flow) -> bool:
    return flow.subscription.is_complete


def tailed_topic(end: int, *, topic_id: str = "id-1", read_to: int | None = None) -> TailedTopic:
    """A topic of one partition that was read up to *read_to*, by default to its end."""
    tailed = TailedTopic(SYNCS)
    tailed.describe(TopicDescription(TopicIdentity(topic_id, 1), {0: 0}, {0: end}))
    for offset in range(end if read_to is None else read_to):
        tailed.take(0, offset)
    return tailed


def batch(*offsets: int, restarted: bool = False) -> TailBatch:
    return TailBatch(
        [record(offset) for offset in offsets],
        Restarted(RestartReason.RECREATED) if restarted else None,
        None,
    )


def test_subscription_is_complete_when_the_topic_was_read_to_its_initial_end() -> None:
    flow = Flow()
    flow.subscription.take(tailed_topic(2, read_to=1), batch(0))
    assert is_complete(flow) is False
    flow.subscription.take(tailed_topic(2), batch(1))
    assert is_complete(flow) is True
    assert (flow.offsets, flow.completions) == ([0, 1], 1)


def test_subscription_to_absent_topic_is_complete_until_the_topic_exists() -> None:
    flow, absent = Flow(), TailedTopic(SYNCS)
    flow.subscription.take(absent, batch())
    assert is_complete(flow) is False
    absent.describe(TopicDescription(None, {}, {}))
    flow.subscription.take(absent, batch())
    assert is_complete(flow) is True
    flow.subscription.take(tailed_topic(2, read_to=1), batch(0))
    assert is_complete(flow) is False


def test_subscription_is_applied_once_when_its_topic_is_read_again_for_another_flow() -> None:
    flow, other = Flow(), Flow()
    flow.subscription.take(tailed_topic(2), batch(0, 1))
    again = tailed_topic(3, read_to=1)
    for each in (flow, other):
        each.subscription.take(again, batch(0))
    assert flow.subscription.is_complete
    assert not other.subscription.is_complete
    for each in (flow, other):
        each.subscription.take(tailed_topic(3), batch(1, 2))
    assert flow.offsets == other.offsets == [0, 1, 2]
    assert other.subscription.is_complete


@pytest.mark.parametrize("seen_by_tail", [True, False])
def test_subscription_to_recreated_topic_is_cleared_and_read_again(seen_by_tail: bool) -> None:
    flow = Flow()
    flow.subscription.take(tailed_topic(2), batch(0, 1))
    recreated = tailed_topic(3, topic_id="id-2", read_to=1)
    flow.subscription.take(recreated, batch(0, restarted=seen_by_tail))
    assert flow.offsets == [0]
    assert not flow.subscription.is_complete
    flow.subscription.take(tailed_topic(3, topic_id="id-2"), batch(1, 2))
    assert (flow.offsets, flow.completions) == ([0, 1, 2], 2)


class Group:
    """A fake TailGroup: each topic has the records 0 and 1, and those that a test adds."""

    def __init__(self, *_: object, **__: object) -> None:
        groups.append(self)
        self.topics: dict[str, TailedTopic] = {}
        self.logs: dict[str, list[int]] = {}
        self.closed = False

    def add(self, tailed: TailedTopic) -> None:
        self.topics[tailed.topic] = tailed
        self.logs[tailed.topic] = [0, 1]

    def remove(self, topic: str) -> None:
        del self.topics[topic], self.logs[topic]

    def poll(self, _max_records: int, _timeout: float) -> dict[str, TailBatch]:
        step.wait(0.01)
        if failures:
            raise failures.pop()
        batches = {}
        for topic, tailed in self.topics.items():
            if topic in problems:
                tailed.problem = problems[topic]
                batches[topic] = TailBatch([], None, tailed.problem)
                continue
            new, self.logs[topic] = self.logs[topic], []
            if new:
                tailed.describe(TopicDescription(TopicIdentity("id-1", 1), {0: 0}, {0: 2}))
                for offset in new:
                    tailed.take(0, offset)
                batches[topic] = TailBatch([record(offset) for offset in new], None, None)
        return batches

    def close(self) -> None:
        self.closed = True


groups: list[Group] = []
failures: list[Exception] = []
problems: dict[str, KafkaOperationError] = {}
step = threading.Event()


class Client:
    alias = "us"


@pytest.fixture
def health() -> CollectionHealth:
    return CollectionHealth()


@pytest.fixture
def reader(
    health: CollectionHealth, monkeypatch: pytest.MonkeyPatch
) -> Iterator[InternalTopicsReader]:
    for held in (groups, failures, problems):
        held.clear()
    monkeypatch.setattr(internal_topics_reader, "TailGroup", Group)
    made = InternalTopicsReader(Client(), health)  # type: ignore[arg-type]  # only its alias is used
    yield made
    made.stop()
    assert all(group.closed for group in groups)


def wait_until(reached: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(3000):
        if reached():
            return
        pause.wait(0.01)
    pytest.fail("not reached within 30 s")


def test_reader_reads_the_topics_of_all_flows_in_one_group(reader: InternalTopicsReader) -> None:
    flows = [Flow(f"topic-{number}") for number in range(3)]
    for flow in flows:
        reader.follow(flow.subscription)
        reader.follow(flow.subscription)
    wait_until(lambda: all(flow.offsets == [0, 1] for flow in flows))
    assert len(groups) == 1


def test_reader_reads_a_shared_topic_again_for_a_flow_that_follows_it_later(
    reader: InternalTopicsReader,
) -> None:
    first, later = Flow(), Flow()
    reader.follow(first.subscription)
    wait_until(lambda: first.subscription.is_complete)
    reader.follow(later.subscription)
    wait_until(lambda: later.subscription.is_complete)
    assert first.offsets == later.offsets == [0, 1]
    assert first.completions == 1


def test_reader_stops_reading_a_topic_when_no_flow_follows_it(
    reader: InternalTopicsReader,
) -> None:
    first, second = Flow(), Flow()
    for flow in (first, second):
        reader.follow(flow.subscription)
    wait_until(lambda: second.subscription.is_complete)
    tailed = groups[0].topics[SYNCS]
    reader.unfollow(first.subscription)
    groups[0].logs[SYNCS].append(2)
    wait_until(lambda: second.offsets == [0, 1, 2])
    assert groups[0].topics[SYNCS] is tailed
    reader.unfollow(second.subscription)
    wait_until(lambda: not groups[0].topics)


def test_reader_reads_all_topics_again_after_an_unexpected_exception(
    reader: InternalTopicsReader, health: CollectionHealth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader._thread, "_first_backoff", 0.01)
    flow = Flow()
    reader.follow(flow.subscription)
    wait_until(lambda: flow.completions == 1)
    failures.append(ValueError("a bug"))
    wait_until(lambda: flow.completions == 2)
    assert flow.offsets == [0, 1]
    assert len(groups) == 2
    assert health.report().loop_failures["internals"] == 1  # type: ignore[index]  # a StrEnum


def test_reader_reports_a_denied_topic_by_reason_and_reads_the_others(
    reader: InternalTopicsReader, health: CollectionHealth
) -> None:
    denied, read = Flow("denied"), Flow("open")
    problems["denied"] = KafkaOperationError(
        ErrorKind.AUTHORIZATION, cluster="us", operation="describing", detail="refused"
    )
    denied.subscription.stage = CollectionStage.CHECKPOINTS
    for flow in (denied, read):
        reader.follow(flow.subscription)
    wait_until(lambda: read.subscription.is_complete)
    wait_until(lambda: bool(health.failing_stages("us")))
    assert health.failing_stages("us") == {CollectionStage.CHECKPOINTS: "authorization"}
    assert not denied.subscription.is_complete
    assert health.report().last_success.keys() == {("us", CollectionStage.OFFSET_SYNCS)}
