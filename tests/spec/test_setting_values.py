"""Keys and values of MirrorMaker 2's settings against Kafka's own configuration classes."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j ships no types

from mm2slo_core.file_syntax import dump_properties
from mm2slo_core.java_values import read_boolean, read_integer, read_servers, split_list, trim
from mm2slo_core.mm2_config.connect_json import read_connect_json
from mm2slo_core.mm2_config.connector_settings import (
    CLIENT_KEYS,
    NEWEST_VERSION,
    TOP_LEVEL_KEYS,
    connector_key,
    expected_items,
    expected_value,
    kafka_release,
    unknown_client_key,
)
from mm2slo_core.mm2_config.lint_checks import LintFlow
from mm2slo_core.mm2_config.mirror_setup import ConnectorKind
from mm2slo_core.mm2_config.mm2_properties import read_properties
from mm2slo_lab.lab_topology import DEFAULT_VERSION, mirror_version

pytestmark = pytest.mark.xdist_group("spark")

_PACKAGE: Final = "org.apache.kafka.connect.mirror"
_CLIENTS: Final = "org.apache.kafka.clients"
MIRROR: Final = kafka_release(mirror_version(DEFAULT_VERSION)) or NEWEST_VERSION
_TYPES: Final = "org.apache.kafka.common.config.ConfigDef$Type"
BOOLEANS: Final = (
    "true", "TRUE", " true ", "true # on", "yes", "1", "", "false\u00a0", "\x1ffalse", "tru", "t",
    '"true"', "false,", "\tFalse\n", "${env:X}",
)  # fmt: skip
NUMBERS: Final = (
    "1", " 1 ", "+1", "-1", "0", "-0", "007", "1.0", "1e3", "1_000", "", "0x10", "1 # x",
    "\u0663", "32767", "32768", "2147483647", "2147483648", "-2147483649", "9" * 18, "9" * 19,
    "1L", "+-1", "9223372036854775807", "9223372036854775808", "- 1", "1\u00a0", '"1"',
)  # fmt: skip
LISTS: Final = (
    "a,b", " a , b ", "a,,b", "", "a,", ",a", "a\n,b", '"a","b"', "a b", ",", " ", "a\u00a0,b",
    "\u2003a", "a\x1f,b", "\x1fa", "a{1,3}", "a # x",
)  # fmt: skip
SERVERS: Final = (
    "localhost:1", "localhost:1,", ",localhost:1", "localhost:1,,127.0.0.1:2", "=localhost:1",
    "localhost", "PLAINTEXT://localhost:1", "localhost:99999", "[::1]:1", "::1:1", "", ",",
    "a b:1", "localhost:1 # x", "127.0.0.1:-1", "a/localhost:1", "LOCALHOST:1", "localhost:01",
    '"localhost:1"', "://localhost:1", "localhost:1/", "localhost :1", "localhost:1;127.0.0.1:2",
    "[localhost:1",
)  # fmt: skip
TEXTS: Final = (
    "none", "NONE", "all", "ALL", " all ", "source", "Source", "target", "interval", "Interval",
    "poll", "required", "REQUESTED", "restart", "x", "",
)  # fmt: skip
# Their items are aliases or one of few names, which other checks judge.
CHECKED_ALIASES: Final = {
    *("transforms", "predicates", "topic.creation.groups", "metric.names.formats"),
}
# What Kafka refuses, but is accepted here, and the other way round, with the reason.
DIFFERENCES: Final = {
    "a server with port 0 or no host, to which nothing can connect": {"127.0.0.1:0", ":1"},
}


def attribute(source: Any, name: str) -> Any:
    """A field of a Java object, whatever its access."""
    found = source.getClass().getDeclaredField(name)
    found.setAccessible(True)
    return found.get(source)


def definition(jvm: Any, name: str, constant: str) -> Any:
    found = jvm.java.lang.Class.forName(name).getDeclaredField(constant)
    found.setAccessible(True)
    return found.get(None)


@pytest.fixture(scope="module")
def parse(jvm: Any) -> Callable[[str, str], Any]:
    """`ConfigDef.parseType` of a value and the name of a type; None if it is refused."""
    kinds = jvm.java.lang.Class.forName(_TYPES).getEnumConstants()
    types = {each.toString(): each for each in kinds}

    def parsed(value: str, kind: str) -> Any:
        try:
            found = jvm.org.apache.kafka.common.config.ConfigDef.parseType("k", value, types[kind])
        except Py4JJavaError as refused:
            assert "ConfigException" in str(refused)  # noqa: PT017 - not another failure
            return None
        return tuple(found) if kind == "LIST" else found

    return parsed


def test_values_of_each_type_are_read_as_kafka_does(parse: Callable[[str, str], Any]) -> None:
    rows: list[tuple[str, str, object, object]] = []
    rows += [("BOOLEAN", each, read_boolean(each), parse(each, "BOOLEAN")) for each in BOOLEANS]
    for kind, bits in (("SHORT", 16), ("INT", 32), ("LONG", 64)):
        rows += [(kind, each, read_integer(each, bits), parse(each, kind)) for each in NUMBERS]
    rows += [("LIST", each, split_list(each), parse(each, "LIST")) for each in LISTS]
    rows += [("STRING", each, trim(each), parse(each, "STRING")) for each in (*LISTS, *TEXTS)]
    assert [row for row in rows if row[2] != row[3]] == []


def test_servers_are_read_as_kafkas_clients_do(jvm: Any, parse: Callable[[str, str], Any]) -> None:
    def theirs(text: str) -> bool:
        try:
            jvm.org.apache.kafka.clients.ClientUtils.parseAndValidateAddresses(
                jvm.java.util.ArrayList(parse(text, "LIST")), "use_all_dns_ips"
            )
        except Py4JJavaError as refused:
            assert "ConfigException" in str(refused)  # noqa: PT017 - not another failure
            return False
        return True

    cases = (*SERVERS, *(each for values in DIFFERENCES.values() for each in values))
    found = {each for each in cases if (read_servers(each) is not None) != theirs(each)}
    assert found == {each for values in DIFFERENCES.values() for each in values}


def defined(jvm: Any) -> Iterator[tuple[str, Any]]:
    """Every key of MirrorMaker 2's connectors with a definition that has it."""
    for kind in ("Source", "Checkpoint", "Heartbeat"):
        found = definition(jvm, f"{_PACKAGE}.Mirror{kind}Config", "CONNECTOR_CONFIG_DEF")
        yield from ((key, found) for key in found.names())
    found = jvm.org.apache.kafka.connect.runtime.SourceConnectorConfig.configDef()
    yield from ((key, found) for key in found.names())


def test_every_value_of_a_connector_is_accepted_or_refused_as_kafka_does(jvm: Any) -> None:
    different = []
    for key, found in dict(defined(jvm)).items():
        kind = attribute(found.configKeys().get(key), "type").toString()
        if key in CLIENT_KEYS or kind not in {"BOOLEAN", "SHORT", "INT", "LONG", "STRING"}:
            continue
        if key in {"name", "offsets.storage.topic"} or key.endswith("plugin.version"):
            continue  # their validators refuse an empty text, and read the class path
        cases = {"BOOLEAN": BOOLEANS, "STRING": TEXTS}.get(kind, NUMBERS)
        for value in cases:
            errors = found.validateAll({key: value}).get(key).errorMessages()
            accepted = expected_value(key, value) is None
            if accepted != (len(errors) == 0):
                different.append((key, kind, value, list(errors)))
    assert different == []


def test_items_of_lists_are_accepted_or_refused_as_kafka_does(jvm: Any) -> None:
    different = []
    for key, found in dict(defined(jvm)).items():
        kind = attribute(found.configKeys().get(key), "type").toString()
        if kind != "LIST" or key in {*CLIENT_KEYS, *CHECKED_ALIASES}:
            continue
        for value in (*LISTS, "a,a", "a, a", "a,b,a"):
            errors = found.validateAll({key: value}).get(key).errorMessages()
            if (expected_items(key, value, MIRROR) is None) != (len(errors) == 0):
                different.append((key, value, list(errors)))
    assert different == []


def test_every_key_that_kafkas_classes_define_is_known(jvm: Any) -> None:
    assert [key for key, _ in defined(jvm) if connector_key(key) is None] == []
    assert set(definition(jvm, f"{_PACKAGE}.MirrorClientConfig", "CLIENT_CONFIG_DEF").names()) == (
        CLIENT_KEYS
    )
    maker = jvm.org.apache.kafka.connect.mirror.MirrorMakerConfig({"clusters": "a,b"})
    names = maker.getClass().getDeclaredMethod(
        "allConfigNames",
        jvm.java.lang.reflect.Array.newInstance(jvm.java.lang.Class.forName("java.lang.Class"), 0),
    )
    names.setAccessible(True)
    # Others were keys of older versions, or are those of newer ones.
    current = {
        each for each in TOP_LEVEL_KEYS if (key := connector_key(each)) and key.exists_in(MIRROR)
    }
    assert set(names.invoke(maker, None)) - {"bootstrap.servers"} == current
    unknown = []
    for client in ("producer", "consumer", "admin"):
        name = "AdminClient" if client == "admin" else client.title()
        config = definition(jvm, f"{_CLIENTS}.{client}.{name}Config", "CONFIG")
        for prefix in (f"{client}.", f"source.{client}.", f"{client}.override."):
            unknown += [key for key in config.names() if unknown_client_key(prefix + key)]
    assert unknown == []


FILES: Final = {
    "aliases that are prefixes of keys": """\
clusters = source, target
source.bootstrap.servers = w1:9092
target.bootstrap.servers = w2:9092
source->target.enabled = true
source.cluster.alias =
source.consumer.fetch.min.bytes = 7
target.producer.linger.ms = 5
""",
    "all levels": """\
clusters = a, b
bootstrap.servers = x:1
a.bootstrap.servers = w1:9092,
b.bootstrap.servers = w2:9092
b.producer.bootstrap.servers = w3:9092
security.protocol = SASL_SSL
sasl.jaas.config = x
b.sasl.jaas.config = y
a.consumer.sasl.jaas.config = z
a->b.enabled = true
b->a.enabled = false # passive
a->b.topics.exclude = new
replication.factor = 3
a->b.replication.policy.separator = _
replication.policy.custom = q
b.offset.storage.topic = s
offset.storage.topic = t
a->b.emit.heartbeats.interval.seconds = -1
a->b.producer.override.linger.ms = 1
b.admin.retries = 4
tasks.max = 2
key.converter = com.example.C
task.shutdown.graceful.timeout.ms = 1
""",
    "heartbeats off": """\
clusters = a, b, c
a.bootstrap.servers = w1:9092
b.bootstrap.servers = w2:9092
c.bootstrap.servers = w3:9092
emit.heartbeats.enabled = false
a->b.enabled = TRUE
a->c.enabled = true # on
b->c.enabled = yes
c->a.emit.heartbeats.enabled = true
""",
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_settings_of_connectors_and_workers_are_those_of_kafka(jvm: Any, text: str) -> None:
    setup = read_properties("mm2.properties", text.encode())
    properties = dict(line.split(" =", 1) for line in text.splitlines())
    given = {key: value.strip() for key, value in properties.items()}
    theirs = jvm.org.apache.kafka.connect.mirror.MirrorMakerConfig(given)
    pairs = {pair.toString() for pair in theirs.clusterPairs()}
    assert {each.flow.label for each in setup.flows} == pairs
    settings = {each.key: each for flow in setup.flows for each in _all(flow)}
    assert settings.keys() <= given.keys()
    kinds = {kind: jvm.java.lang.Class.forName(f"{_PACKAGE}.{kind}") for kind in ConnectorKind}
    for mirror in setup.flows:
        pair = jvm.org.apache.kafka.connect.mirror.SourceAndTarget(
            mirror.flow.source, mirror.flow.target
        )
        for kind, connector in mirror.connectors.items():
            expected = dict(theirs.connectorBaseConfig(pair, kinds[kind]))
            ours = {key: each.value for key, each in connector.settings.items()}
            # What Kafka adds itself.
            own = {
                "enabled": "false",
                "name": kind.value,
                "connector.class": f"{_PACKAGE}.{kind}",
            } | {
                f"{side}.cluster.alias": getattr(mirror.flow, side) for side in ("source", "target")
            }
            assert own | ours == expected


def _all(mirror: Any) -> Iterator[Any]:
    yield from mirror.worker.settings.values()
    for connector in mirror.connectors.values():
        yield from connector.settings.values()


@pytest.mark.parametrize("own", [None, "own-1:9092"])
@pytest.mark.parametrize("override", [None, "eu-1:9092"])
def test_producers_write_to_the_servers_to_which_kafkas_do(
    jvm: Any, own: str | None, override: str | None
) -> None:
    converter = "org.apache.kafka.connect.converters.ByteArrayConverter"
    worker = {
        "bootstrap.servers": "us-1:9092", "group.id": "g", "offset.storage.topic": "o",
        "config.storage.topic": "c", "status.storage.topic": "s", "key.converter": converter,
        "value.converter": converter,
    }  # fmt: skip
    worker |= {"producer.bootstrap.servers": own} if own else {}
    connector = {
        "connector.class": f"{_PACKAGE}.MirrorSourceConnector", "source.cluster.alias": "us",
        "target.cluster.alias": "eu", "name": "mirror",
    }  # fmt: skip
    connector |= {"producer.override.bootstrap.servers": override} if override else {}
    setup = read_connect_json(
        [("c.json", json.dumps(connector))], ("w", dump_properties(worker).encode())
    )
    flow = LintFlow(setup, setup.flows[0], NEWEST_VERSION, None)
    ours = flow.written_servers(ConnectorKind.SOURCE)

    runtime, find = jvm.org.apache.kafka.connect.runtime, jvm.java.lang.Class.forName
    plugins = runtime.isolation.Plugins({})
    policy = "org.apache.kafka.connect.connector.policy.AllConnectorClientConfigOverridePolicy"
    arguments = (
        *("mirror", "id", runtime.distributed.DistributedConfig(worker)),
        *(runtime.ConnectorConfig(plugins, connector), find(connector["connector.class"])),
        *(getattr(jvm, policy)(), "cluster"),
    )
    packed = jvm.java.lang.reflect.Array.newInstance(find("java.lang.Object"), len(arguments))
    for index, each in enumerate(arguments):
        jvm.java.lang.reflect.Array.set(packed, index, each)
    methods = find("org.apache.kafka.connect.runtime.Worker").getDeclaredMethods()
    (method,) = (each for each in methods if each.getName() == "baseProducerConfigs")
    method.setAccessible(True)
    expected = method.invoke(None, packed).get("bootstrap.servers")
    assert ours is not None
    assert ours.value == expected == (override or own or "us-1:9092")
