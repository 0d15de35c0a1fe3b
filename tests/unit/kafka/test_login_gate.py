"""Requests pause after a refused login, and go on where they were."""

import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import KafkaError
from tests.unit.kafka.conftest import MockCluster, ScriptedClient

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.client_handles import LoginGate
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.record_producer import Delivered, DeliveryResult, RecordProducer
from mm2slo_kafka.topic_tail import TopicTail
from mm2slo_lab.managed_process import PATIENCE, wait_for

REFUSAL = KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error: invalid credentials")
LOST = "SASL authentication error: SaslAuthenticateRequest failed: Local: Broker transport failure"


class World:
    """A gate with a clock, whose logins end with *outcome*; None is a login that works."""

    def __init__(self, outcome: KafkaError | None = REFUSAL, *, is_open: bool = False) -> None:
        self.now = 1000.0
        self.outcome = outcome
        self.logins: list[float] = []
        self.gate = LoginGate(self._log_in, is_open=is_open, clock=lambda: self.now)

    def _log_in(self) -> KafkaError | None:
        self.logins.append(self.now)
        return self.outcome

    def run(self, seconds: float) -> None:
        """Check the gate twice a second."""
        end = self.now + seconds
        while self.now < end:
            self.gate.refusal()
            self.now += 0.5


def test_at_most_two_logins_a_minute_are_refused() -> None:
    world = World()
    world.run(3600)
    assert world.logins[:4] == [1000.0, 1005.0, 1061.0, 1117.0]
    within = [sum(at <= each < at + 60 for each in world.logins) for at in world.logins]
    assert max(within) == 2


@pytest.mark.parametrize("fixed_after", range(0, 120, 7))
def test_fixed_login_is_noticed_within_a_minute(fixed_after: int) -> None:
    world = World()
    world.run(fixed_after)
    world.outcome = None
    fixed = world.now
    while world.gate.refusal() is not None:
        world.now += 0.5
    assert world.now - fixed <= 60
    assert not world.gate.is_shut


def test_retry_logs_in_at_once() -> None:
    world = World()
    world.run(20)
    assert world.gate.is_shut
    world.gate.retry_now()
    world.outcome = None
    assert world.gate.refusal() is None


def test_cluster_that_is_down_at_first_does_not_pause_requests() -> None:
    world = World(KafkaError(KafkaError._TRANSPORT))
    assert world.gate.refusal() is None
    world.run(60)
    assert world.logins == [1000.0]


def test_cluster_that_goes_down_after_a_refusal_stays_paused_until_a_login_works() -> None:
    world = World()
    world.run(10)
    world.outcome = KafkaError(KafkaError._TRANSPORT)
    world.run(100)
    assert world.gate.refusal() is REFUSAL
    world.outcome = None
    world.run(5)
    assert world.gate.refusal() is None


def test_login_that_may_be_refused_late_counts_as_refused() -> None:
    world = World()
    world.gate.refusal()
    world.outcome = KafkaError(KafkaError._TIMED_OUT)
    world.run(180)
    assert world.logins == [1000.0, 1005.0, 1061.0, 1117.0, 1173.0]


@pytest.mark.parametrize(
    "error",
    [
        KafkaError(KafkaError._TRANSPORT),
        KafkaError(KafkaError._AUTHENTICATION, LOST),
        KafkaError(KafkaError._AUTHENTICATION, "Failed to acquire SASL OAUTHBEARER token: 503"),
        KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_errors_other_than_a_refused_login_do_not_pause_requests(error: KafkaError) -> None:
    world = World(is_open=True)
    world.gate.take_error(error)
    assert world.gate.refusal() is None
    world.gate.take_error(REFUSAL)
    assert world.gate.refusal() is REFUSAL


def test_concurrent_requests_share_a_login() -> None:
    world = World(None)
    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(lambda _: world.gate.refusal(), range(100))) == [None] * 100
    assert len(world.logins) == 1


def paused(client: ClusterClient) -> World:
    """Refuse the logins of *client*, whose cluster has none."""
    world = World(is_open=True)
    client.handles.logins = world.gate
    world.gate.take_error(REFUSAL)
    return world


def test_requests_are_not_sent_after_a_refused_login(
    mock_cluster: MockCluster, client: ClusterClient, topic: str
) -> None:
    partition = TopicPartition(topic, 0)
    mock_cluster.write(topic, [b"x"])
    assert client.end_offsets([partition]).offsets == {partition: 1}
    client.group_offsets(["app"])
    world = paused(client)
    for request in (
        client.topics,
        lambda: client.end_offsets([partition]),
        lambda: client.first_records({partition: (0, 1)}),
        lambda: client.topic_exists(topic),
    ):
        with pytest.raises(KafkaOperationError, match="the next login follows in 5 s") as caught:
            request()
        assert caught.value.kind is ErrorKind.AUTHENTICATION
    found = client.group_offsets(["app"])["app"].found
    assert isinstance(found, KafkaOperationError)
    assert found.kind is ErrorKind.AUTHENTICATION
    assert client._group_worker.pid is None
    assert client._admin._admin is None
    assert all(each._consumer is None for each in client._offsets.values())
    world.outcome = None
    world.now += 5
    assert client.end_offsets([partition]).offsets == {partition: 1}
    client.group_offsets(["app"])
    assert client._group_worker.pid is not None


def test_tail_continues_where_it_was(
    mock_cluster: MockCluster, scripted: ScriptedClient, topic: str
) -> None:
    tail = TopicTail(scripted, topic)
    offsets: list[int] = []

    def read(count: int) -> bool:
        offsets.extend(each.offset for each in tail.poll(10, 0.1).records)
        return len(offsets) >= count

    mock_cluster.write(topic, [b"x"] * 4)
    wait_for(lambda: read(4), "four records")
    world = paused(scripted)
    mock_cluster.write(topic, [b"x"] * 3)
    problem = tail.poll(10, 0.1).problem
    assert problem is not None
    assert problem.kind is ErrorKind.AUTHENTICATION
    assert tail._group._consumer is None
    world.outcome = None
    world.now += 5
    wait_for(lambda: read(7), "the other records")
    assert offsets == list(range(7))
    assert tail.problem is None
    tail.close()


def test_failed_lookup_does_not_keep_a_client_open(dead_client: ClusterClient) -> None:
    tail = TopicTail(dead_client, "orders")
    tail.poll(10, 0.1)
    assert tail._group._lookups.is_running
    admin = weakref.ref(dead_client.admin())
    paused(dead_client)
    wait_for(lambda: bool(tail.poll(10, 0.1).problem) and admin() is None, "the client's end")
    assert tail._group._lookups.is_running  # its result is not taken yet
    tail.close()


def test_producer_fails_records_until_a_login_works(
    mock_cluster: MockCluster, client: ClusterClient, topic: str
) -> None:
    mock_cluster.write(topic, [b"x"])
    results: list[DeliveryResult] = []

    def send() -> None:
        producer.send(topic, value=b"x", on_delivery=results.append)
        producer.flush(PATIENCE)

    with RecordProducer(client.handles) as producer:
        send()
        world = paused(client)
        producer.send(topic, value=b"x", on_delivery=results.append)
        producer.poll(0.1)
        assert producer._producer is None
        world.outcome = None
        world.now += 5
        send()
    kinds = [None if isinstance(each, Delivered) else each.kind for each in results]
    assert kinds == [None, ErrorKind.AUTHENTICATION, None]
