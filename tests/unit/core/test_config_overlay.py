"""mm2slo.yaml on top of MirrorMaker 2's own configuration."""

from collections.abc import Mapping

import pytest

from mm2slo_core.config.client_security import Mechanism, Protocol
from mm2slo_core.config.config_document import ConfigError, UnresolvedError
from mm2slo_core.config.config_loader import BaseConfig, load_config
from mm2slo_core.config.config_model import Config, MirrorFilesConfig
from mm2slo_core.mm2_config.config_overlay import combine_setups
from mm2slo_core.mm2_config.mirror_setup import Finding
from mm2slo_core.mm2_config.mm2_properties import read_properties
from mm2slo_core.mm2_config.provider_references import MirrorFiles

PLAIN = """\
clusters = us, eu
us.bootstrap.servers = us-1:9092, us-2:9092
eu.bootstrap.servers = eu-1:9092
us->eu.enabled = true
us->eu.topics = orders.*
us->eu.emit.checkpoints.interval.seconds = 20
eu->us.enabled = true
"""
JAAS = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="mm2" password="${env:%s_PASSWORD}";'
)
SECURED = f"""\
{PLAIN}config.providers = env
config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider
security.protocol = SASL_SSL
sasl.mechanism = SCRAM-SHA-512
us.sasl.jaas.config = {JAAS % "US"}
eu.sasl.jaas.config = {JAAS % "EU"}
"""
OWN = "security: {protocol: SASL_SSL, sasl: {mechanism: PLAIN, username: app, password: own}}"
PASSWORDS = {"US_PASSWORD": "hunter2-us", "EU_PASSWORD": "hunter2-eu"}


def load(
    text: str, *files: str, environment: Mapping[str, str] = PASSWORDS
) -> tuple[Config, tuple[Finding, ...]]:
    """Load *text* over properties files named a.properties, b.properties and so on."""
    found: list[Finding] = []

    def unresolved(*_: str) -> bytes:
        raise UnresolvedError("is not here")

    def variable(name: str) -> str:
        if name not in environment:
            raise UnresolvedError(f"the variable {name} is not set")
        return environment[name]

    def read_base(named: MirrorFilesConfig, own: Mapping[str, object]) -> BaseConfig:
        names = (f"{letter}.properties" for letter in "abc")
        setups = [read_properties(name, file.encode()) for name, file in zip(names, files)]  # noqa: B905
        sources = MirrorFiles(variable, unresolved, unresolved)
        base, findings = combine_setups(setups, sources, own, named.kafka_version)
        found.extend(findings)
        return base

    return load_config(text, read_base=read_base), tuple(found)


def problems(text: str, *files: str, environment: Mapping[str, str] = PASSWORDS) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        load(text, *files, environment=environment)
    return [str(problem) for problem in refused.value.problems]


def test_load_properties_only_takes_clusters_and_flows_from_the_file() -> None:
    config, _ = load("{}", PLAIN)
    assert {alias: each.bootstrap_servers for alias, each in config.clusters.items()} == {
        "us": "us-1:9092,us-2:9092",
        "eu": "eu-1:9092",
    }
    assert [(flow.label, flow.topics) for flow in config.flows] == [
        ("us->eu", ("orders.*",)),
        ("eu->us", (".*",)),
    ]


PRECEDENCE = {
    "the file over built-in defaults": ("{}", ("orders.*", ), 20.0),
    "defaults over the file": ("defaults: {topics: [all]}", ("all", ), 20.0),
    "a flow over defaults": (
        "{defaults: {topics: [all]}, flows: [{flow: us->eu, topics: [one]}]}", ("one", ), 20.0),
    "a flow over the file": ("flows: [{flow: 'us -> eu', checkpoint_interval: 5s}]", ("orders.*",
        ), 5.0),
}  # fmt: skip


@pytest.mark.parametrize(("text", "topics", "interval"), PRECEDENCE.values(), ids=[*PRECEDENCE])
def test_load_merges_in_order_of_precedence(
    text: str, topics: tuple[str, ...], interval: float
) -> None:
    config, _ = load(text, PLAIN)
    flows = {flow.label: flow for flow in config.flows}
    assert flows["us->eu"].topics == topics
    assert flows["us->eu"].checkpoint_interval == interval
    assert flows["eu->us"].checkpoint_interval == 60.0


def test_load_merges_sections_of_a_flow_by_key() -> None:
    file = PLAIN + "us->eu.replication.policy.separator = _\n"
    config, _ = load("flows: [{flow: us->eu, policy: {internal_separator: false}}]", file)
    policy = config.flows[0].policy
    assert (policy.separator, policy.internal_separator) == ("_", False)


def test_load_cluster_overrides_servers_and_adds_client_properties() -> None:
    text = 'clusters: {us: {bootstrap_servers: "lb:1", client: {client.rack: a}}, eu: }'
    config, _ = load(text, SECURED)
    us, eu = config.clusters["us"], config.clusters["eu"]
    assert (us.bootstrap_servers, us.client["client.rack"].reveal()) == ("lb:1", "a")
    assert (us.security.protocol, eu.bootstrap_servers) == (Protocol.SASL_SSL, "eu-1:9092")


def test_load_takes_security_from_the_file_and_warns_once() -> None:
    config, findings = load("{}", SECURED)
    sasl = config.clusters["eu"].security.sasl
    assert sasl is not None
    assert (sasl.mechanism, sasl.username) == (Mechanism.SCRAM_SHA_512, "mm2")
    assert sasl.password is not None
    assert sasl.password.reveal() == "hunter2-eu"
    warnings = [each for each in findings if each.check == "own-principal"]
    assert [each.what for each in warnings] == [
        "mm2slo uses MirrorMaker 2's principal on us, eu",
    ]
    assert "hunter2" not in repr(config) + repr(findings)


def test_load_own_security_replaces_that_of_the_file_which_is_not_resolved() -> None:
    text = f"clusters: {{us: {{{OWN}}}, eu: {{{OWN}}}}}"
    config, findings = load(text, SECURED, environment={})
    sasl = config.clusters["us"].security.sasl
    assert sasl is not None
    assert (sasl.mechanism, sasl.username) == (Mechanism.PLAIN, "app")
    assert [each for each in findings if each.check == "own-principal"] == []


def test_load_cluster_without_an_enabled_flow_is_not_read() -> None:
    unused = SECURED.replace("clusters = us, eu", "clusters = us, eu, ap") + (
        f"ap.bootstrap.servers = ap:1\nap.sasl.jaas.config = {JAAS % 'AP'}\n"
    )
    assert sorted(load("{}", unused)[0].clusters) == ["eu", "us"]


ONE_WAY = PLAIN.replace("eu->us.enabled = true\n", "")
HEARTBEATS = {
    "a herder for heartbeats": (ONE_WAY, True, 1.0),
    "no herder of the way back": (ONE_WAY + "eu->us.emit.heartbeats.enabled = false", False, 1.0),
    "a negative interval": (PLAIN + "emit.heartbeats.interval.seconds = -1", False, 1.0),
    "an interval of the flow itself": (
        ONE_WAY + "us->eu.emit.heartbeats.interval.seconds = 9", True, 1.0),
    "an interval from a variable": (
        SECURED + "eu->us.emit.heartbeats.interval.seconds = ${env:SECONDS}", True, 7.0),
    "another herder to the source": (
        ONE_WAY.replace("= us, eu", "= us, eu, ap") + "ap.bootstrap.servers = ap:1\n"
        "emit.heartbeats.enabled = false\nap->us.emit.heartbeats.enabled = true\n"
        "ap->us.emit.heartbeats.interval.seconds = 3", True, 3.0),
}  # fmt: skip


@pytest.mark.parametrize(("file", "emitted", "interval"), HEARTBEATS.values(), ids=[*HEARTBEATS])
def test_load_heartbeats_are_those_of_herders_to_the_source(
    file: str, interval: float, *, emitted: bool
) -> None:
    flow = load("{}", file, environment={**PASSWORDS, "SECONDS": "7"})[0].flows[0]
    assert (flow.emit_heartbeats, flow.heartbeat_interval) == (emitted, interval)


def test_load_flow_of_another_engine_needs_no_entry_in_the_file() -> None:
    text = """\
clusters: {ap: {bootstrap_servers: "ap:1"}}
flows: [{flow: us->ap, engine: other}]
"""
    assert [flow.label for flow in load(text, PLAIN)[0].flows] == ["us->ap", "us->eu", "eu->us"]


def test_load_policy_of_an_unknown_class_is_an_error_unless_the_flow_sets_policy() -> None:
    file = PLAIN + "us->eu.replication.policy.class = com.example.Renamed\n"
    (problem,) = problems("{}", file)
    assert problem.startswith("a.properties:8: us->eu.replication.policy.class: 'com.example.Ren")
    config, _ = load("flows: [{flow: us->eu, policy: {kind: identity}}]", file)
    assert config.flows[0].policy.kind == "identity"


ERRORS = {
    "a flow that is absent from the file": ("\n\nflows:\n  - flow: us->ue\n", (PLAIN, ),
        "flows[0].flow (line 4): 'us->ue' is not an enabled flow of MirrorMaker 2's files\n"
        "  expected: one of us->eu, eu->us\n  next step: did you mean 'us->eu'?"),
    "a misspelt cluster": ("clusters:\n  uss: {client: {a: b}}\n", (PLAIN, ),
        "clusters.uss.bootstrap_servers (line 2): is missing\n"
        "  expected: a value for this key\n  next step: docs/configuration.md lists every key"),
    "an invalid address in the file": ("{}", (PLAIN.replace("us-2:9092", "us-2"), ),
        "a.properties:2: clusters.us.bootstrap_servers: 'us-1:9092, us-2' contains the invalid "
        "server 'us-2'\n"
        '  expected: host:port, or several separated by commas, as in "eu-1:9093,eu-2:9093"\n'
        "  next step: write IPv6 addresses in brackets, as in [::1]:9092"),
    "a check that fails in the file": ("{}", (PLAIN.replace("us->eu.topics = orders.*",
        "us->eu.replication.policy.separator = s"), ),
        "a.properties:4: flows['us->eu'].policy.separator: 's' is part of the alias 'us'\n"
        "  expected: a separator that no alias contains: MirrorMaker 2 splits topic names at "
        "it\n  next step: change the alias or the separator in MirrorMaker 2 and here"),
    "an invalid value in mm2slo.yaml": ("flows:\n  - flow: us->eu\n    topics: [a, 5]\n", (PLAIN,
        ), "flows[0].topics[1] (line 3): 5 has the wrong type\n"
        "  expected: text; quote it if YAML reads it as another type"),
    "an unset variable": ("{clusters: {us: {" + OWN + "}}}", (SECURED, ),
        "a.properties:13: ${env:EU_PASSWORD} in eu.sasl.jaas.config cannot be resolved: the "
        "variable EU_PASSWORD is not set; MirrorMaker 2 gets this value from its environment, "
        "a file or a secret\n  next step: export EU_PASSWORD=... before starting mm2slo"),
    "a provider that is not declared": ("{clusters: {eu: {" + OWN + "}}}", (SECURED.replace(
        "config.providers = env", "config.providers = vault"), ),
        "a.properties:12: us.sasl.jaas.config refers to the config provider 'env', which "
        "config.providers does not list; Kafka takes the text itself as the value\n"
        "  next step: add the name to config.providers, and config.providers.NAME.class, where "
        "workers read them"),
    "a flow in two files": ("{}", (PLAIN, PLAIN.replace("eu->us.enabled = true", "")),
        "b.properties:4: the flow 'us->eu' is already enabled in a.properties:4; two of the "
        "same flow replicate each record twice\n"
        "  next step: leave out one of the files, or disable the flow in one of them"),
    "an alias of two clusters": ("{}", (PLAIN,
        "clusters = us, ap\nus.bootstrap.servers = x:1\nap.bootstrap.servers = ap:1\n"
        "us->ap.enabled = true\n"),
        "b.properties:2: the cluster 'us' has the bootstrap servers 'x:1', but "
        "'us-1:9092, us-2:9092' in a.properties:2; an alias is one cluster\n"
        "  next step: set clusters.us.bootstrap_servers, or use one mm2slo.yaml per "
        "MirrorMaker 2"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "files", "expected"), ERRORS.values(), ids=[*ERRORS])
def test_load_error_is_reported_where_it_was_written(
    text: str, files: tuple[str, ...], expected: str
) -> None:
    assert problems(text, *files, environment={}) == [expected]


@pytest.mark.parametrize(
    "provider", ["", "config.providers = vault\n", "us.config.providers = vault"]
)
def test_load_unread_provider_matters_to_flows_only_where_mm2slo_needs_its_value(
    provider: str,
) -> None:
    file = PLAIN + "us->eu.tasks.max = ${vault:tasks}\nus->eu.offset.lag.max = ${vault:lag}\n"
    found = problems("{}", file + provider)
    assert [each for each in found if not each.startswith("a.properties:9: ")] == []
    assert found[0].startswith("a.properties:9: ")
    if provider:  # otherwise Kafka refuses the text
        load("flows: [{flow: us->eu, offset_lag_max: 7}]", file + provider)


def test_load_same_cluster_in_two_files_is_merged() -> None:
    other = "clusters = us, ap\n%sap.bootstrap.servers = ap:1\nus->ap.enabled = true\n"
    shared = other % "us.bootstrap.servers = us-2:9092, us-3:9092\n"
    config, _ = load("{}", PLAIN, shared)
    assert config.clusters["us"].bootstrap_servers == "us-1:9092,us-2:9092"
    overridden = "clusters: {us: {bootstrap_servers: 'us:1'}}"
    config, _ = load(overridden, PLAIN, other % "us.bootstrap.servers = x:1\n")
    assert [flow.label for flow in config.flows] == ["us->eu", "eu->us", "us->ap"]


def test_load_reports_problems_of_all_files_together_and_nothing_that_follows_from_them() -> None:
    text = (
        "mm2: {propertis: [a]}\nexporter: {listen: 9469}\nflows:\n  - {flow: us->xx, slize: 1s}\n"
    )
    found = [problem.splitlines()[0] for problem in problems(text, SECURED, environment={})]
    assert found == [
        "mm2.propertis (line 1): unknown key",
        "exporter.listen (line 2): 9469 is not a listen address",
        "flows[0].flow (line 4): 'us->xx' is not an enabled flow of MirrorMaker 2's files",
        "flows[0].slize (line 4): unknown key",
        "a.properties:12: ${env:US_PASSWORD} in us.sasl.jaas.config cannot be resolved: the "
        "variable US_PASSWORD is not set; MirrorMaker 2 gets this value from its environment, a "
        "file or a secret",
        "a.properties:13: ${env:EU_PASSWORD} in eu.sasl.jaas.config cannot be resolved: the "
        "variable EU_PASSWORD is not set; MirrorMaker 2 gets this value from its environment, a "
        "file or a secret",
    ]  # fmt: skip


def test_load_incomplete_file_hides_problems_that_may_follow_from_it() -> None:
    file = PLAIN.replace("eu.bootstrap.servers = eu-1:9092\n", "")
    text = "clusters: {eu: {client: {a: b}}}\nflows: [{flow: us->xx}]\nexporter: {listen: 1}\n"
    found = [problem.splitlines()[0] for problem in problems(text, file)]
    assert found == [
        "exporter.listen (line 3): 1 is not a listen address",
        "a.properties:1: cluster eu has no bootstrap servers; MirrorMaker 2 does not start with it",
    ]


def test_load_unresolved_address_is_reported_once_unless_overridden() -> None:
    file = SECURED.replace("us-1:9092, us-2:9092", "${env:HOST}:9092")
    (problem,) = problems("{}", file)
    assert problem.startswith("a.properties:2: ${env:HOST} in us.bootstrap.servers cannot be ")
    own = "clusters: {us: {bootstrap_servers: 'lb:1'}}"
    assert load(own, file)[0].clusters["us"].bootstrap_servers == "lb:1"


def test_load_kafka_version_decides_defaults() -> None:
    exclude = load("mm2: {kafka_version: '3.9'}", PLAIN)[0].flows[0].topics_exclude
    assert exclude == (r".*[\-\.]internal", r".*\.replica", r"__.*")


@pytest.mark.parametrize(
    ("version", "keeps_syncs"),
    [("2.8", False), ("3.6.2", False), ("3.7.0", False), ("3.7", True), ("3.7.1", True),
     ("3.10", True), ("4.1.0", True)],
)  # fmt: skip
def test_load_kafka_version_decides_offset_syncs_after_restart(
    version: str, *, keeps_syncs: bool
) -> None:
    flow = load(f"mm2: {{kafka_version: '{version}'}}", PLAIN)[0].flows[0]
    assert flow.keeps_offset_syncs is keeps_syncs
    assert flow.kafka_version == (None if keeps_syncs else version)


@pytest.mark.parametrize("version", ["3.9", "latest", ""])
def test_load_unquoted_or_unknown_kafka_version_is_reported(version: str) -> None:
    (problem,) = problems(f"mm2: {{kafka_version: {version or 3}}}", PLAIN)
    assert problem.startswith("mm2.kafka_version (line 1): ")
