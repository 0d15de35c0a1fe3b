import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka import Consumer
from tests.unit.kafka.conftest import MockCluster, ScriptedClient

from mm2slo_kafka.cluster_metadata import TopicIdentity
from mm2slo_kafka.kafka_errors import ErrorKind
from mm2slo_kafka.tailed_topic import TailedTopic, TailState
from mm2slo_kafka.topic_tail import TailGroup

BACKLOG = 60_000


@pytest.fixture
def group(scripted: ScriptedClient) -> Iterator[TailGroup]:
    made = TailGroup(scripted, refresh_seconds=0.05)
    yield made
    made.close()


class Reading:
    """Topics of a group, and the values read of each, in the order in which they were read."""

    def __init__(self, group: TailGroup, *topics: str) -> None:
        self.group = group
        self.tailed = {topic: TailedTopic(topic) for topic in topics}
        self.values: list[tuple[str, bytes | None]] = []
        for each in self.tailed.values():
            group.add(each)

    def poll(self, max_records: int = 1000) -> None:
        for topic, batch in self.group.poll(max_records, 0.1).items():
            self.values += [(topic, record.value) for record in batch.records]

    def poll_until(self, reached: Callable[[], bool], seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        while not reached():
            assert time.monotonic() < deadline, self.values[-3:]
            self.poll()


def test_group_reads_all_topics_with_one_consumer(
    mock_cluster: MockCluster,
    scripted: ScriptedClient,
    group: TailGroup,
    topic: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [f"{topic}-{number}" for number in range(5)]
    for name in names:
        mock_cluster.write(name, [name.encode()])
    made: list[Mapping[str, str]] = []
    consumer = scripted.handles.consumer

    def count(overrides: Mapping[str, str]) -> Consumer:
        made.append(overrides)
        return consumer(overrides)

    monkeypatch.setattr(scripted.handles, "consumer", count)
    reading = Reading(group, *names)
    reading.poll_until(lambda: all(each.caught_up for each in reading.tailed.values()))
    assert sorted(reading.values) == [(name, name.encode()) for name in names]
    assert [settings for settings in made if "fetch.wait.max.ms" in settings] == made[-1:]


def test_group_reads_new_records_of_a_topic_while_another_is_read_from_its_start(
    mock_cluster: MockCluster, group: TailGroup, topic: str
) -> None:
    restored, live = f"{topic}-restored", f"{topic}-live"
    mock_cluster.write(live, [b"first"])
    mock_cluster.write_many(restored, BACKLOG)
    reading = Reading(group, live)
    reading.poll_until(lambda: reading.tailed[live].caught_up)
    reading.tailed[restored] = TailedTopic(restored)
    group.add(reading.tailed[restored])
    reading.poll_until(lambda: len(reading.values) > 1)
    mock_cluster.write(live, [b"heartbeat"])
    reading.poll_until(lambda: (live, b"heartbeat") in reading.values)
    assert not reading.tailed[restored].caught_up
    reading.poll_until(lambda: reading.tailed[restored].caught_up)
    assert sum(name == restored for name, _ in reading.values) == BACKLOG


def test_group_reads_records_while_a_lookup_does_not_return(
    mock_cluster: MockCluster,
    scripted: ScriptedClient,
    group: TailGroup,
    topic: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mock_cluster.write(topic, [b"a"])
    reading = Reading(group, topic)
    reading.poll_until(lambda: reading.tailed[topic].caught_up)
    asked, answered, identify = threading.Event(), threading.Event(), scripted.identify

    def block(*arguments: Any) -> Any:
        asked.set()
        answered.wait()
        return identify(*arguments)

    monkeypatch.setattr(scripted, "identify", block)
    group.add(TailedTopic(f"{topic}-new"))
    reading.poll_until(asked.is_set)
    mock_cluster.write(topic, [b"b"])
    reading.poll_until(lambda: (topic, b"b") in reading.values)
    answered.set()


def test_group_ignores_records_of_a_removed_topic(
    mock_cluster: MockCluster, group: TailGroup, topic: str
) -> None:
    kept, removed = f"{topic}-kept", f"{topic}-removed"
    mock_cluster.write(kept, [b"a"])
    mock_cluster.write(removed, [b"a"])
    reading = Reading(group, kept, removed)
    reading.poll_until(lambda: all(each.caught_up for each in reading.tailed.values()))
    group.remove(removed)
    mock_cluster.write(removed, [b"b"])
    mock_cluster.write(kept, [b"b"])
    reading.poll_until(lambda: (kept, b"b") in reading.values)
    assert (removed, b"b") not in reading.values


def test_group_reads_topic_that_is_added_again_from_its_start(
    mock_cluster: MockCluster, group: TailGroup, topic: str
) -> None:
    mock_cluster.write(topic, [b"a"])
    reading = Reading(group, topic)
    reading.poll_until(lambda: reading.tailed[topic].caught_up)
    group.remove(topic)
    again = Reading(group, topic)
    again.poll_until(lambda: again.tailed[topic].caught_up)
    assert again.values == [(topic, b"a")]


def test_topic_without_answer_has_problem_and_others_are_read(
    mock_cluster: MockCluster,
    scripted: ScriptedClient,
    group: TailGroup,
    topic: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    denied = f"{topic}-denied"
    mock_cluster.write(topic, [b"a"])
    monkeypatch.setattr(
        scripted,
        "identify",
        lambda topics, _timeout: (
            {name: TopicIdentity("id-1", 4) for name in topics if name != denied},
            {name: ErrorKind.AUTHORIZATION for name in topics if name == denied},
        ),
    )
    reading = Reading(group, topic, denied)
    reading.poll_until(
        lambda: reading.tailed[topic].caught_up and reading.tailed[denied].problem is not None
    )
    problem = reading.tailed[denied].problem
    assert problem is not None
    assert problem.kind is ErrorKind.AUTHORIZATION
    assert reading.tailed[denied].state is TailState.STARTING
    assert reading.tailed[topic].problem is None
