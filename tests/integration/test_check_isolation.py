"""`mm2slo check --connect --cannot-read` against ACLs, compared with a Java consumer."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka_jvm import running_jvm
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j ships no types
from secured_listeners import running_broker
from typer.testing import CliRunner

from mm2slo_cli.main import app
from mm2slo_core.file_syntax import dump_properties, dump_yaml
from mm2slo_lab.broker import Broker
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.lab_topology import APP, LabSecurity, User
from mm2slo_lab.managed_process import wait_for

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.spark,
    pytest.mark.xdist_group("secured-lab"),
]

READABLE = ("b.read", "b.read-empty")
REFUSED = ("b.hidden", "b.described", "b.hidden-empty", "b.written")


@dataclass(frozen=True)
class Tenant:
    broker: Broker
    folder: Path

    def check(
        self, pattern: str, *options: str, user: User = APP, **changed: str
    ) -> tuple[int, str]:
        """Exit code and output for *user*."""
        client = {**self.broker.java(user), **changed}
        file = self.folder / "tenant-a.properties"
        file.write_text(dump_properties(client), encoding="ascii")
        here = {"us": self.broker.yaml(), "eu": {"bootstrap_servers": "127.0.0.1:1"}}
        config = self.folder / "mm2slo.yaml"
        config.write_text(dump_yaml({"clusters": here, "flows": [{"flow": "us->eu"}]}))
        arguments = ["check", "--config", str(config), "--connect", "--as", str(file)]
        arguments += ["--cannot-read", pattern]
        result = CliRunner(env={"COLUMNS": "300"}).invoke(
            app, [*arguments, *options], catch_exceptions=False
        )
        assert user.password not in result.output
        return result.exit_code, result.output


@pytest.fixture(scope="module")
def tenant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenant]:
    root = tmp_path_factory.mktemp("tenant")
    with running_broker("us", root, LabSecurity.SASL_SSL) as broker:
        for topic in (*READABLE, *REFUSED):
            broker.admin.create_topic(topic, 1)
            if "empty" not in topic:
                produce(broker.librdkafka(), topic, Load(3))
        for topic in READABLE:
            broker.admin.grant(APP.name, "TOPIC", topic, "READ")
        broker.admin.grant(APP.name, "TOPIC", "b.described", "DESCRIBE")
        broker.admin.grant(APP.name, "TOPIC", "b.written", "WRITE")
        yield Tenant(broker, root)


def reads(jvm: Any, properties: dict[str, str], topic: str) -> bool:
    """Whether a Java consumer gets a record of *topic*; refused otherwise."""
    plain = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
    settings = {**properties, "key.deserializer": plain, "value.deserializer": plain}
    consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings)
    partition = jvm.org.apache.kafka.common.TopicPartition(topic, 0)
    second = jvm.java.time.Duration.ofSeconds(1)
    try:
        consumer.assign([partition])
        consumer.seek(partition, 0)
        wait_for(lambda: consumer.poll(second).count() > 0, f"a record of {topic}")
    except Py4JJavaError as error:
        if "TopicAuthorizationException" not in str(error):
            raise
        return False
    finally:
        consumer.close()
    return True


def test_verdict_on_each_topic_is_that_of_a_java_consumer(tenant: Tenant) -> None:
    verdicts = {
        topic: tenant.check(topic.replace(".", "[.]"))[0] for topic in (*READABLE, *REFUSED)
    }

    produce(tenant.broker.librdkafka(), "b.read-empty", Load(1))
    with running_jvm() as jvm:
        truth = {topic: reads(jvm, tenant.broker.java(APP), topic) for topic in verdicts}
    assert truth == {topic: topic in READABLE for topic in verdicts}
    assert verdicts == {topic: int(truth[topic]) for topic in verdicts}


def test_topics_that_can_be_read_are_named(tenant: Tenant) -> None:
    code, output = tenant.check("b[.].*")
    assert code == 1
    assert "can read 2 of 6 topics that match 'b[.].*': b.read, b.read-empty" in output


def test_no_matching_topic_and_failed_logins_are_unknown(tenant: Tenant) -> None:
    code, output = tenant.check("c[.].*")
    assert code == 2
    assert "no topic matches 'c[.].*'" in output
    code, output = tenant.check("b[.].*", user=User(APP.name, "wrong-horse-battery"))
    assert code == 2
    assert "tenant-a.properties: connecting failed: " in output
    code, output = tenant.check("b[.]hidden", "--cluster", "eu")
    assert code == 2
    assert "the configured user: listing topics failed" in output
