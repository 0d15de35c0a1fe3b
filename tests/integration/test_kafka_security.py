"""Refused logins, certificates and operations, with a secured broker."""

import time

import pytest

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.client_handles import HandleFactory
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.record_producer import Delivered, DeliveryResult, RecordProducer
from mm2slo_kafka.topic_tail import TopicTail
from mm2slo_lab.broker import Broker
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.lab_topology import APP
from mm2slo_lab.managed_process import PATIENCE
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("secured-lab")]
WRONG = "wrong-horse-battery"


@pytest.fixture
def broker(secured_lab: Lab) -> Broker:
    """A broker where each test has its own topics, and the application no permissions at first."""
    return secured_lab.cluster("us")


def connection_error(properties: dict[str, str]) -> KafkaOperationError:
    with ClusterClient("us", properties) as client, pytest.raises(KafkaOperationError) as caught:
        client.topics(timeout=5.0)
    return caught.value


@pytest.mark.long
def test_wrong_password_ca_and_protocol_are_distinguished(broker: Broker) -> None:
    right = broker.librdkafka()
    with ClusterClient("us", right) as client:
        assert client.topics().broker_count == 1

    problem = connection_error({**right, "sasl.password": WRONG})
    assert problem.kind is ErrorKind.AUTHENTICATION
    assert WRONG not in str(problem)

    other_ca = "/etc/ssl/certs/ca-certificates.crt"
    assert connection_error({**right, "ssl.ca.location": other_ca}).kind is ErrorKind.TLS

    plain = {**right, "security.protocol": "SASL_PLAINTEXT"}
    assert connection_error(plain).kind in {ErrorKind.TLS, ErrorKind.UNREACHABLE}


def test_denied_operations_raise_authorization_errors(broker: Broker) -> None:
    for name in ("open", "closed"):
        broker.admin.create_topic(name, 1)
        produce(broker.librdkafka(), name, Load(4))
    for operation in ("DESCRIBE", "READ"):
        broker.admin.grant(APP.name, "TOPIC", "open", operation)
    opened, closed = TopicPartition("open", 0), TopicPartition("closed", 0)
    denied = {closed: ErrorKind.AUTHORIZATION}
    with ClusterClient("us", broker.librdkafka(APP)) as client:
        reading = client.end_offsets([opened, closed])
        assert reading.offsets == {opened: 4}
        assert reading.errors == denied
        assert client.end_offsets([closed]).errors == denied
        assert client.identify(["closed"]) == ({}, {"closed": ErrorKind.AUTHORIZATION})
        assert client.topic_configs(["closed"]).errors == {"closed": ErrorKind.AUTHORIZATION}
        assert client.topics().partition_counts == {"open": 1}
        for read in (client.group_offsets(["readers"]), client.group_members(["readers"])):
            problem = read["readers"].found
            assert isinstance(problem, KafkaOperationError)
            assert problem.kind is ErrorKind.AUTHORIZATION
        with pytest.raises(KafkaOperationError) as caught:
            client.create_topic("mine", partitions=1)
        assert caught.value.kind is ErrorKind.AUTHORIZATION

        # Topics can be read without permissions on groups.
        tail = TopicTail(client, "open", refresh_seconds=0.2)
        deadline, records = time.monotonic() + PATIENCE, 0
        while records < 4:
            assert time.monotonic() < deadline, tail.problem
            records += len(tail.poll(10, 0.2).records)
        assert tail.problem is None
        tail.close()
        found = client.first_records({opened: (1, 4)}).found[opened]
        assert found is not None
        assert found.offset == 1

        tail = TopicTail(client, "closed", refresh_seconds=0.2)
        while tail.problem is None:
            assert time.monotonic() < deadline
            tail.poll(10, 0.2)
        assert tail.problem.kind is ErrorKind.AUTHORIZATION
        tail.close()


def test_producer_works_after_permission_is_granted(broker: Broker) -> None:
    broker.admin.create_topic("canary", 1)
    broker.admin.grant(APP.name, "TOPIC", "canary", "DESCRIBE")
    results: list[DeliveryResult] = []
    properties = broker.librdkafka(APP)
    with RecordProducer(HandleFactory("us", properties), delivery_timeout_seconds=60.0) as producer:
        # Without any write permission Kafka refuses a producer id: a fatal error.
        producer.send("canary", value=b"v", on_delivery=results.append)
        producer.flush(60)
        assert len(results) == 1
        problem = results.pop()
        assert isinstance(problem, KafkaOperationError)
        assert problem.kind is ErrorKind.AUTHORIZATION

        broker.admin.grant(APP.name, "TOPIC", "canary", "WRITE")
        deadline = time.monotonic() + PATIENCE
        while not any(isinstance(result, Delivered) for result in results):
            assert time.monotonic() < deadline, results
            producer.send("canary", value=b"v", on_delivery=results.append)
            producer.flush(1.0)
        producer.flush(10)
    assert Delivered("canary", 0, 0, 0)[:3] in [
        result[:3] for result in results if isinstance(result, Delivered)
    ]


def test_denied_topic_fails_its_own_records_only(broker: Broker) -> None:
    """Flows with different topics share a producer."""
    for topic in ("granted", "denied"):
        broker.admin.create_topic(topic, 1)
        broker.admin.grant(APP.name, "TOPIC", topic, "DESCRIBE")
    broker.admin.grant(APP.name, "TOPIC", "granted", "WRITE")
    results: dict[str, list[DeliveryResult]] = {"granted": [], "denied": []}
    with RecordProducer(HandleFactory("us", broker.librdkafka(APP))) as producer:
        for _ in range(100):
            for topic, found in results.items():
                producer.send(topic, value=b"v", on_delivery=found.append)
            producer.poll(0.01)
        assert producer.flush(30) == 0
    kinds = [each.kind for each in results["denied"] if isinstance(each, KafkaOperationError)]
    assert kinds == [ErrorKind.AUTHORIZATION] * 100
    offsets = [each.offset for each in results["granted"] if isinstance(each, Delivered)]
    assert offsets == list(range(100))
