"""Offsets, first records, groups and topic configs, read from a broker."""

import gc
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Uuid
from transactional_traffic import OpenTransaction, produce_in_transaction

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka import partition_offsets
from mm2slo_kafka.client_handles import HandleFactory
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.first_records import FirstRecord
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.record_producer import Delivered, DeliveryResult, RecordProducer
from mm2slo_lab.lab_data import Load, commit, produce
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("quiet-lab")]
KEEP_ALL = {"retention.ms": "-1"}  # old records would be deleted within a second


@pytest.fixture
def us(lab: Lab) -> Iterator[ClusterClient]:
    with ClusterClient("us", lab.cluster("us").librdkafka()) as client:
        yield client


def test_offsets_of_idle_topic_equal_record_count(
    lab: Lab, us: ClusterClient, fresh_topic: str
) -> None:
    broker = lab.cluster("us")
    broker.admin.create_topic(fresh_topic, 3)
    first, second, third = (TopicPartition(fresh_topic, number) for number in range(3))
    produce(broker.librdkafka(), fresh_topic, Load(40, partition=0))
    produce(broker.librdkafka(), fresh_topic, Load(7, partition=2))
    broker.admin.delete_records(fresh_topic, {0: 15})
    expected = {first: 40, second: 0, third: 7}
    assert us.end_offsets([first, second, third]).offsets == expected
    assert us.end_offsets([first, second, third], "read_committed").offsets == expected
    assert us.start_offsets([first, second, third]).offsets == {first: 15, second: 0, third: 0}


def test_missing_topics_and_partitions_are_reported(
    lab: Lab, us: ClusterClient, fresh_topic: str
) -> None:
    lab.cluster("us").admin.create_topic(fresh_topic, 1)
    lab.cluster("us").admin.end_offsets(fresh_topic)  # waits for its leader
    existing, beyond = TopicPartition(fresh_topic, 0), TopicPartition(fresh_topic, 5)
    missing = TopicPartition(f"{fresh_topic}-missing", 0)
    unknown = ErrorKind.UNKNOWN_TOPIC
    reading = us.end_offsets([missing, existing, beyond])
    assert reading.offsets == {existing: 0}
    assert reading.errors == {missing: unknown, beyond: unknown}
    assert us.start_offsets([missing, beyond]).errors == {missing: unknown, beyond: unknown}
    assert missing.topic not in us.topics().partition_counts


def test_offsets_of_more_partitions_than_one_request_takes_are_complete(
    lab: Lab, us: ClusterClient, fresh_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 8
    monkeypatch.setattr(partition_offsets, "PART_SIZE", size)
    broker = lab.cluster("us")
    broker.admin.create_topic(fresh_topic, size + 4, KEEP_ALL)
    wanted = [TopicPartition(fresh_topic, number) for number in range(size + 4)]
    beyond = TopicPartition(fresh_topic, size + 4)
    missing = [TopicPartition(f"{fresh_topic}-missing", number) for number in range(size)]
    expected = dict.fromkeys(wanted, 0)
    for number in (0, size - 1, size, size + 3):
        produce(broker.librdkafka(), fresh_topic, Load(3, partition=number))
        expected[wanted[number]] = 3
    for _ in range(2):  # the second time with known leaders
        for isolation in ("read_uncommitted", "read_committed"):
            reading = us.end_offsets([*wanted, beyond, *missing], isolation)
            assert reading.offsets == expected
            assert reading.errors == dict.fromkeys([beyond, *missing], ErrorKind.UNKNOWN_TOPIC)
        assert us.start_offsets(wanted).offsets == dict.fromkeys(wanted, 0)
        assert us.offsets_at(wanted, time.time() + 60).offsets == expected
        us.topics()


def test_open_transaction_limits_only_last_stable_offset(
    lab: Lab, us: ClusterClient, fresh_topic: str
) -> None:
    broker = lab.cluster("us")
    broker.admin.create_topic(fresh_topic, 1)
    orders = TopicPartition(fresh_topic, 0)
    produce(broker.librdkafka(), fresh_topic, Load(5))
    with OpenTransaction(
        broker.librdkafka(), fresh_topic, transactional_id=fresh_topic
    ) as transaction:
        transaction.send(Load(3))
        assert us.end_offsets([orders], "read_uncommitted").offsets == {orders: 8}
        assert us.end_offsets([orders], "read_committed").offsets == {orders: 5}
        answer = us.first_records({orders: (5, 8)}, "read_committed")
        assert answer.failures == {orders: ErrorKind.OTHER}
        found = us.first_records({orders: (5, 8)}, "read_uncommitted").found[orders]
        assert found is not None
        assert found.offset == 5
        transaction.commit()
    # The coordinator writes the marker after its response.
    wait_for(
        lambda: us.end_offsets([orders], "read_committed").offsets == {orders: 9}, "the marker"
    )


def test_aborted_batch_is_visible_to_read_uncommitted_only(
    lab: Lab, us: ClusterClient, fresh_topic: str
) -> None:
    broker = lab.cluster("us")
    broker.admin.create_topic(fresh_topic, 1)
    orders = TopicPartition(fresh_topic, 0)
    produce_in_transaction(
        broker.librdkafka(), fresh_topic, Load(4), transactional_id=fresh_topic, abort=True
    )
    wait_for(
        lambda: us.end_offsets([orders], "read_committed").offsets == {orders: 5}, "the marker"
    )
    assert us.first_records({orders: (0, 5)}, "read_committed").found[orders] is None
    uncommitted = us.first_records({orders: (2, 5)}, "read_uncommitted").found[orders]
    assert uncommitted is not None
    assert uncommitted.offset == 2
    assert us.first_records({orders: (4, 5)}, "read_uncommitted").found[orders] is None


def test_record_at_compaction_gap_is_next_record(
    lab: Lab, us: ClusterClient, fresh_topic: str
) -> None:
    broker = lab.cluster("us")
    settings = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "1",
        "segment.ms": "50",
    }
    broker.admin.create_topic(fresh_topic, 1, settings)
    orders = TopicPartition(fresh_topic, 0)
    for _ in range(3):
        produce(broker.librdkafka(), fresh_topic, Load(20, keys=("same",)))
        time.sleep(0.1)  # segment.ms: the next record rolls the segment

    def first() -> FirstRecord | None:
        return us.first_records({orders: (0, 60)}).found[orders]

    wait_for(lambda: (found := first()) is not None and found.offset > 0, "compaction")
    found = first()
    assert found is not None
    assert us.start_offsets([orders]).offsets == {orders: 0}
    assert us.first_records({orders: (0, found.offset)}).found[orders] is None


def test_record_below_log_start_is_first_remaining_record(
    lab: Lab, us: ClusterClient, fresh_topic: str
) -> None:
    broker = lab.cluster("us")
    broker.admin.create_topic(fresh_topic, 1, KEEP_ALL)
    produce(broker.librdkafka(), fresh_topic, Load(10, timestamp=1_700_000_000.5))
    broker.admin.delete_records(fresh_topic, {0: 6})
    found = us.first_records({TopicPartition(fresh_topic, 0): (2, 10)}).found[
        TopicPartition(fresh_topic, 0)
    ]
    assert found == FirstRecord(6, 1_700_000_000_500)


def test_offsets_by_time_fall_back_to_the_end(
    lab: Lab, us: ClusterClient, fresh_topic: str
) -> None:
    broker = lab.cluster("us")
    broker.admin.create_topic(fresh_topic, 2, KEEP_ALL)
    for second in range(5):
        load = Load(1, partition=0, timestamp=1_700_000_000.0 + second)
        produce(broker.librdkafka(), fresh_topic, load)
    both = [TopicPartition(fresh_topic, 0), TopicPartition(fresh_topic, 1)]
    assert us.offsets_at(both, 1_700_000_002.5).offsets == {both[0]: 3, both[1]: 0}
    assert us.offsets_at(both, 1_700_000_009.0).offsets == {both[0]: 5, both[1]: 0}


def test_groups_have_committed_offsets(lab: Lab, us: ClusterClient, fresh_topic: str) -> None:
    broker = lab.cluster("us")
    broker.admin.create_topic(fresh_topic, 2)
    produce(broker.librdkafka(), fresh_topic, Load(10, partition=0))
    names = [f"{fresh_topic}-{number}" for number in range(25)]
    for number, name in enumerate(names):
        commit(broker.librdkafka(), fresh_topic, name, {0: number % 10})
    listed = {found.group: found for found in us.groups().groups}
    assert {listed[name].state for name in names} == {"empty"}
    answers = us.group_offsets([*names, "never-seen"])
    assert answers["never-seen"].found == {}
    assert [answers[name].found for name in names] == [
        {TopicPartition(fresh_topic, 0): number % 10} for number in range(25)
    ]


def test_topic_configs_distinguish_topic_settings_from_defaults(
    lab: Lab, us: ClusterClient, fresh_topic: str
) -> None:
    lab.cluster("us").admin.create_topic(fresh_topic, 1, {"retention.ms": "60000"})
    missing = f"{fresh_topic}-missing"
    reading = us.topic_configs([fresh_topic, missing])
    own = {name: e.value for name, e in reading.configs[fresh_topic].items() if not e.is_default}
    assert own == {"retention.ms": "60000"}
    assert reading.configs[fresh_topic]["retention.ms"].source == "DYNAMIC_TOPIC_CONFIG"
    assert reading.errors == {missing: ErrorKind.UNKNOWN_TOPIC}


def test_create_topic_twice_succeeds_and_recreated_topic_has_new_id(
    lab: Lab, us: ClusterClient, fresh_topic: str
) -> None:
    assert not us.topic_exists(fresh_topic)
    assert us.create_topic(fresh_topic, partitions=2, config={"cleanup.policy": "compact"})
    assert not us.create_topic(fresh_topic, partitions=2)
    wait_for(lambda: us.topic_exists(fresh_topic), "the topic in the broker's metadata")
    before = us.identify([fresh_topic])[0]
    lab.cluster("us").admin.recreate_topic(fresh_topic)
    after = us.identify([fresh_topic])[0]
    assert before.keys() == after.keys() == {fresh_topic}
    assert before != after


def test_repeated_identification_leaks_no_topic_id(
    lab: Lab, us: ClusterClient, fresh_topic: str
) -> None:
    lab.cluster("us").admin.create_topic(fresh_topic, 1)

    def count_ids_after(times: int) -> int:
        for _ in range(times):
            us.identify([fresh_topic])
        return sum(isinstance(each, Uuid) for each in gc.get_objects())

    assert count_ids_after(1) == count_ids_after(50)


def test_create_topic_refused_by_broker_raises_invalid_config(us: ClusterClient) -> None:
    with pytest.raises(KafkaOperationError, match="replication") as caught:
        us.create_topic("needs-nine-brokers", partitions=1, replication_factor=9)
    assert caught.value.kind is ErrorKind.INVALID_CONFIG


def test_sent_record_keeps_timestamp(lab: Lab, us: ClusterClient, fresh_topic: str) -> None:
    us.create_topic(fresh_topic, partitions=2, config=KEEP_ALL)
    results: list[DeliveryResult] = []
    with RecordProducer(HandleFactory("us", lab.cluster("us").librdkafka())) as producer:
        producer.send(
            fresh_topic,
            partition=1,
            value=b"v",
            timestamp_ms=1_700_000_000_999,
            on_delivery=results.append,
        )
        assert producer.flush(60) == 0
    assert results == [Delivered(fresh_topic, 1, 0, 1_700_000_000_999)]
    found = us.first_records({TopicPartition(fresh_topic, 1): (0, 1)}).found[
        TopicPartition(fresh_topic, 1)
    ]
    assert found == FirstRecord(0, 1_700_000_000_999)


def test_send_to_missing_topic_fails_without_creating_it(
    lab: Lab, us: ClusterClient, fresh_topic: str
) -> None:
    results: list[DeliveryResult] = []
    properties = lab.cluster("us").librdkafka()
    with RecordProducer(HandleFactory("us", properties), delivery_timeout_seconds=3.0) as producer:
        producer.send(fresh_topic, value=b"v", on_delivery=results.append)
        assert producer.flush(60) == 0
    assert len(results) == 1
    problem = results[0]
    assert isinstance(problem, KafkaOperationError)
    assert problem.kind in {ErrorKind.UNKNOWN_TOPIC, ErrorKind.TIMEOUT}
    assert not us.topic_exists(fresh_topic)
