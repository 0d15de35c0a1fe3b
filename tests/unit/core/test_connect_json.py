"""Connector JSON in each form of Connect's REST API gives the same flows and clusters."""

import json
from collections.abc import Callable
from textwrap import dedent
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.mm2_config.connect_json import read_connect_json
from mm2slo_core.mm2_config.mirror_setup import (
    ConnectorKind,
    FindingSeverity,
    Form,
    MirrorSetup,
    ProviderKind,
)
from mm2slo_core.topology import Flow

PACKAGE: Final = "org.apache.kafka.connect.mirror"
PASSWORD: Final = "hunter2-sesame"
WORKER: Final = (
    "connect-distributed.properties",
    dedent("""\
        # Connect next to the target
        bootstrap.servers=eu-1:9093,\\
            eu-2:9093
        group.id = connect-mirror

        offset.storage.topic: connect-mirror-offsets
        config.storage.topic=connect-mirror-configs
        status.storage.topic=connect-mirror-status
        offset.flush.interval.ms=10000
        exactly.once.source.support=enabled
        plugin.path=/opt/plug\\u00edns,/opt/\xe9
        config.providers=file,vault
        config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
        config.providers.vault.class=com.example.VaultConfigProvider
        """).encode("latin-1"),
)
JAAS: Final = (
    f"{PACKAGE.replace('connect.mirror', 'common.security.scram')}.ScramLoginModule required"
    f' username="mirror" password="{PASSWORD}";'
)
CLUSTERS: Final = {
    "source.cluster.alias": "us",
    "source.cluster.bootstrap.servers": "us-1:9092",
    "source.cluster.security.protocol": "SASL_SSL",
    "source.cluster.sasl.jaas.config": JAAS,
    "source.cluster.max.poll.records": "500",
    "target.cluster.alias": "eu",
    "target.cluster.bootstrap.servers": "eu-1:9093, eu-2:9093",
    "target.cluster.ssl.keystore.password": "${file:/run/keys.properties:eu}",
}
SOURCE: Final[dict[str, Any]] = {
    "connector.class": f"{PACKAGE}.MirrorSourceConnector",
    **CLUSTERS,
    "topics": "orders.*,payments",
    "tasks.max": 4,
    "offset.lag.max": 1e2,
    "sync.topic.acls.enabled": False,
    "topics.exclude": None,
}
CHECKPOINT: Final = {"connector.class": f"{PACKAGE}.MirrorCheckpointConnector", **CLUSTERS}
HEARTBEAT: Final = {
    "connector.class": "MirrorHeartbeat",
    "source.cluster.alias": "us",
    "target.cluster.alias": "eu",
}
CONNECTORS: Final = {"mirror-src": SOURCE, "mirror-cp": CHECKPOINT, "mirror-hb": HEARTBEAT}


def read(*documents: object, worker: tuple[str, bytes] | None = WORKER) -> MirrorSetup:
    files = [
        (f"{number}.json", text if isinstance(text, str) else json.dumps(text, indent=2))
        for number, text in enumerate(documents, start=1)
    ]
    return read_connect_json(files, worker)


def found(setup: MirrorSetup) -> list[tuple[str, str, str]]:
    """The findings, without the one on the worker's unknown provider."""
    assert PASSWORD not in repr(setup) + "".join(map(str, setup.findings))
    return [
        (finding.check, str(finding.origin), finding.what)
        for finding in setup.findings
        if finding.check != "unknown-config-provider"
    ]


def post(name: str, config: object) -> dict[str, object]:
    return {"name": name, "config": config}


def put(name: str, config: dict[str, object]) -> dict[str, object]:
    return {"name": name, **config}


def expanded(**parts: object) -> dict[str, object]:
    return {
        name: {
            "info": {**post(name, config), "tasks": [{"connector": name, "task": 0}]},
            **parts,
        }
        for name, config in CONNECTORS.items()
    }


@pytest.mark.parametrize(
    "documents",
    [
        [post(*each) for each in CONNECTORS.items()],
        [[post(*each) for each in CONNECTORS.items()]],
        [put(*each) for each in CONNECTORS.items()],
        [post(name, put(name, config)) for name, config in CONNECTORS.items()],
        [expanded()],
        [expanded(status={"connector": {"state": "RUNNING"}, "tasks": [], "type": "source"})],
        [json.dumps(expanded(), indent="\t")],
        [json.dumps(expanded())],
    ],
    ids=["post", "array", "put", "name-in-both", "info", "info-status", "tabs", "one-line"],
)
def test_read_connect_json_in_each_form_returns_flow_with_its_three_connectors(
    documents: list[object],
) -> None:
    setup = read(*documents)

    (flow,) = setup.flows
    assert (setup.form, found(setup)) == (Form.CONNECT_JSON, [])
    assert (flow.flow, flow.enabled) == (Flow("us", "eu"), True)
    assert {kind: each.name for kind, each in flow.connectors.items()} == {
        ConnectorKind.SOURCE: "mirror-src",
        ConnectorKind.CHECKPOINT: "mirror-cp",
        ConnectorKind.HEARTBEAT: "mirror-hb",
    }
    settings = flow.connectors[ConnectorKind.SOURCE].settings
    assert [settings[key].value for key in ("tasks.max", "offset.lag.max")] == ["4", "100.0"]
    assert settings["sync.topic.acls.enabled"].value == "false"
    assert "topics.exclude" not in settings
    assert {key: setting.value for key, setting in setup.clusters["us"].client.items()} == {
        "bootstrap.servers": "us-1:9092",
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": JAAS,
    }
    assert {key: setting.value for key, setting in setup.clusters["eu"].client.items()} == {
        "bootstrap.servers": "eu-1:9093, eu-2:9093",
        "ssl.keystore.password": "${file:/run/keys.properties:eu}",
    }


def test_read_connect_json_with_worker_returns_its_names_providers_and_lines() -> None:
    setup = read(post("mirror-src", SOURCE))

    worker = setup.flows[0].worker
    assert (worker.group_id, worker.offsets_topic, worker.status_topic, worker.configs_topic) == (
        "connect-mirror", "connect-mirror-offsets", "connect-mirror-status",
        "connect-mirror-configs",
    )  # fmt: skip
    lines = {key: (setting.value, setting.origin.line) for key, setting in worker.settings.items()}
    assert lines["bootstrap.servers"] == ("eu-1:9093,eu-2:9093", 2)
    assert lines["group.id"] == ("connect-mirror", 4)
    assert lines["offset.flush.interval.ms"] == ("10000", 9)
    assert lines["exactly.once.source.support"] == ("enabled", 10)
    assert lines["plugin.path"] == ("/opt/plug\u00edns,/opt/\u00e9", 11)
    assert setup.providers == {"file": ProviderKind.FILE, "vault": None}
    (finding,) = setup.findings
    assert (finding.check, finding.origin.line) == ("unknown-config-provider", 14)


def test_read_connect_json_with_topic_of_source_connector_prefers_it_to_worker() -> None:
    setup = read(post("mirror-src", SOURCE | {"offsets.storage.topic": "us-offsets"}))

    assert setup.flows[0].worker.offsets_topic == "us-offsets"
    assert setup.flows[0].worker.status_topic == "connect-mirror-status"


@pytest.mark.parametrize(
    ("worker", "origin", "missing"),
    [
        (
            None, "1.json",
            "group.id, offset.storage.topic, config.storage.topic, status.storage.topic",
        ),
        (
            ("standalone.properties", b"group.id=x\noffset.storage.file.filename=/tmp/offsets\n"),
            "standalone.properties",
            "offset.storage.topic, config.storage.topic, status.storage.topic",
        ),
    ],
)  # fmt: skip
def test_read_connect_json_without_names_of_worker_reports_them_and_guesses_none(
    worker: tuple[str, bytes] | None, origin: str, missing: str
) -> None:
    setup = read(post("mirror-src", SOURCE), worker=worker)

    assert found(setup) == [("missing-worker", origin, f"the worker's {missing} is unknown")]
    assert setup.flows[0].worker.offsets_topic is None
    (finding,) = setup.findings
    assert finding.severity is FindingSeverity.ERROR
    assert finding.action.startswith("add --worker FILE: the connect-distributed.properties")


def test_read_connect_json_with_invalid_escape_in_worker_reports_line() -> None:
    setup = read(post("mirror-src", SOURCE), worker=("w.properties", b"#\n\npw=hunter2\\u1\n"))

    what = "the file has \\u without four hexadecimal digits after it"
    assert found(setup)[0] == ("missing-worker", "w.properties:3", what)
    assert "hunter2" not in "".join(map(str, setup.findings))


def test_read_connect_json_with_keys_on_lines_returns_their_origins() -> None:
    setup = read([post("other", {"connector.class": "Sink"}), post("mirror-src", SOURCE)])

    connector = setup.flows[0].connectors[ConnectorKind.SOURCE]
    assert str(connector.origin) == "1.json:11"
    assert str(connector.settings["topics"].origin) == "1.json:20"
    assert str(setup.clusters["eu"].origin) == "1.json:18"


def test_read_connect_json_with_several_flows_groups_connectors_by_aliases() -> None:
    back = {
        key.replace("source.cluster.", "%").replace("target.cluster.", "source.cluster.")
        .replace("%", "target.cluster."): value
        for key, value in SOURCE.items()
    }  # fmt: skip
    fan_out = SOURCE | {
        "target.cluster.alias": "ap",
        "target.cluster.bootstrap.servers": "ap-1:9092",
        "enabled": "False ",
    }
    setup = read(post("us-eu", SOURCE), post("eu-us", back), post("us-ap", fan_out))

    assert found(setup) == []
    assert [(str(each.flow), each.enabled) for each in setup.flows] == [
        ("us->eu", True), ("eu->us", True), ("us->ap", False),
    ]  # fmt: skip
    assert sorted(setup.clusters) == ["ap", "eu", "us"]


def test_read_connect_json_without_target_alias_uses_kafkas_default() -> None:
    config = {key: SOURCE[key] for key in SOURCE if key != "target.cluster.alias"}

    setup = read(put("mirror-src", config))

    assert (found(setup), setup.flows[0].flow) == ([], Flow("us", "target"))


@pytest.mark.parametrize("kind", [ConnectorKind.HEARTBEAT, ConnectorKind.CHECKPOINT])
def test_read_connect_json_without_source_connector_returns_disabled_flow_and_warns(
    kind: ConnectorKind,
) -> None:
    setup = read(post("mirror", CHECKPOINT | {"connector.class": f"{PACKAGE}.{kind}"}))

    assert found(setup) == [
        ("no-source-connector", "1.json:4", "us->eu has no MirrorSourceConnector")
    ]
    assert setup.findings[0].severity is FindingSeverity.WARNING
    assert (setup.enabled_flows, len(setup.flows)) == ((), 1)


def test_read_connect_json_prefers_clusters_of_source_connector() -> None:
    heartbeat = HEARTBEAT | {"source.cluster.bootstrap.servers": "us-1:9092"}

    setup = read(post("mirror-hb", heartbeat), post("mirror-src", SOURCE))

    assert setup.clusters["us"].client["security.protocol"].value == "SASL_SSL"


@pytest.mark.parametrize(
    ("servers", "findings"),
    [
        ("us-2:9092", [("conflicting-cluster", "2.json:6",
                        "us has other bootstrap.servers than at 1.json:6")]),
        ("us-2:9092,us-1:9092", []),
    ],
)  # fmt: skip
def test_read_connect_json_with_other_servers_of_an_alias_reports_conflict(
    servers: str, findings: list[object]
) -> None:
    checkpoint = CHECKPOINT | {"source.cluster.bootstrap.servers": servers}

    setup = read(post("mirror-src", SOURCE), post("mirror-cp", checkpoint))

    assert found(setup) == findings
    assert setup.clusters["us"].client["bootstrap.servers"].value == "us-1:9092"


@pytest.mark.parametrize(
    ("document", "check", "what"),
    [
        (SOURCE, "invalid-name", "a MirrorSourceConnector has 0 names, expected one"),
        (
            post("a", SOURCE | {"name": "b"}),
            "invalid-name", "a MirrorSourceConnector has 2 names, expected one",
        ),
        (
            post("a", {"connector.class": f"{PACKAGE}.MirrorSourceConnector"}),
            "invalid-alias",
            "MirrorSourceConnector 'a': '->target' is not a flow;"
            " expected source->target, as in us->eu",
        ),
        (
            post("a", SOURCE | {"target.cluster.alias": "us"}),
            "invalid-alias",
            "MirrorSourceConnector 'a': 'us->us' has the same source and target;"
            " expected two different clusters",
        ),
        (
            [post("a", SOURCE), post("b", SOURCE)],
            "duplicate-connector",
            "MirrorSourceConnector 'b' is the second of us->eu, after 'a' at 1.json:5",
        ),
        (
            post("sink", {"connector.class": "com.example.OrdersSink", "pw": PASSWORD}),
            "other-connector", "skipped a com.example.OrdersSink",
        ),
        (post("a", {"topics": PASSWORD}), "not-connect-json", "no connector.class found"),
        (post("a", PASSWORD), "not-connect-json", "no connector.class found"),
        (["mirror-src"], "not-connect-json", "no connector.class found"),
        ({"a": {"status": {}}}, "not-connect-json", "no connector.class found"),
        ({"error_code": 401, "message": PASSWORD}, "not-connect-json", "no connector.class found"),
        (
            f'{{"pw": "{PASSWORD}",\n "b" }}',
            "not-connect-json", "is not JSON: Expecting ':' delimiter",
        ),
        ("[" * 100_000, "not-connect-json", "is not JSON: nested too deeply"),
        (None, "not-connect-json", "no connector.class found"),
    ],
)  # fmt: skip
def test_read_connect_json_with_unusable_connector_reports_it_without_values(
    document: object, check: str, what: str
) -> None:
    setup = read(document)

    assert [(found_check, text) for found_check, _, text in found(setup)] == [(check, what)]
    severity = FindingSeverity.INFO if check == "other-connector" else FindingSeverity.ERROR
    assert setup.findings[0].severity is severity


JSON: Final = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.sampled_from(sorted(SOURCE)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "config", "info", *SOURCE]), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.property
@given(JSON, st.binary(max_size=60))
def test_read_connect_json_with_any_json_returns_a_setup(document: object, worker: bytes) -> None:
    setup = read(json.dumps(document), worker=("worker.properties", worker))

    assert all(finding.origin.file for finding in setup.findings)


@pytest.mark.property
@given(st.permutations(sorted(CONNECTORS)), st.sampled_from([post, put]))
def test_read_connect_json_in_any_order_returns_equal_flows(
    names: list[str], form: Callable[[str, dict[str, Any]], dict[str, object]]
) -> None:
    setup = read(*(form(name, CONNECTORS[name]) for name in names))

    assert {kind: each.name for kind, each in setup.flows[0].connectors.items()} == {
        kind: each.name for kind, each in read(expanded()).flows[0].connectors.items()
    }
    assert {alias: sorted(each.client) for alias, each in setup.clusters.items()} == {
        "us": ["bootstrap.servers", "sasl.jaas.config", "security.protocol"],
        "eu": ["bootstrap.servers", "ssl.keystore.password"],
    }
