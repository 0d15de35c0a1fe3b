"""librdkafka's mock cluster: Kafka without Java."""

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest
from confluent_kafka import Producer

from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.cluster_metadata import TopicIdentity
from mm2slo_kafka.kafka_errors import ErrorKind

PARTITIONS = 4  # the mock cluster creates every topic with four


_BROKER = """
import logging, sys
from confluent_kafka import Producer

silent = logging.getLogger("mock-cluster")
silent.disabled = True
owner = Producer({"bootstrap.servers": "mock:1", "test.mock.num.brokers": 1}, logger=silent)
brokers = owner.list_topics(timeout=60).brokers.values()
print(",".join(f"{found.host}:{found.port}" for found in brokers), flush=True)
sys.stdin.read()
"""


class MockCluster:
    """One broker, which creates topics on first write.

    It runs in a separate process, which is killed: librdkafka may crash the process that frees a
    mock cluster after many clients.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BROKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.properties = {"bootstrap.servers": self._process.stdout.readline().strip()}
        self._producer = Producer({**self.properties, "linger.ms": 0, "log_level": 2})

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def write(self, topic: str, values: Sequence[bytes], partition: int = 0) -> None:
        for value in values:
            self._producer.produce(topic, value, b"key", partition, timestamp=1_700_000_000_123)
        assert self._producer.flush(10) == 0

    def write_many(self, topic: str, count: int) -> None:
        for number in range(count):
            while True:
                try:
                    self._producer.produce(topic, b"value", str(number).encode(), 0)
                    break
                except BufferError:
                    self._producer.poll(1)
        assert self._producer.flush(60) == 0

    def write_transaction(
        self, topic: str, values: Sequence[bytes], *, commit: bool, partition: int = 0
    ) -> None:
        """The values and one marker, which takes an offset."""
        producer = Producer({**self.properties, "transactional.id": f"{topic}-{commit}"})
        producer.init_transactions(10)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=partition)
        producer.flush(10)
        if commit:
            producer.commit_transaction(10)
        else:
            producer.abort_transaction(10)


class ScriptedClient(ClusterClient):
    """A client with a given topic identity: the mock cluster cannot describe topics."""

    identity: TopicIdentity | None = TopicIdentity("id-1", PARTITIONS)

    def identify(
        self, topics: Iterable[str], timeout: float = 0.0
    ) -> tuple[dict[str, TopicIdentity], dict[str, ErrorKind]]:
        if self.identity is None:
            return {}, dict.fromkeys(topics, ErrorKind.UNKNOWN_TOPIC)
        return dict.fromkeys(topics, self.identity), {}


@pytest.fixture(scope="session")
def mock_cluster() -> Iterator[MockCluster]:
    made = MockCluster()
    yield made
    made.close()


@pytest.fixture
def client(mock_cluster: MockCluster) -> Iterator[ClusterClient]:
    with ClusterClient("us", mock_cluster.properties) as made:
        yield made


@pytest.fixture
def scripted(mock_cluster: MockCluster) -> Iterator[ScriptedClient]:
    with ScriptedClient("us", mock_cluster.properties) as made:
        yield made


@pytest.fixture
def dead_client() -> Iterator[ClusterClient]:
    """A client of an unreachable cluster: nothing listens on port 1."""
    with ClusterClient("eu", {"bootstrap.servers": "127.0.0.1:1"}) as made:
        yield made


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    name: str = request.node.name
    return "".join(letter if letter.isalnum() else "-" for letter in name)[-100:]


Write = Callable[[Sequence[bytes]], None]
