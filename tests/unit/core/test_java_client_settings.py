"""librdkafka's settings under their names in Java."""

import pytest
from confluent_kafka import Consumer
from kafka_jvm import running_jvm

from mm2slo_core.config.client_security import java_settings
from mm2slo_core.config.secret import Secret

# Each with a value that both clients accept.
SETTINGS = {
    "check.crcs": "true",
    "client.dns.lookup": "use_all_dns_ips",
    "client.id": "audit",
    "client.rack": "a",
    "connections.max.idle.ms": "180000",
    "enable.metrics.push": "false",
    "fetch.max.bytes": "10000000",
    "fetch.min.bytes": "1",
    "fetch.wait.max.ms": "200",
    "max.partition.fetch.bytes": "1000000",
    "metadata.max.age.ms": "60000",
    "reconnect.backoff.max.ms": "5000",
    "reconnect.backoff.ms": "100",
    "retry.backoff.max.ms": "1000",
    "retry.backoff.ms": "100",
    "socket.connection.setup.timeout.ms": "5000",
    "socket.timeout.ms": "9000",
}
RENAMED = {"fetch.wait.max.ms": "fetch.max.wait.ms", "socket.timeout.ms": "request.timeout.ms"}


def secrets(settings: dict[str, str]) -> dict[str, Secret]:
    return {name: Secret(value) for name, value in settings.items()}


def test_java_settings_have_java_names() -> None:
    expected = {RENAMED.get(name, name): value for name, value in SETTINGS.items()}
    assert java_settings(secrets(SETTINGS)) == (expected, ())


def test_java_settings_without_equivalent_are_named() -> None:
    settings = {"ssl.cipher.suites": "X", "client.id": "a", "connections.max.idle.ms": "0"}
    unknown = ("ssl.cipher.suites", "connections.max.idle.ms")
    assert java_settings(secrets(settings)) == ({"client.id": "a"}, unknown)


@pytest.mark.spark
def test_java_settings_are_known_to_both_clients() -> None:
    Consumer({"group.id": "g", **SETTINGS}).close()
    with running_jvm() as jvm:
        config = jvm.org.apache.kafka.clients.consumer.ConsumerConfig
        settings, _unknown = java_settings(secrets(SETTINGS))
        assert set(settings) <= set(config.configNames())
        byte_array = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
        required = {"key.deserializer": byte_array, "value.deserializer": byte_array}
        required["bootstrap.servers"] = "localhost:1"  # since Kafka 4.2
        parsed = config.configDef().parse(settings | required)
        assert parsed["request.timeout.ms"] == 9000
