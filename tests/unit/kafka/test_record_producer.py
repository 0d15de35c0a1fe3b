import pytest
from confluent_kafka import KafkaError, KafkaException
from tests.unit.kafka.conftest import MockCluster, ScriptedClient

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.client_handles import HandleFactory
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.record_producer import Delivered, DeliveryResult, RecordProducer
from mm2slo_kafka.topic_tail import TopicTail


def test_send_reports_offset_and_stores_record_unchanged(
    mock_cluster: MockCluster, scripted: ScriptedClient, topic: str
) -> None:
    mock_cluster.write(topic, [b"earlier"], partition=2)
    results: list[DeliveryResult] = []
    with RecordProducer(HandleFactory("us", mock_cluster.properties)) as producer:
        producer.send(
            topic,
            partition=2,
            key=b"k",
            value=b"v",
            headers=[("sequence", b"7")],
            timestamp_ms=1_700_000_000_999,
            on_delivery=results.append,
        )
        assert results == []
        assert producer.flush(10) == 0
    assert isinstance(results[0], Delivered)
    assert results[0][:3] == (topic, 2, 1)  # the mock cluster sets its own timestamp
    assert len(results) == 1
    tail = TopicTail(scripted, topic, headers=True)
    records = []
    while not tail.caught_up:
        records += tail.poll(10, 1.0).records
    tail.close()
    [record] = (each for each in records if (each.partition, each.offset) == (2, 1))
    assert record.timestamp_ms == 1_700_000_000_999
    assert record.headers == [("sequence", b"7")]
    assert (record.key, record.value) == (b"k", b"v")


def test_send_to_unreachable_cluster_reports_one_result() -> None:
    results: list[DeliveryResult] = []
    settings = {"bootstrap.servers": "127.0.0.1:1", "socket.connection.setup.timeout.ms": "1000"}
    with RecordProducer(HandleFactory("eu", settings), delivery_timeout_seconds=1.0) as producer:
        producer.send("canary", value=b"v", on_delivery=results.append)
        assert producer.flush(60) == 0
        assert len(producer) == 0
    assert len(results) == 1
    problem = results[0]
    assert isinstance(problem, KafkaOperationError)
    assert problem.kind is ErrorKind.UNREACHABLE
    assert problem.operation == "writing to topic 'canary'"


def test_record_of_failed_producer_is_reported_with_the_cause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Failed:
        """What librdkafka does between a fatal error and its report."""

        def produce(self, *_arguments: object, **_options: object) -> None:
            raise KafkaException(KafkaError(KafkaError._FATAL))

        def poll(self, _timeout: float) -> None:
            raise KafkaException(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED))

        def purge(self) -> None: ...

        def __len__(self) -> int:
            return 0

    results: list[DeliveryResult] = []
    producer = RecordProducer(HandleFactory("us", {"bootstrap.servers": "127.0.0.1:1"}))
    monkeypatch.setattr(producer, "_producer", Failed())
    producer.send("canary", value=b"v", on_delivery=results.append)
    assert producer.flush(10) == 0
    (problem,) = results
    assert isinstance(problem, KafkaOperationError)
    assert problem.kind is ErrorKind.AUTHORIZATION


def test_close_reports_undelivered_records_as_failed() -> None:
    results: list[DeliveryResult] = []
    producer = RecordProducer(HandleFactory("eu", {"bootstrap.servers": "127.0.0.1:1"}))
    producer.send("canary", value=b"v", on_delivery=results.append)
    producer.close(timeout=0.1)
    assert [isinstance(result, KafkaOperationError) for result in results] == [True]


def test_send_to_full_queue_is_refused_at_once() -> None:
    results: list[DeliveryResult] = []
    settings = {"bootstrap.servers": "127.0.0.1:1"}
    producer = RecordProducer(HandleFactory("eu", settings))
    for _ in range(10_001):
        producer.send("canary", value=b"v", on_delivery=results.append)
    assert [result.code for result in results if isinstance(result, KafkaOperationError)] == [
        "_QUEUE_FULL"
    ]
    producer.close(timeout=0.0)
    assert len(results) == 10_001


def test_renewed_producer_delivers_earlier_records_and_sends_later_ones(
    mock_cluster: MockCluster, client: ClusterClient, topic: str
) -> None:
    mock_cluster.write(topic, [b"first"])
    results: list[DeliveryResult] = []
    with RecordProducer(HandleFactory("us", mock_cluster.properties)) as producer:
        for _ in range(3):
            producer.send(topic, partition=0, value=b"v", on_delivery=results.append)
            producer.renew()
        assert producer.flush(10) == 0
        producer.poll(0)
        assert producer._replaced == []
    assert sorted(each.offset for each in results if isinstance(each, Delivered)) == [1, 2, 3]
    orders = TopicPartition(topic, 0)
    assert client.end_offsets([orders]).offsets == {orders: 4}


def test_sent_records_are_appended(
    mock_cluster: MockCluster, client: ClusterClient, topic: str
) -> None:
    mock_cluster.write(topic, [b"first"])
    with RecordProducer(HandleFactory("us", mock_cluster.properties)) as producer:
        for _ in range(100):
            producer.send(topic, partition=0, value=b"v", on_delivery=lambda _result: None)
    orders = TopicPartition(topic, 0)
    assert client.end_offsets([orders]).offsets == {orders: 101}
