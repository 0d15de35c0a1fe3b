"""What `mm2slo render` writes in each form, and what a form cannot say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from generated_mirror_setups import EXAMPLE
from strimzi_schemas import FOLDER, needs_definitions, schema_errors

from mm2slo_core.mm2_config.connect_json import read_connect_json
from mm2slo_core.mm2_config.mirror_setup import ConnectorKind, Finding, MirrorSetup
from mm2slo_core.mm2_config.mm2_properties import read_properties
from mm2slo_core.mm2_config.rendered_setup import (
    Rendered,
    render_connect,
    render_properties,
    render_strimzi,
)
from mm2slo_core.mm2_config.strimzi_setup import read_strimzi

if TYPE_CHECKING:
    Renderer = Callable[[Sequence[MirrorSetup]], Rendered]

RENDERERS = (render_properties, render_strimzi, render_connect)
SAMPLES = sorted(Path(__file__).parent.glob("*_files/*.*"))
PLAIN_SECRET = re.compile(r'password *= *"?([^\s";$<]+)')
WORKER = b"group.id=g\nconfig.storage.topic=c\nstatus.storage.topic=s\noffset.storage.topic=o\n"
PROPERTIES = b"""
clusters = us, eu
us.bootstrap.servers = us:9092
eu.bootstrap.servers = eu:9092
us->eu.enabled = true
eu->us.emit.heartbeats.enabled = false
"""
RESOURCE = """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata: {name: mirror}
spec:
  version: 3.9.1
  replicas: 1
  connectCluster: eu
  clusters:
    - {alias: us, bootstrapServers: "us:9093", tls: {trustedCertificates: [
        {secretName: us-ca, pattern: "*.crt"}]}, authentication: {type: oauth, clientId: mm2,
        tokenEndpointUri: "https://id.example.com/token",
        clientSecret: {secretName: us-oauth, key: secret},
        tlsTrustedCertificates: [{secretName: id-ca, certificate: ca.crt}]}}
    - {alias: eu, bootstrapServers: "eu:9092", config: {offset.flush.interval.ms: 5000}}
  mirrors:
    - sourceCluster: us
      targetCluster: eu
      topicsPattern: orders
      sourceConnector: {tasksMax: 4, config: {replication.factor: 3}}
      checkpointConnector: {state: paused}
"""


def properties(more: str = "", base: bytes = PROPERTIES) -> list[MirrorSetup]:
    return [read_properties("mm2.properties", base + more.encode())]


def lost(findings: list[Finding]) -> list[str]:
    return [each.what for each in findings]


def test_properties_have_one_line_per_setting_and_the_secrets_to_create() -> None:
    texts, findings = render_properties(list(read_strimzi("mirror.yaml", RESOURCE)))
    folder = "secretdir:/etc/kafka/secrets"
    assert texts["mm2.properties"].splitlines() == [
        "# Create these secrets:",
        "#   mm2-us, key all.crt: the value of ${secret:us-ca:*.crt}",
        "clusters=us, eu",
        "us.bootstrap.servers=us:9093",
        "us.ssl.truststore.type=PEM",
        f"us.ssl.truststore.certificates=${{{folder}/mm2-us:all.crt}}",
        "us.sasl.mechanism=OAUTHBEARER",
        "us.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
        ' required oauth.client.id="mm2" oauth.token.endpoint.uri="https://id.example.com/token"'
        f' oauth.client.secret="${{{folder}/us-oauth:secret}}"'
        ' oauth.ssl.truststore.location="/etc/kafka/secrets/id-ca/ca.crt"'
        ' oauth.ssl.truststore.type="PEM";',
        "us.sasl.login.callback.handler.class="
        "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler",
        "us.security.protocol=SASL_SSL",
        "eu.bootstrap.servers=eu:9092",
        "eu.security.protocol=PLAINTEXT",
        "us->eu.enabled=true",
        "us->eu.emit.heartbeats.enabled=false",
        "us->eu.replication.factor=3",
        "us->eu.tasks.max=4",
        "us->eu.topics=orders",
        "eu->us.emit.heartbeats.enabled=false",
        "eu.group.id=mirrormaker2-cluster",
        "eu.offset.storage.topic=mirrormaker2-cluster-offsets",
        "eu.config.storage.topic=mirrormaker2-cluster-configs",
        "eu.status.storage.topic=mirrormaker2-cluster-status",
        "eu.key.converter=org.apache.kafka.connect.converters.ByteArrayConverter",
        "eu.value.converter=org.apache.kafka.connect.converters.ByteArrayConverter",
        "eu.header.converter=org.apache.kafka.connect.converters.ByteArrayConverter",
        "eu.offset.flush.interval.ms=5000",
        "config.providers=secretdir",
        "config.providers.secretdir.class="
        "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
    ]
    assert lost(findings) == [
        "us->eu.MirrorSourceConnector becomes MirrorSourceConnector: all records are copied again",
        "us->eu.MirrorCheckpointConnector is paused",
        "tasks.max of us->eu differs between MirrorSourceConnector and MirrorCheckpointConnector",
    ]


def test_connectors_and_workers_have_a_folder_per_group() -> None:
    texts, findings = render_connect(properties("us->eu.topics = orders\\\\.v1\ntasks.max = 2"))
    assert findings == []
    assert list(texts) == [
        "eu-us-mm2/connect-distributed.properties",
        *(
            f"eu-us-mm2/us-to-eu.Mirror{kind}Connector.json"
            for kind in ("Source", "Checkpoint", "Heartbeat")
        ),
    ]
    assert json.loads(texts["eu-us-mm2/us-to-eu.MirrorCheckpointConnector.json"]) == {
        "name": "MirrorCheckpointConnector",
        "config": {
            "connector.class": "org.apache.kafka.connect.mirror.MirrorCheckpointConnector",
            "source.cluster.alias": "us",
            "source.cluster.bootstrap.servers": "us:9092",
            "target.cluster.alias": "eu",
            "target.cluster.bootstrap.servers": "eu:9092",
            "tasks.max": "2",
            "topics": r"orders\.v1",
        },
    }


def test_resources_use_types_of_strimzi_and_volumes_for_the_rest() -> None:
    texts, findings = render_strimzi(properties(base=EXAMPLE))
    assert list(texts) == ["mm2-eu.yaml", "heartbeats-us.yaml", "heartbeats-ap.yaml"]
    spec: dict[str, Any] = yaml.safe_load(texts["mm2-eu.yaml"])["spec"]
    by_alias = {each["source"]["alias"]: each for each in spec["mirrors"]}
    assert by_alias["us"]["source"] == {
        "alias": "us",
        "bootstrapServers": "us-1:9093,us-2:9093",
        "tls": {"trustedCertificates": [{"secretName": "mm2-us", "certificate": "ca.crt"}]},
        "authentication": {
            "type": "scram-sha-512",
            "username": "mm2",
            "passwordSecret": {"secretName": "mm2-us", "password": "password"},
        },
    }
    assert spec["target"]["authentication"] == {
        "type": "tls",
        "certificateAndKey": {"secretName": "mm2-eu", "certificate": "tls.crt", "key": "tls.key"},
    }
    custom = by_alias["ap"]["source"]["authentication"]
    assert (custom["type"], custom["sasl"]) == ("custom", True)
    assert 'clientSecret="${secretdir:/mnt/mm2-ap:clientSecret}"' in str(custom["config"])
    assert spec["template"] == {
        "pod": {"volumes": [{"name": "mm2-ap", "secret": {"secretName": "mm2-ap"}}]},
        "connectContainer": {"volumeMounts": [{"name": "mm2-ap", "mountPath": "/mnt/mm2-ap"}]},
    }
    assert spec["target"]["config"]["config.providers"] == "secretdir"
    assert by_alias["us"]["topicsPattern"] == "orders.*, payments"
    assert texts["mm2-eu.yaml"].splitlines()[1:8] == [
        "# Create these secrets:",
        "#   mm2-us, key password: password of us.sasl.jaas.config (mm2.properties:6)",
        "#   mm2-eu, key ca: the value of ${file:/opt/eu.properties:ca}",
        "#   mm2-ap, key clientSecret: clientSecret of ap.sasl.jaas.config (mm2.properties:21)",
        *(
            f"#   mm2-eu, key tls.{end}: eu.ssl.keystore.location (mm2.properties:12) as PEM,"
            " without a password"
            for end in ("crt", "key")
        ),
        "#   mm2-us, key ca.crt: us.ssl.truststore.location (mm2.properties:8) as PEM,"
        " without a password",
    ]
    assert lost(findings) == [
        "us->eu writes no heartbeats: Strimzi v1 has no heartbeat connector",
        "ap->eu shares the workers of us->eu, in us-mm2",
        *(
            f"MirrorSourceConnector becomes {flow}.MirrorSourceConnector: all records are copied"
            " again"
            for flow in ("us->eu", "ap->eu")
        ),
    ]


@needs_definitions
@pytest.mark.parametrize("sample", [EXAMPLE, PROPERTIES], ids=["example", "plain"])
def test_resources_are_valid(sample: bytes) -> None:
    texts, _ = render_strimzi(properties(base=sample))
    assert [error for text in texts.values() for error in schema_errors(text)] == []


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("tasks.max = many", "tasks.max is many"),
        ("eu.listeners = http://:8083", "the operator of Strimzi sets listeners"),
        (
            "us.security.protocol = SSL\nus.ssl.engine.factory.class = X",
            "ssl.engine.factory.class of us has no place in the resource, or is a file outside of"
            " its pods",
        ),
    ],
)
def test_what_resources_cannot_say_is_reported(more: str, expected: str) -> None:
    _, findings = render_strimzi(properties(f"{more}\nemit.heartbeats.enabled = false\n"))
    assert expected in lost(findings)
    assert all(each.check == "not-rendered" for each in findings)


def test_two_setups_are_combined_and_conflicts_reported() -> None:
    second = b"clusters=eu,us\neu.bootstrap.servers=eu:1\nus.bootstrap.servers=us:9092\n"
    setups = properties() + properties(base=second + b"eu->us.enabled=true\nus->eu.enabled=true\n")
    texts, findings = render_properties(setups)
    assert "eu->us.enabled=true" in texts["mm2.properties"]
    assert lost(findings) == [
        "eu has other settings than at mm2.properties:4",
        "us->eu is a duplicate, or its cluster is missing",
    ]


def test_worker_names_of_two_flows_to_a_target_are_reported() -> None:
    config = {"connector.class": "MirrorSource", "target.cluster.bootstrap.servers": "eu:9092"}
    config["target.cluster.alias"] = "eu"
    connectors = [
        {
            "name": alias,
            "config": config
            | {"source.cluster.alias": alias, "source.cluster.bootstrap.servers": f"{alias}:9092"},
        }
        for alias in ("us", "ap")
    ]
    setup = read_connect_json([("c.json", json.dumps(connectors))], ("w.properties", WORKER))
    texts, findings = render_properties([setup])
    assert "group.id" not in texts["mm2.properties"]
    assert "group.id of us->eu is g, but each flow to eu needs its own" in lost(findings)


HOSTILE = b"""
us.ssl.truststore.password : s3cret
us.ssl.keystore.key = -----BEGIN PRIVATE KEY-----\\ns3cret\\n-----END PRIVATE KEY-----
us.sasl.jass.config = X required password="s3cret";
us.sasl.jaas.config = X required password="s3cret" // no semicolon
us.sasl.oauthbearer.client.credentials.client.secret = ${PASSWORD:-s3cret}
us->eu.transforms = r
us->eu.transforms.r.auth.token = s3cret
us->eu.producer.override.sasl.jaas.config = X required user_admin="s3cret";
us->eu.source.consumer.ssl.key.password = s3cret
eu.value.converter.schema.registry.url = https://user:s3cret@registry:8081
eu.metrics.context.api_key = s3cret
config.providers = vault
config.providers.vault.class = com.example.Vault
config.providers.vault.param.token.password = s3cret
listeners.https.ssl.keystore.password = s3cret
"""


def hostile_setups() -> dict[str, list[MirrorSetup]]:
    (read,) = properties(HOSTILE.decode())
    config = {
        key: each.value
        for key, each in read.flows[0].connectors[ConnectorKind.SOURCE].settings.items()
    }
    aliases = {"source.cluster.alias": "us", "target.cluster.alias": "eu"}
    body = {"name": "m", "config": {**config, **aliases, "connector.class": "MirrorSource"}}
    worker = HOSTILE.replace(b"eu.", b"").replace(b"us.", b"") + WORKER
    resource = yaml.safe_load(RESOURCE)
    del resource["spec"]["clusters"][0]["authentication"]
    resource["spec"]["clusters"][0]["config"] = {
        key: each.value for key, each in read.clusters["us"].client.items()
    }
    resource["spec"]["mirrors"][0]["sourceConnector"]["config"] = config
    return {
        "properties": [read],
        "connect-json": [read_connect_json([("c", json.dumps(body))], ("w", worker))],
        "strimzi": list(read_strimzi("r", yaml.safe_dump(resource))),
    }


@pytest.mark.parametrize("form", ["properties", "connect-json", "strimzi"])
@pytest.mark.parametrize("render", RENDERERS)
def test_no_secret_is_rendered(form: str, render: Renderer) -> None:
    setups = hostile_setups()[form]
    assert "s3cret" in str([each.value for each in setups[0].clusters["us"].client.values()])
    texts, findings = render(setups)
    assert texts
    assert "s3cret" not in "".join(texts.values()) + repr(findings) + "".join(map(str, findings))


@pytest.mark.parametrize("render", RENDERERS)
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_no_secret_of_a_sample_is_rendered(sample: Path, render: Renderer) -> None:
    text = sample.read_text(encoding="utf-8")
    if sample.suffix == ".properties":
        setups = [read_properties(sample.name, text.encode())]
    else:
        setups = list(read_strimzi(sample.name, text))
    texts, findings = render(setups)
    for secret in PLAIN_SECRET.findall(text):
        assert secret not in "".join(texts.values()) + "".join(map(str, findings))
    if render is render_strimzi and FOLDER.is_dir():
        assert [error for each in texts.values() for error in schema_errors(each)] == []
