"""MirrorMaker 2's properties file: grammar, precedence, findings."""

import itertools
from pathlib import Path

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.mm2_config.mirror_setup import (
    ConnectorKind,
    FindingSeverity,
    Form,
    MirrorFlow,
    MirrorSetup,
    ProviderKind,
    Settings,
)
from mm2slo_core.mm2_config.mm2_properties import read_properties
from mm2slo_core.topology import Flow

FILES = Path(__file__).parent / "mm2_files"
TWO = """clusters = us, eu
us.bootstrap.servers = us:9092
eu.bootstrap.servers = eu:9092
us->eu.enabled = true
"""


def _read(name: str) -> MirrorSetup:
    return read_properties(name, (FILES / name).read_bytes())


def _findings(setup: MirrorSetup) -> list[tuple[str, int | None, str]]:
    return [(each.check, each.origin.line, each.action) for each in setup.findings]


def _checks(text: str) -> list[str]:
    return [each.check for each in read_properties("mm2.properties", text.encode()).findings]


def _flow(setup: MirrorSetup, label: str) -> MirrorFlow:
    return next(flow for flow in setup.flows if flow.flow.label == label)


def _values(settings: Settings) -> dict[str, str]:
    return {key: setting.value for key, setting in settings.items()}


def _settings(text: str, label: str = "us->eu") -> dict[str, str]:
    flow = _flow(read_properties("mm2.properties", text.encode()), label)
    return _values(flow.connectors[ConnectorKind.SOURCE].settings)


def test_read_properties_bidirectional_file_has_both_flows_and_security() -> None:
    setup = _read("bidirectional.properties")
    assert setup.findings == ()
    assert setup.form is Form.PROPERTIES
    assert setup.kafka_version is None
    assert _values(setup.process) == {
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": "http://localhost:0",
    }
    assert setup.providers == {"env": ProviderKind.ENV, "file": ProviderKind.FILE}
    assert [flow.flow for flow in setup.enabled_flows] == [
        Flow("us-east", "eu-west"),
        Flow("eu-west", "us-east"),
    ]
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required "
    shared = {
        "sasl.mechanism": "SCRAM-SHA-512",
        "ssl.truststore.location": "/etc/mm2/truststore.p12",
        "ssl.truststore.password": "${file:/etc/mm2/secrets.properties:truststore}",
    }
    assert _values(setup.clusters["us-east"].client) == shared | {
        "bootstrap.servers": "broker-1.us.example.org:9096, broker-2.us.example.org:9096",
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": scram + 'username="mm2-us" password="${env:US_PASSWORD}";',
    }
    assert _values(setup.clusters["eu-west"].client) == shared | {
        "bootstrap.servers": "broker-1.eu.example.org:9096",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.jaas.config": scram + "username=mm2-eu password=not-quoted;",
    }
    jaas = setup.clusters["us-east"].client["sasl.jaas.config"]
    assert (jaas.key, str(jaas.origin)) == (
        "us-east.sasl.jaas.config",
        "bidirectional.properties:12",
    )
    assert "US_PASSWORD" not in repr(setup)


def test_read_properties_flow_has_settings_of_all_levels() -> None:
    flow = _flow(_read("bidirectional.properties"), "us-east->eu-west")
    names = {kind: connector.name for kind, connector in flow.connectors.items()}
    assert names == {kind: kind.value for kind in ConnectorKind}
    values = _values(flow.connectors[ConnectorKind.SOURCE].settings)
    expected = {
        "enabled": "true",
        "topics": r"orders\..*, payments",
        "topics.exclude": r".*\.tmp",
        "tasks.max": "8",
        "replication.factor": "3",
        "source.cluster.security.protocol": "SASL_SSL",
        "target.cluster.security.protocol": "SASL_PLAINTEXT",
        "target.producer.security.protocol": "SASL_PLAINTEXT",
        "source.consumer.isolation.level": "read_committed",
        "config.providers": "env,file",
    }
    assert expected.items() <= values.items()
    assert "dedicated.mode.enable.internal.rest" not in values
    worker = flow.worker
    assert (worker.group_id, worker.offsets_topic) == (
        "us-east-mm2",
        "mm2-offsets.us-east.internal",
    )
    assert (worker.status_topic, worker.configs_topic) == (
        "mm2-status.us-east.internal",
        "mm2-configs.us-east.internal",
    )
    assert worker.settings["offset.flush.interval.ms"].value == "10000"
    assert worker.settings["exactly.once.source.support"].value == "enabled"
    assert worker.settings["security.protocol"].value == "SASL_PLAINTEXT"


def test_read_properties_fan_in_file_has_only_herders_that_start() -> None:
    setup = _read("fan_in.properties")
    assert [flow.flow.label for flow in setup.flows] == ["plant1->hub", "plant2->hub"]
    assert _findings(setup) == [("duplicate-key", 18, "remove the others")]
    first, second = setup.flows
    topics = [flow.connectors[ConnectorKind.SOURCE].settings["topics"] for flow in (first, second)]
    assert [(each.key, each.value) for each in topics] == [
        ("topics", "telemetry-.*"),
        ("plant2->hub.topics", "telemetry-v2-.*"),
    ]
    assert first.worker.group_id == second.worker.group_id == "hub-mm2"
    assert first.worker.offsets_topic == "mm2-hub-offsets"
    assert first.worker.status_topic == "hub-status"
    assert second.worker.configs_topic == "mm2-configs.plant2.internal"
    assert str(first.origin) == "fan_in.properties:14"


def test_read_properties_old_file_has_settings_under_new_names() -> None:
    setup = _read("active_passive_2019.properties")
    assert [(flow.flow.label, flow.enabled) for flow in setup.flows] == [
        ("dc1->dc2", True),
        ("dc2->dc1", False),
    ]
    settings = setup.flows[0].connectors[ConnectorKind.CHECKPOINT].settings
    assert {key: settings[key].key for key in settings if key.endswith(".exclude")} == {
        "topics.exclude": "topics.blacklist",
        "groups.exclude": "dc1->dc2.groups.blacklist",
        "config.properties.exclude": "config.properties.blacklist",
    }
    assert settings["topics.exclude"].value == r"dc1\..*,dc2\..*"
    assert _findings(setup) == [
        ("ignored-key", 14, "remove the line, or end the line before it with a backslash"),
        ("ignored-key", 15, "write dc1.consumer.max.poll.records, with the source of the flow"),
    ]


def test_read_properties_chain_with_mistakes_reports_each_with_a_suggestion() -> None:
    setup = _read("chain.properties")
    assert [flow.flow.label for flow in setup.enabled_flows] == ["edge->region", "region->core"]
    assert len(setup.flows) == 6
    assert _findings(setup) == [
        ("unknown-alias", 9, "did you mean region->core.groups?"),
        ("unknown-alias", 10, "did you mean edge.security.protocol?"),
        ("ignored-key", 12, "write region.offset.flush.interval.ms and "
         "core.offset.flush.interval.ms, with the target of the flow"),
        ("spaces-in-flow", 13, "write flows without spaces, as in us->eu.enabled = true"),
        ("ignored-key", 14, "write edge->region.transforms.route.type and "
         "region->core.transforms.route.type, with the flow"),
        ("ignored-key", 15, "did you mean tasks.max?"),
        ("lost-backslash", 16, "write two backslashes"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "action"),
    [
        ("consumer.max.poll.records", "write eu.consumer.max.poll.records, with the source of"),
        ("producer.linger.ms", "write us.producer.linger.ms, with the target of"),
        ("admin.retries", "write eu.admin.retries and us.admin.retries, with the source or target"),
        ("producer.override.linger.ms", "write eu->us.producer.override.linger.ms, with the flow"),
    ],
)
def test_read_properties_misplaced_key_is_advised_for_the_enabled_flow(
    key: str, action: str
) -> None:
    text = TWO.replace("us->eu.enabled", "eu->us.enabled") + f"{key} = 1\n"
    (finding,) = [each for each in read_properties("x", text.encode()).findings if key in each.what]
    assert finding.action.startswith(action)


def test_read_properties_template_reports_what_cannot_be_used() -> None:
    setup = _read("template.properties")
    errors = [each for each in setup.findings if each.severity is FindingSeverity.ERROR]
    assert [(each.check, each.origin.line) for each in errors] == [("no-flow", 2)]
    (flag,) = (each for each in setup.findings if each.check == "not-boolean")
    assert "'{{ .Values.enabled | default true }}'" in flag.what
    assert flag.origin.line == 9
    assert setup.clusters["target"].client["bootstrap.servers"].value == "<TARGET BROKERS>"
    assert {each.check for each in setup.findings} - {each.check for each in errors} == {
        "duplicate-key",
        "ignored-key",
        "not-boolean",
    }


@pytest.mark.parametrize(
    ("line", "checks"),
    [
        ("", []),
        ("us->eu.topics = a\\\\.b", []),
        ("us->eu.topics = a\\\n  ,b", []),
        ("# clusters = x\n! y", []),
        ("us->eu.topics = a\\.b", ["lost-backslash"]),
        ("us->eu.groups.exclude = \\d+", ["lost-backslash"]),
        ("us.sasl.jaas.config = a\\.b", []),
        ("us->eu.topics = a\nus->eu.topics = b", ["duplicate-key"]),
        ("us -> eu.enabled = true", ["spaces-in-flow"]),
        ("us-> eu.enabled = true", ["spaces-in-flow"]),
        ("us->asia.topics = x", ["unknown-alias"]),
        ("us->us.topics = x", ["unknown-alias"]),
        ("asia.bootstrap.servers = x", ["unknown-alias"]),
        ("producer.linger.ms = 5", ["ignored-key"]),
        ("offsets.storage.topic = x", ["ignored-key"]),
        ("transforms = route", []),
        ("listeners = http://localhost:0", []),
        ("rest.advertised.host.name = x", []),
        ("plugin.path = /x", []),
        ("sasl.jaas.config = x", []),
        ("task.shutdown.graceful.timeout.ms = 1", []),
        ("config.providers = vault", ["unknown-config-provider"]),
        ("us->eu.enabled = true \nemit.heartbeats.enabled = false",
         ["no-flow", "duplicate-key", "not-boolean"]),
        ("us->eu.enabled = yes", ["no-flow", "duplicate-key", "not-boolean"]),
        ("us->eu.enabled = true # for now", ["no-flow", "duplicate-key", "not-boolean"]),
        ("us->eu.enabled = ${env:X}", ["no-flow", "duplicate-key", "not-boolean"]),
        ("us->eu.enabled = false", ["no-flow", "duplicate-key"]),
        ("enabled = true", []),
        ("clusters = us", ["no-flow", "duplicate-key", "unknown-alias", "unknown-alias"]),
        ("clusters = us, eu, asia", ["duplicate-key", "no-bootstrap-servers"]),
        ('clusters = "us, eu"', ["invalid-alias", "invalid-alias", "duplicate-key"]),
        ("clusters = us, eu, {{ more }}", ["invalid-alias", "duplicate-key"]),
        ("clusters = us, eu, us.x\nus.x.bootstrap.servers = x",
         ["duplicate-key", "ambiguous-alias"]),
        ("clusters = us, eu, offset\noffset.storage.topic = x\nbootstrap.servers = y",
         ["duplicate-key"]),
        ("clusters = us, eu, admin\nadmin.timeout.ms = 1\nbootstrap.servers = y",
         ["duplicate-key"]),
        ("clusters = us, eu, access\naccess.control.allow.methods = x\nbootstrap.servers = y",
         ["duplicate-key"]),
        ("clusters = us, eu, rest\nrest.listeners = x\nbootstrap.servers = y",
         ["duplicate-key"]),
    ],
)  # fmt: skip
def test_read_properties_line_gives_checks(line: str, checks: list[str]) -> None:
    assert sorted(_checks(TWO + line)) == sorted(checks)


@pytest.mark.parametrize(
    ("content", "check", "what"),
    [
        (b"", "not-properties", "the file has no settings"),
        (b"# nothing\n\n", "not-properties", "the file has no settings"),
        (b"\x7fELF\x00", "not-properties", "the file has control characters, so it is not text"),
        ("clusters = a".encode("utf-16"), "not-properties",
         "the file has control characters, so it is not text"),
        (b"a" * ((1 << 20) + 1), "not-properties",
         "the file has 1,048,577 bytes; expected at most 1,048,576"),
        (b"a" * 500_000, "no-clusters", "clusters is missing or empty"),
        (b"a = \\\n" + b"b\\\n" * 100_000, "no-clusters", "clusters is missing or empty"),
        (b"\\" * 100_000, "no-clusters", "clusters is missing or empty"),
        (b"clusters = a, b\na.ssl.keystore.location = C:\\users\\mm2\n", "not-properties",
         "the file has \\u without four hexadecimal digits after it on line 2"),
        (b"apiVersion: kafka.strimzi.io/v1\nkind: KafkaMirrorMaker2\n", "not-properties",
         "the file looks like YAML, JSON, XML or PEM"),
        (b"clusters:\n  us:\n    bootstrap_servers: us:9092\nflows:\n  - flow: us->eu\n",
         "not-properties", "the file looks like YAML, JSON, XML or PEM"),
        (b'{"name": "mm2", "config": {}}', "not-properties",
         "the file looks like YAML, JSON, XML or PEM"),
        (b"bootstrap.servers = x\ngroup.id = y\n", "no-clusters", "clusters is missing or empty"),
        (b"clusters =\n", "no-clusters", "clusters is missing or empty"),
        (b"clusters = " + b",".join(b"c%d" % i for i in range(51)), "no-clusters",
         "clusters has 51 aliases; expected at most 50"),
    ],
    # The contents would be the ids.
    ids=itertools.count(),
)  # fmt: skip
def test_read_properties_other_content_is_one_error(content: bytes, check: str, what: str) -> None:
    setup = read_properties("mm2.properties", content)
    assert [(each.check, each.severity, each.what) for each in setup.findings] == [
        (check, FindingSeverity.ERROR, what)
    ]
    assert not setup.clusters
    assert not setup.flows


@pytest.mark.parametrize(
    ("lines", "key", "value"),
    [
        # Each later line has precedence over the ones before it.
        ("topics = a\nus->eu.topics = b", "topics", "b"),
        ("us->eu.topics = b\ntopics = a", "topics", "b"),
        ("topics.exclude = new\nus->eu.topics.blacklist = old", "topics.exclude", "new"),
        ("ssl.protocol = a\nus.ssl.protocol = b", "source.cluster.ssl.protocol", "b"),
        ("ssl.protocol = a\nus.ssl.protocol = b", "source.consumer.ssl.protocol", "b"),
        ("ssl.protocol = a\neu.consumer.ssl.protocol = c", "target.consumer.ssl.protocol", "c"),
        ("ssl.protocol = a\neu.consumer.ssl.protocol = c", "target.admin.ssl.protocol", "a"),
        ("us.ssl.protocol = b\nus->eu.source.cluster.ssl.protocol = d",
         "source.cluster.ssl.protocol", "d"),
        ("us.admin.timeout.ms = 1", "source.admin.timeout.ms", "1"),
        ("replication.policy.custom = x", "replication.policy.custom", "x"),
        ("us->eu.topics=caf\xc3\xa9", "topics", "caf\u00c3\u00a9"),
        ("us->eu.topics:\\u00e9\\=", "topics", "\u00e9="),
        ("us->eu.topics   a   ", "topics", "a   "),
    ],
)  # fmt: skip
def test_read_properties_precedence_is_that_of_kafka(lines: str, key: str, value: str) -> None:
    content = (TWO + lines).encode("iso-8859-1")
    flow = _flow(read_properties("mm2.properties", content), "us->eu")
    assert flow.connectors[ConnectorKind.SOURCE].settings[key].value == value


@pytest.mark.parametrize(
    ("lines", "enabled"),
    [
        ("", {"us->eu": True, "eu->us": False}),
        ("emit.heartbeats.enabled = false", {"us->eu": True}),
        ("eu->us.emit.heartbeats.enabled = false", {"us->eu": True}),
        ("emit.heartbeats.enabled = false\neu->us.emit.heartbeats.enabled = TRUE",
         {"us->eu": True, "eu->us": False}),
        ("enabled = true", {"us->eu": True, "eu->us": True}),
        ("enabled = true\nemit.heartbeats.enabled = false", {"us->eu": True}),
        ("us->eu.enabled = TRUE ", {"us->eu": True, "eu->us": False}),
    ],
)  # fmt: skip
def test_read_properties_flows_are_pairs_with_a_herder(
    lines: str, enabled: dict[str, bool]
) -> None:
    setup = read_properties("mm2.properties", (TWO + lines).encode())
    assert {flow.flow.label: flow.enabled for flow in setup.flows} == enabled


def test_read_properties_top_level_worker_settings_override_those_of_the_target() -> None:
    text = TWO + "offset.storage.topic = top\neu.offset.storage.topic = eu\neu.group.id = g\n"
    us_eu, eu_us = read_properties("mm2.properties", text.encode()).flows
    assert (us_eu.worker.group_id, us_eu.worker.offsets_topic) == ("g", "top")
    assert (eu_us.worker.group_id, eu_us.worker.offsets_topic) == ("eu-mm2", "top")


def test_read_properties_broken_secret_is_not_shown() -> None:
    text = TWO + (
        "us.ssl.keystore.key = -----BEGIN PRIVATE KEY-----\n"
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n"
        "hunter2Password\n"
        'username="admin" password="topsecret";\n'
        "eu.ssl.key.password = topsecret\n"
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n"
    )
    setup = read_properties("mm2.properties", text.encode())
    shown = repr(setup.findings) + repr(setup.clusters) + "".join(map(str, setup.findings))
    assert [each.origin.line for each in setup.findings if each.check == "ignored-key"] == [
        *(7, 8, 10)
    ]
    for secret in ("MIIE", "hunter2", "topsecret", "BEGIN"):
        assert secret not in shown


def test_read_properties_many_unread_lines_are_summarised() -> None:
    setup = read_properties("x", (TWO + "".join(f"foo.k{i} = 1\n" for i in range(150))).encode())
    assert len(setup.findings) == 101
    assert setup.findings[-1].what == "50 further lines are not read by MirrorMaker 2"


_TEXT = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=20)


@pytest.mark.property
@given(st.dictionaries(_TEXT, _TEXT, max_size=8), st.sampled_from(["=", ": ", " "]))
def test_read_properties_any_mapping_is_read_back(given_: dict[str, str], separator: str) -> None:
    given_ = {f"p{key}": value for key, value in given_.items()}
    of_flow = {f"us->eu.{key}": value for key, value in given_.items()}
    text = TWO + javaproperties.dumps(of_flow, separator=separator, timestamp=False)
    assert given_.items() <= _settings(text).items()


@pytest.mark.property
@given(st.binary(max_size=300), st.booleans())
def test_read_properties_any_bytes_give_findings_and_no_exception(
    content: bytes, after_flow: bool
) -> None:
    setup = read_properties("x", TWO.encode() * after_flow + content)
    assert setup.enabled_flows or setup.findings


@pytest.mark.property
@given(st.lists(st.sampled_from(
    ["a", "b.c", "=", ":", " ", "\\", "\\\\", "\n", "\r\n", "\r", "\t", "#", "!", "\\\n", "\\\r\n"]
)))  # fmt: skip
def test_read_properties_joins_lines_as_javaproperties_does(parts: list[str]) -> None:
    text = "us->eu.k" + "".join(parts)
    expected = javaproperties.loads(text)
    assert {f"us->eu.{key}": value for key, value in _settings(TWO + text).items()}.items() >= {
        (key, value) for key, value in expected.items() if key.startswith("us->eu.k")
    }
