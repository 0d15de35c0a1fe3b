"""KafkaMirrorMaker2 resources of three generations, and resources with mistakes."""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.mm2_config.mirror_setup import (
    ConnectorKind,
    FindingSeverity,
    Form,
    MirrorSetup,
    ProviderKind,
)
from mm2slo_core.mm2_config.strimzi_setup import read_strimzi

FILES: Final = Path(__file__).parent / "strimzi_files"
JAAS: Final = "org.apache.kafka.common.security"


def read(name: str) -> tuple[MirrorSetup, ...]:
    return read_strimzi(name, (FILES / name).read_text())


def values(settings: Any) -> dict[str, str]:
    return {key: setting.value for key, setting in settings.items()}


def flows(setup: MirrorSetup) -> dict[str, dict[str, str]]:
    """The connectors of each flow with their states; a flow that is not enabled has a minus."""
    return {
        ("" if flow.enabled else "-") + flow.flow.label: {
            connector.name.removeprefix(f"{flow.flow}.Mirror"): connector.state
            for connector in flow.connectors.values()
        }
        for flow in setup.flows
    }


SOURCE, CHECKPOINT, HEARTBEAT = "SourceConnector", "CheckpointConnector", "HeartbeatConnector"
BOTH: Final = {SOURCE: "running", CHECKPOINT: "running"}
DEFAULT_GROUP: Final = "mirrormaker2-cluster"
EXPECTED: Final = {
    "v1_active_passive.yaml": [("4.2.0", "mirror-ohio", {"virginia->ohio": BOTH})],
    "v1_bidirectional.yaml": [("4.3.0", "into-eu", {"us->eu": BOTH}), ("4.3.0", "into-us",
        {"eu->us": BOTH})],
    "v1_fan_in_oauth.yaml": [(*(None, "plants-to-hq"), {"north->hq": BOTH,
        "south->hq": {SOURCE: "stopped"}, "-west->hq": {CHECKPOINT: "running"}})],
    "v1beta2_active_passive.yaml": [(*("3.8.0", DEFAULT_GROUP),
        {"primary->standby": {SOURCE: "paused", CHECKPOINT: "running", HEARTBEAT: "running"}})],
    "v1beta2_list.yaml": [(None, "b-workers", {"a->b": {SOURCE: "running", HEARTBEAT: "running"}}),
        (None, DEFAULT_GROUP, {"-b->a": {HEARTBEAT: "running"}})],
    "v1beta2_chain.yaml": [("3.9.0", DEFAULT_GROUP, {"store->region": {SOURCE: "running"}}),
        ("3.9.0", DEFAULT_GROUP, {"region->hq": {SOURCE: "running", CHECKPOINT: "paused"}})],
    "v1alpha1_blacklist.yaml": [("2.6.0", DEFAULT_GROUP, {"old-dc->new-dc": BOTH})],
}  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), EXPECTED.items(), ids=EXPECTED)
def test_read_strimzi_has_one_setup_per_resource_with_its_flows(
    name: str, expected: list[tuple[str | None, str, dict[str, dict[str, str]]]]
) -> None:
    setups = read(name)
    assert [(s.kafka_version, s.flows[0].worker.group_id, flows(s)) for s in setups] == expected
    for setup in setups:
        assert setup.form is Form.STRIMZI
        assert all(finding.severity is FindingSeverity.INFO for finding in setup.findings)


def test_read_strimzi_of_other_kinds_skips_them_with_a_note() -> None:
    (setup,) = read("v1_active_passive.yaml")
    assert [str(finding) for finding in setup.findings] == [
        "v1_active_passive.yaml:3: info: skipped KafkaUser (no action is needed) [skipped-kind]"
    ]


def password(module: str, user: str, reference: str) -> str:
    return f'{JAAS}.{module}LoginModule required username="{user}" password="${{{reference}}}";'


PEM_TRUST: Final = {"ssl.truststore.type": "PEM"}
CLIENTS: Final = {
    ("v1_active_passive.yaml", 0, "ohio"): {"bootstrap.servers": "ohio-kafka-bootstrap:9093",
        "security.protocol": "SASL_SSL", **PEM_TRUST,
        "ssl.truststore.certificates": "${secret:ohio-cluster-ca-cert:*.crt}",
        "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": password("scram.Scram",
        "mirror-ohio", "secret:mirror-ohio:password")},
    ("v1_active_passive.yaml", 0, "virginia"): {"bootstrap.servers":
        "kafka-1.virginia.example.net:9094,kafka-2.virginia.example.net:9094",
        "security.protocol": "SSL", **PEM_TRUST, "ssl.truststore.certificates": (
        "${secret:virginia-ca:ca.crt}\n${secret:virginia-ca-next:ca.crt}"),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "${secret:mirror-virginia:user.crt}",
        "ssl.keystore.key": "${secret:mirror-virginia:user.key}"},
    ("v1_fan_in_oauth.yaml", 0, "north"): {"bootstrap.servers": "north.example.net:9093",
        "security.protocol": "SASL_SSL", **PEM_TRUST,
        "ssl.truststore.certificates": "${secret:hq-cluster-ca-cert:*.crt}",
        "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config":
        f'{JAAS}.oauthbearer.OAuthBearerLoginModule required oauth.client.id="mirror"'
        ' oauth.client.secret="${secrets:mirrors/mirror-oauth:clientSecret}"'
        ' oauth.token.endpoint.uri="https://sso.example.net/realms/plants/token";',
        "sasl.login.callback.handler.class": (
        "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler")},
    ("v1_fan_in_oauth.yaml", 0, "south"): {"bootstrap.servers": "south.example.net:9093",
        "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": password("scram.Scram", "mirror", "secret:south-mirror:value")},
    ("v1_fan_in_oauth.yaml", 0, "west"): {"bootstrap.servers": "west.example.net:9092",
        "security.protocol": "PLAINTEXT"},
    ("v1beta2_active_passive.yaml", 0,
        "primary"): {"bootstrap.servers": "primary-kafka-bootstrap.prod.svc:9093",
        "security.protocol": "SASL_SSL", **PEM_TRUST,
        "ssl.truststore.certificates": "${secret:primary-cluster-ca-cert:ca.crt}",
        "ssl.endpoint.identification.algorithm": "", "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": password("plain.Plain", "$ConnectionString",
        "secret:primary-mirror:connection-string")},
    ("v1beta2_chain.yaml", 0, "region"): {"bootstrap.servers": "region-kafka-bootstrap:9093",
        "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{JAAS}.oauthbearer.OAuthBearerLoginModule required"
        ' oauth.client.id="mirror-region" oauth.token.endpoint.uri="https://sso.example.net/token"'
        ' oauth.client.secret="${secret:mirror-oauth:secret}" oauth.scope="kafka"'
        ' oauth.ssl.endpoint.identification.algorithm="";', "sasl.login.callback.handler.class": (
        "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"),
        "sasl.oauthbearer.ssl.truststore.certificates": "${secret:sso-ca:tls.crt}"},
    ("v1beta2_chain.yaml", 1, "hq"): {"bootstrap.servers": "hq-kafka-bootstrap:9092",
        "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config":
        f'{JAAS}.plain.PlainLoginModule required username="${{env:MIRROR_USER}}"'
        ' password="${file:/opt/kafka/external-configuration/hq/mirror.properties:password}";'},
}  # fmt: skip


@pytest.mark.parametrize(("place", "expected"), CLIENTS.items(), ids=map(str, CLIENTS))
def test_read_strimzi_translates_security_to_java_client_settings(
    place: tuple[str, int, str], expected: dict[str, str]
) -> None:
    name, index, alias = place
    assert values(read(name)[index].clusters[alias].client) == expected


def test_read_strimzi_registers_the_providers_of_references() -> None:
    own = {
        "secret": ProviderKind.SECRET, "strimzisecrets": ProviderKind.SECRET,
        "strimzienv": ProviderKind.ENV, "strimzifile": ProviderKind.FILE,
        "strimzidir": ProviderKind.DIRECTORY, "file": ProviderKind.FILE,
    }  # fmt: skip
    (fan_in,) = read("v1_fan_in_oauth.yaml")
    assert fan_in.providers == own | {"secrets": ProviderKind.SECRET}
    assert read("v1beta2_chain.yaml")[1].providers == own | {"env": ProviderKind.ENV}


def test_read_strimzi_gives_connectors_what_strimzi_writes_with_its_place() -> None:
    (setup,) = read("v1_active_passive.yaml")
    source, checkpoint = setup.flows[0].connectors.values()
    found = values(source.settings)
    assert {key for key in found if key.startswith(("source.cluster.", "target.cluster."))} == {
        *(f"source.cluster.{key}" for key in setup.clusters["virginia"].client),
        *(f"target.cluster.{key}" for key in setup.clusters["ohio"].client),
        *(f"target.cluster.{name}.storage.replication.factor" for name in ("config", "offset")),
        "target.cluster.status.storage.replication.factor",
        "target.cluster.offset.flush.interval.ms",
    }
    assert {key: value for key, value in found.items() if ".cluster." not in key} == {
        "replication.factor": "-1",
        "offset-syncs.topic.replication.factor": "-1",
        "sync.topic.acls.enabled": "false",
        "refresh.topics.interval.seconds": "60",
        "tasks.max": "8",
        "topics": r"orders\..*,payments\..*",
        "topics.exclude": r".*\.tmp",
        "groups": "billing-.*",
    }
    assert checkpoint.settings["sync.group.offsets.enabled"].value == "true"
    topics, tasks = source.settings["topics"], source.settings["tasks.max"]
    assert (topics.key, topics.origin.line, tasks.key, tasks.origin.line) == (
        *("topicsPattern", 74),
        *("tasksMax", 61),
    )
    assert (str(source.origin), setup.flows[0].origin.line) == ("v1_active_passive.yaml:60", 45)


def test_read_strimzi_gives_workers_strimzis_defaults_and_the_clusters_config() -> None:
    (setup,) = read("v1alpha1_blacklist.yaml")
    worker = setup.flows[0].worker
    assert (worker.offsets_topic, worker.status_topic, worker.configs_topic) == (
        "mirrormaker2-cluster-offsets",
        "mirrormaker2-cluster-status",
        "mirrormaker2-cluster-configs",
    )
    converter = "org.apache.kafka.connect.converters.ByteArrayConverter"
    assert values(worker.settings) == {
        "group.id": "mirrormaker2-cluster",
        "offset.storage.topic": "mirrormaker2-cluster-offsets",
        "status.storage.topic": "mirrormaker2-cluster-status",
        "config.storage.topic": "mirrormaker2-cluster-configs",
        "key.converter": converter,
        "value.converter": converter,
        "header.converter": converter,
        "bootstrap.servers": "new-dc-kafka-bootstrap:9092",
        "security.protocol": "PLAINTEXT",
        "offset.storage.replication.factor": "1",
    }
    own = read("v1beta2_list.yaml")[0].flows[0].worker
    assert (own.offsets_topic, own.status_topic, own.configs_topic) == (
        *("b-offsets", "b-status"),
        "b-configs",
    )
    assert own.settings["key.converter"].value == "org.apache.kafka.connect.json.JsonConverter"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("v1alpha1_blacklist.yaml", ("app-test.*", "topicsBlacklistPattern", "app-tmp")),
        ("v1beta2_active_passive.yaml", ("audit.*", "topicsExcludePattern", "console-.*")),
    ],
)
def test_read_strimzi_reads_old_and_new_names_of_exclusions(
    name: str, expected: tuple[str, str, str]
) -> None:
    (setup,) = read(name)
    settings = setup.flows[0].connectors[ConnectorKind.SOURCE].settings
    topics, groups = settings["topics.exclude"], settings["groups.exclude"]
    assert (topics.value, topics.key, groups.value) == expected


OLD: Final = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
spec:
  connectCluster: b
  clusters:
    - {alias: a, bootstrapServers: "a:9092"}
    - {alias: b, bootstrapServers: "b:9092", config: {security.protocol: SSL}}
  mirrors:
    - {sourceCluster: a, targetCluster: b, sourceConnector: {}}
"""
NEW: Final = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
spec:
  target: {alias: b, bootstrapServers: "b:9092", config: {security.protocol: SSL},
    groupId: g, configStorageTopic: c, offsetStorageTopic: o, statusStorageTopic: s}
  mirrors:
    - {source: {alias: a, bootstrapServers: "a:9092"}, sourceConnector: {}}
"""


@pytest.mark.parametrize(("text", "expected"), [(OLD, "SSL"), (NEW, "SASL_SSL")])
def test_read_strimzi_lets_a_connectors_config_override_clusters_since_v1(
    text: str, expected: str
) -> None:
    config = "sourceConnector: {config: {target.cluster.security.protocol: SASL_SSL}}"
    (setup,) = read_strimzi("f", text.replace("sourceConnector: {}", config))
    settings = setup.flows[0].connectors[ConnectorKind.SOURCE].settings
    assert settings["target.cluster.security.protocol"].value == expected


def test_read_strimzi_accepts_the_layout_of_v1_in_v1beta2() -> None:
    (setup,) = read_strimzi("f", NEW.replace("/v1", "/v1beta2"))
    assert (flows(setup), setup.findings) == ({"a->b": {SOURCE: "running"}}, ())


def auth(text: str) -> str:
    return OLD.replace('"a:9092"', f'"a:9092", authentication: {{{text}}}')


REF: Final = "{secretName: s, key: k}"
NO_VERSION: Final = "(use kafka.strimzi.io/v1, v1beta2 or v1alpha1) [unknown-api-version]"
HELM: Final = "(pass the output of helm template) [template]"
NO_AUTH: Final = "(set clusters.<alias>.security in mm2slo.yaml) [unsupported-authentication]"
MISTAKES: Final = {
    "v1beta2 fields in v1": (OLD.replace("v1beta2", "v1").replace("sourceConnector: {}",
        "sourceConnector: {pause: true}, heartbeatConnector: {}, topicsBlacklistPattern: x"),
        ["4: error: connectCluster was removed in v1 (write spec.target) [removed-key]",
        "5: error: clusters was removed in v1 "
        "(write spec.target and spec.mirrors[].source) [removed-key]",
        "9: error: heartbeatConnector was removed in v1 "
        "(remove it; v1 has no replacement) [removed-key]",
        "9: error: pause was removed in v1 (write state: paused) [removed-key]",
        "9: error: sourceCluster was removed in v1 "
        "(write source, with the settings of the cluster) [removed-key]",
        "9: error: targetCluster was removed in v1 (write spec.target) [removed-key]",
        "9: error: topicsBlacklistPattern was removed in v1 "
        "(write topicsExcludePattern) [removed-key]"]),
    "oauth in v1": (NEW.replace('"a:9092"', '"a:9092", authentication: {type: oauth}'),
        ["7: error: oauth was removed in v1 "
        "(write type: custom, with sasl.jaas.config in config) [removed-key]",
        "7: error: spec.mirrors[0].source.authentication has no clientId "
        "(add clientId) [missing-key]"]),
    "no names in v1": (NEW.replace("groupId: g, configStorageTopic: c, ", ""),
        ["4: error: spec.target has no groupId, configStorageTopic "
        "(add groupId, configStorageTopic) [missing-key]"]),
    "no spec": (OLD.partition("spec:")[0],
        ["error: the file has no spec (add spec) [missing-key]"]),
    "empty spec": (NEW.partition("spec:")[0] + "spec: {}",
        ["3: error: spec has no mirrors (add mirrors) [missing-key]",
        "3: error: spec has no target (add target) [missing-key]"]),
    "no source": (NEW.replace("source: {alias", "sourse: {alias"),
        ["7: error: spec.mirrors[0] has no source (add source) [missing-key]",
        "7: warning: unknown key sourse (did you mean source?) [unknown-key]"]),
    "no connectCluster": (OLD.replace("  connectCluster: b\n", ""),
        ["3: error: spec has no connectCluster (add connectCluster) [missing-key]"]),
    "other version": (OLD.replace("v1beta2", "v2"),
        [f"1: error: unknown apiVersion kafka.strimzi.io/v2 {NO_VERSION}"]),
    "version without group": (OLD.replace("kafka.strimzi.io/v1beta2", "v1"),
        [f"1: error: unknown apiVersion v1 {NO_VERSION}"]),
    "no version": (OLD.replace("apiVersion", "version"), [f"error: no apiVersion {NO_VERSION}"]),
    "unknown aliases": (OLD.replace("connectCluster: b", "connectCluster: x"),
        ["4: error: no cluster x "
        "(use one of a, b, or add the cluster to spec.clusters) [unknown-cluster]"]),
    "unknown source": (OLD.replace("sourceCluster: a", "sourceCluster: z"),
        ["9: error: no cluster z "
        "(use one of a, b, or add the cluster to spec.clusters) [unknown-cluster]"]),
    "an alias twice": (NEW.replace("alias: a", "alias: b"),
        ["7: error: a second cluster has the alias b (give each cluster its own alias, and "
        "each pair of clusters one mirror) [duplicate-alias]",
        "7: error: b->b is a duplicate or a loop (remove this mirror) [invalid-flow]"]),
    "a flow twice": (OLD + "    - {sourceCluster: a, targetCluster: b, sourceConnector: {}}\n",
        ["10: error: a->b is a duplicate or a loop (remove this mirror) [invalid-flow]"]),
    "bad alias": (OLD.replace("alias: a", "alias: a/b"),
        ["6: error: spec.clusters[0].alias has a wrong value "
        "(String should match pattern '^[a-zA-Z0-9._-]{1,100}$') [invalid-value]"]),
    "servers as a list": (OLD.replace('"a:9092"', "[a]"),
        ["6: error: spec.clusters[0].bootstrapServers has a wrong value "
        "(Input should be a valid string) [invalid-value]"]),
    "lists and names in config": (OLD.replace("sourceConnector: {}",
        "sourceConnector: {config: {topics: [x], tasks.max: 4}}, config: {a: b}"),
        ["9: warning: config has tasks.max, which Strimzi sets itself "
        "(remove it) [ignored-key]", "9: error: topics is not text, a number or a boolean "
        "(write lists as one text: a,b) [invalid-value]",
        "9: warning: unknown key config (remove it) [unknown-key]"]),
    "Kerberos": (auth("type: kerberos"),
        [f"6: error: authentication uses type kerberos {NO_AUTH}"]),
    "access token": (auth(f"type: oauth, accessToken: {REF}"),
        [f"6: error: authentication uses accessToken {NO_AUTH}"]),
    "refresh token": (auth(f"type: oauth, clientId: c, tokenEndpointUri: u, refreshToken: {REF}"),
        [f"6: error: authentication uses refreshToken {NO_AUTH}"]),
    "assertion": (auth(f"type: oauth, clientId: c, tokenEndpointUri: u, clientAssertion: {REF}"),
        [f"6: error: authentication uses clientAssertion {NO_AUTH}"]),
    "password grant": (auth(
        "type: oauth, clientId: c, passwordSecret: {secretName: s, password: p}"),
        [f"6: error: authentication uses passwordSecret {NO_AUTH}"]),
    "no certificate": (auth("type: tls, certificateAndKey: {secretName: s, key: k}"),
        ["6: error: spec.clusters[0].authentication has no certificate "
        "(add certificate) [missing-key]"]),
    "no key of a CA": (OLD.replace('"a:9092"',
        '"a:9092", tls: {trustedCertificates: [{secretName: s}]}'),
        ["6: error: spec.clusters[0].tls has no certificate (add certificate) [missing-key]"]),
    "trust in a KafkaUser": (auth("type: tls, certificateAndKey: {secretName: s, certificate: "
        "user.crt, key: user.key}}, tls: {trustedCertificates: [{secretName: t, certificate: "
        "ca.crt}, {secretName: s, pattern: '*.crt'}]"),
        ["6: error: trusts ca.crt of s, the Secret of a KafkaUser "
        "(trust ca.crt of the Secret CLUSTER-cluster-ca-cert) [clients-ca]"]),
    "other settings in custom": (auth(
        "type: custom, sasl: true, config: {ssl.truststore.type: PEM}"),
        ["6: warning: authentication.config has ssl.truststore.type; expected only sasl.* "
        "and ssl.keystore.* (move it to the cluster's config) [ignored-key]"]),
    "duplicate key": (OLD.replace("alias: a", "alias: a, alias: c"),
        ["6: error: spec.clusters[0].alias is a duplicate key "
        "(remove one of them) [invalid-yaml]"]),
    "quoted template": (OLD.replace("a:9092", "{{ .Values.source }}:9092"),
        [f"6: error: has template placeholders {{{{ }}}} on line 6 {HELM}"]),
    "template": ((FILES / "template.yaml").read_text(),
        ["1: error: has template placeholders {{ }} on line 1, 6, 10, 11, 12, 13, 18" f" {HELM}"]),
    "no resource": ("kind: Secret\n---\n- 1\n",
        ["1: info: skipped Secret (no action is needed) [skipped-kind]",
        "info: skipped a document (no action is needed) [skipped-kind]",
        "error: the file has no KafkaMirrorMaker2 "
        "(pass the output of: kubectl get kafkamirrormaker2 -o yaml) [no-mirror-maker]"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), MISTAKES.values(), ids=MISTAKES)
def test_read_strimzi_reports_mistakes_with_line_and_action(text: str, expected: list[str]) -> None:
    findings = [str(finding) for setup in read_strimzi("f", text) for finding in setup.findings]
    assert [finding.removeprefix("f:").strip() for finding in findings] == expected


def test_read_strimzi_leaves_the_braces_of_other_kinds_alone() -> None:
    rule = "kind: PrometheusRule\nspec: {summary: '{{ $labels.flow }} is late'}\n---\n"
    (setup,) = read_strimzi("f", rule + OLD)
    assert flows(setup) == {"a->b": {SOURCE: "running"}}


def test_read_strimzi_of_one_secret_with_keys_of_cert_manager_reports_nothing() -> None:
    secret = "{secretName: s, certificate: tls.crt, key: tls.key}"
    tls = "tls: {trustedCertificates: [{secretName: s, certificate: ca.crt}]"
    (setup,) = read_strimzi("f", auth(f"type: tls, certificateAndKey: {secret}}}, {tls}"))
    assert setup.findings == ()


def test_read_strimzi_of_an_alias_called_oauth_in_v1_reports_nothing() -> None:
    (setup,) = read_strimzi("f", NEW.replace("alias: a", "alias: oauth"))
    assert setup.findings == ()


def test_read_strimzi_of_billion_laughs_reports_the_limit() -> None:
    lists = "".join(f"b{n}: &a{n + 1} [*a{n}, *a{n}, *a{n}]\n" for n in range(12))
    (setup,) = read_strimzi("f", "a: &a0 [x]\n" + lists)
    (finding,) = setup.findings
    assert finding.what == "the file has more than 100000 keys and values, counting aliases"


SECRET: Final = "hunter2 !x"
LEAKS: Final = [
    auth(f"type: plain, username: u, password: {SECRET}"),
    auth(f"type: plain, username: u, passwordSecret: {SECRET}"),
    auth(f"type: plain, username: u, passwordSecret: [{SECRET}]"),
    auth(f"type: plain, username: u, passwordSecret: {{secretName: s, password: {SECRET}}}"),
    auth(f"type: plain, username: u, '{SECRET}': "),
    auth(f"type: oauth, clientId: c, tokenEndpointUri: u, clientSecret: {SECRET}"),
    auth(f"type: custom, config: {{sasl.jaas.config: {SECRET}, x: {SECRET}}}"),
    OLD.replace("sourceConnector: {}", f"sourceConnector: {{config: {{p: [{SECRET}]}}}}"),
    OLD.replace("sourceConnector: {}", f"sourceConnector: {{password: {SECRET}}}"),
    OLD.replace('"a:9092"', f'"a:9092", config: {{sasl.jaas.config: {SECRET}}}'),
    OLD.replace('"a:9092"', f'["a:9092", {SECRET}]'),
    OLD.replace("sourceCluster: a", f"sourceCluster: a, {SECRET}"),
    OLD.replace("sourceCluster: a", f"sourceCluster: 'a, {SECRET}"),
]  # fmt: skip


@pytest.mark.parametrize("text", LEAKS)
def test_read_strimzi_shows_no_secret_in_findings_and_reprs(text: str) -> None:
    setups = read_strimzi("f", text)
    shown = repr(setups) + "".join(str(f) for setup in setups for f in setup.findings)
    assert "hunter2" in text
    assert "hunter2" not in shown


keys = st.sampled_from([
    "spec", "target", "mirrors", "clusters", "source", "alias", "bootstrapServers", "tls",
    "trustedCertificates", "secretName", "authentication", "type", "config", "sourceConnector",
    "tasksMax", "connectCluster", "sourceCluster", "x",
])  # fmt: skip
scalars = st.sampled_from([None, True, 1, 1.5, "", "a", "oauth", "custom", "tls", "plain"])
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner), max_leaves=12
)


@pytest.mark.property
@given(
    st.sampled_from(["v1", "v1beta2", "v1alpha1", "v2"]),
    st.dictionaries(keys, anything),
    st.lists(st.dictionaries(keys, anything), max_size=2),
)
def test_read_strimzi_of_any_resource_returns_setups(
    version: str, spec: dict[str, Any], parts: list[dict[str, Any]]
) -> None:
    target = {"alias": "t", "bootstrapServers": "t:1", **(parts[0] if parts else {})}
    resource = {
        "apiVersion": f"kafka.strimzi.io/{version}",
        "kind": "KafkaMirrorMaker2",
        "spec": {"target": target, "mirrors": parts, **spec},
    }
    (setup,) = read_strimzi("f", yaml.safe_dump(resource))
    assert all(
        set(flow.connectors) <= set(ConnectorKind)
        and {flow.flow.source, flow.flow.target} <= setup.clusters.keys()
        for flow in setup.flows
    )
