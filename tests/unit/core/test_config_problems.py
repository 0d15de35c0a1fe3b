"""Problems in mm2slo.yaml outside of flows, with their exact text."""

import pytest

from mm2slo_core.config.config_document import ConfigError
from mm2slo_core.config.config_loader import load_config

CLUSTERS = """\
clusters:
  us: {bootstrap_servers: "us:9092"}
  eu: {bootstrap_servers: "eu:9092"}
"""
FLOWS = """\
flows:
  - flow: us->eu
"""


def report(text: str) -> list[str]:
    """The text of each problem."""
    with pytest.raises(ConfigError) as refused:
        load_config(text)
    return [str(problem) for problem in refused.value.problems]


def one(text: str) -> str:
    (problem,) = report(text)
    return problem


CERTIFICATE = "'-----BEGIN CERTIFICATE-----'"
SECURITY_MISTAKES = {
    "SASL without credentials": ("{protocol: SASL_SSL}",
        "sasl (line 2): is required with the protocol SASL_SSL\n"
        "  expected: mechanism and credentials\n"
        "  next step: add sasl, or set protocol to one without SASL"),
    "credentials without SASL": (
        "{protocol: SSL, sasl: {mechanism: PLAIN, username: u, password: p}}",
        "sasl (line 2): has no effect with the protocol SSL\n"
        "  expected: protocol SASL_PLAINTEXT or SASL_SSL\n"
        "  next step: set protocol, or remove sasl"),
    "TLS files without TLS": ("{tls: {ca_file: ca.pem}}",
        "tls (line 2): has no effect with the protocol PLAINTEXT\n"
        "  expected: protocol SSL or SASL_SSL\n  next step: set protocol, or remove tls"),
    "a key without its certificate": ("{protocol: SSL, tls: {key_file: k.pem}}",
        "tls.key_file (line 2): is set without certificate_file\n"
        "  expected: certificate_file and key_file together, for mutual TLS\n"
        "  next step: add certificate_file"),
    "SCRAM without a password": (
        "{protocol: SASL_SSL, sasl: {mechanism: SCRAM-SHA-256, username: u}}",
        "sasl.password (line 2): is required with the mechanism SCRAM-SHA-256\n"
        "  expected: username and password with SCRAM-SHA-256\n  next step: add password"),
    "PLAIN without a user": ("{protocol: SASL_SSL, sasl: {mechanism: PLAIN, password: hunter2}}",
        "sasl.username (line 2): is required with the mechanism PLAIN\n"
        "  expected: username and password with PLAIN\n  next step: add username"),
    "OAUTHBEARER without an endpoint": ("{protocol: SASL_SSL, sasl: {mechanism: OAUTHBEARER}}",
        "sasl.oauth (line 2): is required with the mechanism OAUTHBEARER\n"
        "  expected: oauth with OAUTHBEARER\n  next step: add oauth"),
    "an invalid token endpoint": ("{protocol: SASL_SSL, sasl: {mechanism: OAUTHBEARER, oauth: "
        "{token_endpoint: login, client_id: c, client_secret: s}}}",
        "sasl.oauth.token_endpoint (line 2): 'login' has the wrong format\n"
        "  expected: text that matches ^https?://[^\\s]+$"),
    "an unsupported mechanism": ("{protocol: SASL_SSL, sasl: {mechanism: GSSAPI, username: u}}",
        "sasl.mechanism (line 2): 'GSSAPI' is not a valid value\n"
        "  expected: 'PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER' or 'AWS_MSK_IAM'"),
    "content in addition to a file": (
        f"{{protocol: SSL, tls: {{ca_file: f, ca: {CERTIFICATE}}}}}",
        "tls.ca (line 2): is set together with ca_file\n"
        "  expected: ca_file or ca\n  next step: remove one of them"),
    "a file in place of content": ("{protocol: SSL, tls: {ca: ca.pem}}",
        "tls.ca (line 2): is not a list of PEM certificates\n"
        "  expected: -----BEGIN CERTIFICATE-----, and so on, without a key"),
    "a key among certificates": (
        f"{{protocol: SSL, tls: {{certificate: {CERTIFICATE[:-1]}PRIVATE KEY hunter2', key: k}}}}",
        "tls.certificate (line 2): is not a list of PEM certificates\n"
        "  expected: -----BEGIN CERTIFICATE-----, and so on, without a key"),
    "a certificate without its key": (f"{{protocol: SSL, tls: {{certificate: {CERTIFICATE}}}}}",
        "tls.certificate (line 2): is set without key\n"
        "  expected: key and certificate together, for mutual TLS\n  next step: add key"),
    "MSK without a region": ("{protocol: SASL_SSL, sasl: {mechanism: AWS_MSK_IAM}}",
        "sasl.aws_region (line 2): is required with the mechanism AWS_MSK_IAM\n"
        "  expected: aws_region with AWS_MSK_IAM\n  next step: add aws_region"),
    "a file in place of content, of a token endpoint": (
        "{protocol: SASL_SSL, sasl: {mechanism: OAUTHBEARER, oauth: {token_endpoint: 'http://i',"
        " client_id: c, client_secret: s, ca: i.pem}}}",
        "sasl.oauth.ca (line 2): is not a list of PEM certificates\n"
        "  expected: -----BEGIN CERTIFICATE-----, and so on, without a key"),
    "a list in place of a password": (
        "{protocol: SASL_SSL, sasl: {mechanism: PLAIN, username: u, password: [hunter2]}}",
        "sasl.password (line 2): the secret has the wrong type\n"
        "  expected: text; quote it if YAML reads it as another type"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("security", "expected"), SECURITY_MISTAKES.values(), ids=[*SECURITY_MISTAKES]
)
def test_invalid_security_is_reported(security: str, expected: str) -> None:
    text = f"""\
clusters:
  us: {{bootstrap_servers: "us:9092", security: {security}}}
  eu: {{bootstrap_servers: "eu:9092"}}
{FLOWS}"""
    assert one(text) == f"clusters.us.security.{expected}"


CLUSTER_MISTAKES = {
    "a server without a port": ('{bootstrap_servers: "us"}',
        ".bootstrap_servers (line 2): 'us' contains the invalid server 'us'\n"
        '  expected: host:port, or several separated by commas, as in "eu-1:9093,eu-2:9093"\n'
        "  next step: write IPv6 addresses in brackets, as in [::1]:9092"),
    "no server": ("{}", ".bootstrap_servers (line 2): is missing\n"
        "  expected: a value for this key\n  next step: docs/configuration.md lists every key"),
    "a client property that security sets": (
        '{bootstrap_servers: "us:1", client: {security.protocol: SSL}}',
        ".client['security.protocol'] (line 2): is set by security\n"
        "  expected: librdkafka properties that are not set elsewhere\n  next step: remove it"),
    "a client property that mm2slo needs": ( '{bootstrap_servers: "us:1", client: {group.id: g}}',
        ".client['group.id'] (line 2): is set by mm2slo itself\n"
        "  expected: librdkafka properties that are not set elsewhere\n  next step: remove it"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("cluster", "expected"), CLUSTER_MISTAKES.values(), ids=[*CLUSTER_MISTAKES]
)
def test_invalid_cluster_is_reported(cluster: str, expected: str) -> None:
    text = f'clusters:\n  us: {cluster}\n  eu: {{bootstrap_servers: "eu:1"}}\n{FLOWS}'
    assert one(text) == f"clusters.us{expected}"


EXPORTER_MISTAKES = {
    "an IPv6 address without brackets": ('listen: "::1:9469"',
        "listen (line 6): '::1:9469' is not a listen address\n"
        "  expected: host:port with a port up to 65535, as in 127.0.0.1:9469 or :9469\n"
        "  next step: write IPv6 addresses in brackets, as in [::1]:9469"),
    "a port out of range": ('listen: "localhost:70000"',
        "listen (line 6): 'localhost:70000' is not a listen address\n"
        "  expected: host:port with a port up to 65535, as in 127.0.0.1:9469 or :9469\n"
        "  next step: write IPv6 addresses in brackets, as in [::1]:9469"),
    "a poll interval of zero": ("poll_interval: 0",
        "poll_interval (line 6): 0 is too short\n  expected: a duration of at least 100ms"),
    "a poll interval that alerts take for an outage": ("poll_interval: 2m",
        "poll_interval (line 6): '2m' is too long\n  expected: a duration of at most 1m"),
    "too few reads of settings for an alert": ("topic_configs_interval: 8m",
        "topic_configs_interval (line 6): '8m' is too long\n  expected: a duration of at most 7m"),
    "text for the series limit": ("series_limit: many",
        "series_limit (line 6): 'many' has the wrong type\n  expected: a whole number"),
    "an unknown granularity": ("granularity: record",
        "granularity (line 6): 'record' is not a valid value\n"
        "  expected: 'flow', 'topic' or 'partition'"),
    "a timeline topic that would be replicated": ("timeline: {topic: watermarks}",
        "timeline.topic (line 6): 'watermarks' would be replicated by MirrorMaker 2\n"
        "  expected: a name such as mm2slo.watermarks.internal, which the default "
        "topics.exclude matches"),
    "an arrivals topic that would be replicated": ("timeline: {arrivals_topic: arrivals}",
        "timeline.arrivals_topic (line 6): 'arrivals' would be replicated by MirrorMaker 2\n"
        "  expected: a name such as mm2slo.arrivals.internal, which the default "
        "topics.exclude matches"),
}  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), EXPORTER_MISTAKES.values(), ids=[*EXPORTER_MISTAKES])
def test_invalid_exporter_setting_is_reported(line: str, expected: str) -> None:
    assert one(f"{CLUSTERS}{FLOWS}exporter: {{{line}}}\n") == f"exporter.{expected}"


FILE_MISTAKES = {
    "an empty file": ("", "the file: is empty\n  expected: a mapping with clusters and flows\n"
        "  next step: start from docs/reference-config.yaml"),
    "a list": ("- a\n",
        "the file: is not a mapping\n  expected: a mapping with clusters and flows\n"
        "  next step: start from docs/reference-config.yaml"),
    "a syntax error": ("clusters: {us: {password: hunter2\nflows: 'x\n",
        "the file (line 2, column 6): is not YAML: expected ',' or '}', but got ':'\n"
        "  expected: a YAML mapping with clusters and flows\n"
        "  next step: fix the syntax; quote text that contains : # * & % or starts with a brace"),
    "an unquoted password that looks like an alias": ("password: *hunter2\n",
        "the file (line 1, column 11): is not YAML: found undefined alias a value\n"
        "  expected: a YAML mapping with clusters and flows\n"
        "  next step: fix the syntax; quote text that contains : # * & % or starts with a brace"),
    "a duplicate key": (f"{CLUSTERS}{FLOWS}    slice: 15s\n    slice: 20s\n",
        "flows[0].slice (line 7): is a duplicate key\n  expected: each key once\n"
        "  next step: remove one of them"),
    "a flow as a default": (f"{CLUSTERS}{FLOWS}defaults: {{flow: us->eu}}\n",
        "defaults.flow (line 6): is not allowed in defaults\n"
        "  expected: flow in each entry of flows\n  next step: remove it"),
    "no flow": (f"{CLUSTERS}flows: []\n",
        "flows (line 4): a list has no entries\n  expected: at least one entry"),
    "an unknown section": (f"{CLUSTERS}{FLOWS}cluster: {{}}\n", "cluster (line 6): unknown key\n"
        "  expected: one of mm2, clusters, flows, exporter, audit, slo, alerting, report, logship,"
        " defaults\n  next step: did you mean 'clusters'?"),
    "a value that contains itself": (f"{CLUSTERS}{FLOWS}    policy: &p {{kind: *p}}\n",
        "flows[0].policy.kind (line 6): contains itself through an alias\n"
        "  expected: a value without cycles"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), FILE_MISTAKES.values(), ids=[*FILE_MISTAKES])
def test_invalid_file_is_reported(text: str, expected: str) -> None:
    assert one(text) == expected


def test_all_problems_are_reported_in_file_order() -> None:
    text = """\
clusters:
  us: {bootstrap_servers: "us"}
  eu: {bootstrap_servers: "eu:9092", security: {tls: {key_file: k}}}
flows:
  - flow: us->ue
    canary: {interval: soon}
    slice: 1s
  - flow: eu->eu
    engin: other
exporter: {listen: 9469}
"""
    with pytest.raises(ConfigError) as refused:
        load_config(text, name="etc/mm2slo.yaml")
    assert [(problem.path, problem.line) for problem in refused.value.problems] == [
        ("clusters.us.bootstrap_servers", 2),
        ("clusters.eu.security.tls", 3),
        ("clusters.eu.security.tls.key_file", 3),
        ("flows[0].flow", 5),
        ("flows[0].canary.interval", 6),
        ("flows[0].slice", 7),
        ("flows[1].flow", 8),
        ("flows[1].engin", 9),
        ("exporter.listen", 10),
    ]
    assert str(refused.value).startswith("etc/mm2slo.yaml: 9 problems\nclusters.us.boot")


def test_problem_in_defaults_is_reported_once_at_its_line() -> None:
    text = f"{CLUSTERS}defaults: {{slice: never}}\nflows: [{{flow: us->eu}}, {{flow: eu->us}}]\n"
    assert one(text).startswith("defaults.slice (line 4): 'never' is not a duration\n")
