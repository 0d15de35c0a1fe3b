"""The catalogue of connector keys, against what Kafka's classes define and read."""

import pytest

from mm2slo_core.mm2_config.connector_settings import (
    CLIENT_KEYS,
    TOP_LEVEL_KEYS,
    WORKER_KEYS,
    connector_key,
    kafka_release,
    suggest_connector_key,
)
from mm2slo_core.mm2_config.running_settings import RENAMED
from mm2slo_core.replication_policy import KafkaVersion


@pytest.mark.parametrize(
    ("name", "kinds", "default"),
    [
        ("topics", "SC", ".*"),
        ("groups", "C", ".*"),
        ("groups.exclude", "C", "console-consumer-.*,connect-.*,__.*"),
        ("tasks.max", "SC", "1"),
        ("emit.heartbeats.interval.seconds", "H", "1"),
        ("emit.offset-syncs.enabled", "SC", "true"),
        ("replication.policy.separator", "SCH", "."),
        ("errors.tolerance", "SCH", "none"),
        ("transforms.route.regex", "SCH", None),
        ("predicates.tombstone.type", "SCH", None),
        ("key.converter.schemas.enable", "SCH", None),
        ("consumer.fetch.min.bytes", "SC", None),
        ("consumer.override.fetch.min.bytes", "", None),
        ("producer.linger.ms", "S", None),
        ("producer.override.linger.ms", "SCH", None),
        ("source.consumer.isolation.level", "SC", None),
        ("source.cluster.sasl.jaas.config", "SC", None),
        ("target.cluster.bootstrap.servers", "SCH", None),
        ("source.cluster.max.poll.records", "", None),
        ("sasl.jaas.config", "", None),
    ],
)
def test_connector_key_known_name_has_connectors_and_default(
    name: str, kinds: str, default: str | None
) -> None:
    key = connector_key(name)
    assert key is not None
    assert {kind.name[0] for kind in key.kinds} == set(kinds)
    assert key.default == default


@pytest.mark.parametrize("name", ["", "topcis", "A.topics", "sources.cluster.x", "offset.lag"])
def test_connector_key_unknown_name_is_none(name: str) -> None:
    assert connector_key(name) is None


@pytest.mark.parametrize(
    ("name", "first", "last", "new_name"),
    [
        ("topics.blacklist", "2.4", "3.9", "topics.exclude"),
        ("groups.blacklist", "2.4", "3.9", "groups.exclude"),
        ("config.properties.blacklist", "2.4", "3.9", "config.properties.exclude"),
        ("topics.exclude", "2.7", None, None),
        ("add.source.alias.to.metrics", "3.5", "3.9", None),
        ("use.incremental.alter.configs", "3.5", "3.9", None),
        ("heartbeats.replication.enabled", "4.0", None, None),
        ("metric.names.formats", "4.3", None, None),
        ("offset.lag.max", "2.4", None, None),
    ],
)
def test_connector_key_exists_from_first_to_last_version(
    name: str, first: str, last: str | None, new_name: str | None
) -> None:
    key = connector_key(name)
    assert key is not None
    versions = [KafkaVersion(2, minor) for minor in range(3, 9)]
    versions += [KafkaVersion(3, minor) for minor in range(10)]
    versions += [KafkaVersion(4, minor) for minor in range(5)]
    existing = [version for version in versions if key.exists_in(version)]
    assert existing[0] == kafka_release(first)
    assert existing[-1] == kafka_release(last or "4.4")
    assert key.new_name == new_name


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("topcis", "topics"),
        ("topics.whitelist", "topics"),
        ("groups.include", "groups"),
        ("enable", "enabled"),
        ("emit.heartbeats", "emit.heartbeats.enabled"),
        ("sync.group.offsets", "sync.group.offsets.enabled"),
        ("offset.syncs.topic.replication.factor", "offset-syncs.topic.replication.factor"),
        ("source.cluster.ssl.trustore.location", "source.cluster.ssl.truststore.location"),
        ("target.cluster.zzz", None),
        ("zzz", None),
    ],
)
def test_suggest_connector_key_returns_what_was_meant(name: str, meant: str | None) -> None:
    assert suggest_connector_key(name) == meant


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("3.9.1", KafkaVersion(3, 9)),
        (" 4.0 ", KafkaVersion(4, 0)),
        ("3.10.0.redhat-00003", KafkaVersion(3, 10)),
        ("latest", None),
        ("4", None),
        ("", None),
        ("1234567.1", None),
    ],
)
def test_kafka_release_has_two_numbers(text: str, version: KafkaVersion | None) -> None:
    assert kafka_release(text) == version


def test_catalogue_has_consistent_names() -> None:
    for old, new in RENAMED.items():
        key, replacement = connector_key(old), connector_key(new)
        assert key is not None
        assert replacement is not None
        assert key.kinds == replacement.kinds
    assert not CLIENT_KEYS & WORKER_KEYS
    # Kafka 4.1 defines 66 keys of clients.
    assert len(CLIENT_KEYS) == 66
    assert {"offsets.storage.topic", "bootstrap.servers", "consumer."}.isdisjoint(TOP_LEVEL_KEYS)
