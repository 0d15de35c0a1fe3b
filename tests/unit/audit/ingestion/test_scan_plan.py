"""Scans, the connector's options, and explanations of read errors."""

from dataclasses import replace
from pathlib import Path

import pytest

from mm2slo_audit.scope.scope_assembly import Isolations
from mm2slo_audit.spark.connector_rows import connector_options
from mm2slo_audit.spark.scan_plan import (
    FlowPlace,
    ScanRange,
    group_by_flows,
    plan_scans,
    split_ranges,
)
from mm2slo_audit.spark.spark_errors import explain_read_error, extract_root_cause
from mm2slo_core.audit.audit_scope import (
    FlowScope,
    NotAuditedReason,
    SourcePartition,
    TargetPartition,
    TimestampType,
    UnitScope,
    Window,
)
from mm2slo_core.audit.fingerprint import Identity
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.partition_offsets import Isolation

US_EU, AP_EU = Flow("us", "eu"), Flow("ap", "eu")
PLAIN = Isolations(("read_uncommitted",), "read_uncommitted")


def unit(
    index: int,
    target: str,
    *sources: tuple[Flow, str, tuple[int, int]],
    identity: Identity | None = None,
    read: tuple[int, int] = (0, 10),
) -> UnitScope:
    return UnitScope(
        index=index,
        target_topic=target,
        flows=tuple(
            FlowScope(flow, topic, (SourcePartition(0, 0, start, end, None),))
            for flow, topic, (start, end) in sources
        ),
        partitions=(TargetPartition(0, 0, *read), TargetPartition(1, 0, 7, 7)),
        window=Window(0, 1),
        identity=identity or Identity(),
    )


def test_plan_scans_combines_topics_and_skips_empty_partitions() -> None:
    units = [
        unit(0, "us.a", (US_EU, "a", (3, 9))),
        unit(1, "us.b", (US_EU, "b", (5, 5)), read=(2, 4)),
    ]
    source, target = plan_scans(units, [PLAIN, PLAIN])
    assert (source.cluster, source.side, source.offsets) == ("us", Side.SOURCE, 6)
    assert source.ranges == (ScanRange("a", 0, 3, 9),)
    assert (target.cluster, target.side, target.offsets) == ("eu", Side.TARGET, 12)
    assert target.ranges == (ScanRange("us.a", 0, 0, 10), ScanRange("us.b", 0, 2, 4))
    assert target.places == {"us.a": FlowPlace(0, 0), "us.b": FlowPlace(1, 0)}


def test_split_ranges_has_equal_parts_of_limited_size() -> None:
    assert list(split_ranges((ScanRange("a", 0, 3, 5), ScanRange("a", 1, 10, 17)), 3)) == [
        ScanRange("a", 0, 3, 5),
        ScanRange("a", 1, 10, 12),
        ScanRange("a", 1, 12, 14),
        ScanRange("a", 1, 14, 17),
    ]


def test_plan_scans_empty_side_has_no_scan() -> None:
    assert [each.side for each in plan_scans([unit(0, "t", (US_EU, "a", (4, 4)))], [PLAIN])] == [
        Side.TARGET
    ]


def test_plan_scans_separates_identities_and_isolation_levels() -> None:
    committed: Isolation = "read_committed"
    units = [
        unit(0, "us.a", (US_EU, "a", (0, 1))),
        unit(1, "us.b", (US_EU, "b", (0, 1)), identity=Identity(headers=False)),
        unit(2, "us.c", (US_EU, "c", (0, 1))),
    ]
    found = list(plan_scans(units, [PLAIN, PLAIN, Isolations((committed,), "read_uncommitted")]))
    assert [(each.side, sorted(each.places)) for each in found] == [
        (Side.SOURCE, ["a"]),
        (Side.TARGET, ["us.a", "us.c"]),
        (Side.SOURCE, ["b"]),
        (Side.TARGET, ["us.b"]),
        (Side.SOURCE, ["c"]),
    ]
    assert [each.isolation for each in found][-1] == committed


def test_plan_scans_separates_timestamp_types() -> None:
    plain = unit(0, "us.a", (US_EU, "a", (0, 1)))
    stamped = replace(
        unit(1, "us.b", (US_EU, "b", (0, 1)), identity=Identity().without_timestamp()),
        target_time=TimestampType.LOG_APPEND,
    )
    found = list(plan_scans([plain, stamped], [PLAIN, PLAIN]))
    assert [(each.side, each.timestamps) for each in found] == [
        (Side.SOURCE, TimestampType.CREATE),
        (Side.TARGET, TimestampType.CREATE),
        (Side.SOURCE, TimestampType.CREATE),
        (Side.TARGET, TimestampType.LOG_APPEND),
    ]
    assert [each.compares_timestamps for each in found] == [False, True, False, False]


def test_plan_scans_topic_of_two_units_is_read_twice() -> None:
    units = [unit(0, "x", (US_EU, "a", (0, 5))), unit(1, "y", (US_EU, "a", (2, 9)))]
    sources = [each for each in plan_scans(units, [PLAIN, PLAIN]) if each.side is Side.SOURCE]
    assert [(each.places["a"], each.offsets) for each in sources] == [
        (FlowPlace(0, 0), 5),
        (FlowPlace(1, 0), 7),
    ]


def test_group_by_flows_groups_units_by_feeding_flows() -> None:
    shared = unit(1, "t", (US_EU, "t", (0, 1)), (AP_EU, "t", (0, 1)))
    found = group_by_flows([unit(0, "us.a", (US_EU, "a", (0, 1))), shared])
    assert {name: [each.index for each in units] for name, units in found.items()} == {
        "ap-to-eu+us-to-eu": [1],
        "us-to-eu": [0],
    }
    reads = plan_scans([shared], [Isolations(("read_uncommitted",) * 2, "read_uncommitted")] * 2)
    places = {each.cluster: each.places["t"] for each in reads}
    assert places == {"us": FlowPlace(1, 0), "ap": FlowPlace(1, 1), "eu": FlowPlace(1, 0)}


SECURE = """\
clusters:
  us:
    bootstrap_servers: "us:9093"
    security:
      protocol: SASL_SSL
      sasl: {mechanism: SCRAM-SHA-512, username: app, password: hunter2}
      tls: {ca_file: CA_FILE}
  eu: {bootstrap_servers: "eu:9092"}
flows: [{flow: us->eu}]
"""


def test_connector_options_pass_ca_certificates_as_text(tmp_path: Path) -> None:
    ca_file = tmp_path / "ca.pem"
    ca_file.write_text("-----BEGIN CERTIFICATE-----\n", encoding="ascii")
    config = load_config(SECURE.replace("CA_FILE", str(ca_file)))
    options = connector_options(config.clusters["us"])
    assert options["bootstrap.servers"] == "us:9093"
    assert options["security.protocol"] == "SASL_SSL"
    assert options["ssl.truststore.certificates"] == "-----BEGIN CERTIFICATE-----\n"
    assert "ssl.truststore.location" not in options
    assert "hunter2" in options["sasl.jaas.config"]
    assert connector_options(config.clusters["eu"]) == {
        "bootstrap.servers": "eu:9092",
        "security.protocol": "PLAINTEXT",
    }


def test_connector_options_contain_client_settings_and_certificates_as_text(
    tmp_path: Path,
) -> None:
    for name in ("chain", "key"):
        (tmp_path / name).write_text(name, encoding="ascii")
    text = SECURE.replace(
        "{ca_file: CA_FILE}",
        f"{{certificate_file: {tmp_path}/chain, key_file: {tmp_path}/key}}\n"
        "    client: {socket.timeout.ms: 9000, fetch.wait.max.ms: 200, ssl.crl.location: c.pem}",
    )
    options = connector_options(load_config(text).clusters["us"])
    assert {name for name in options if "sasl" not in name} == {
        "bootstrap.servers",
        "security.protocol",
        "request.timeout.ms",
        "fetch.max.wait.ms",
        "ssl.endpoint.identification.algorithm",
        "ssl.keystore.type",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
    }
    assert options["request.timeout.ms"] == "9000"
    assert options["fetch.max.wait.ms"] == "200"
    assert options["ssl.keystore.certificate.chain"] == "chain"
    assert options["ssl.keystore.key"] == "key"


def test_connector_options_audience_raises_error() -> None:
    oauth = "{token_endpoint: https://i, client_id: c, client_secret: s, audience: kafka}"
    text = SECURE.replace(
        "{mechanism: SCRAM-SHA-512, username: app, password: hunter2}",
        f"{{mechanism: OAUTHBEARER, oauth: {oauth}}}",
    ).replace("      tls: {ca_file: CA_FILE}\n", "")
    with pytest.raises(UserError, match="cannot request the audience"):
        connector_options(load_config(text).clusters["us"])


def test_connector_options_unreadable_ca_file_raises_error() -> None:
    config = load_config(SECURE.replace("CA_FILE", "no/such/ca.pem"))
    with pytest.raises(UserError, match=r"^no/such/ca\.pem cannot be read \(FileNotFoundError\)"):
        connector_options(config.clusters["us"])


SPARK_OUTPUT = """\
Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times
org.apache.spark.SparkException: Could not poll
\tat org.apache.spark.sql.kafka010.X(Y.scala:1)
Caused by: org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized: [secret]
"""

ENCRYPTED_KEY = """\
Caused by: org.apache.kafka.common.KafkaException: Invalid PEM keystore configs
Caused by: java.security.NoSuchAlgorithmException: PBES2 SecretKeyFactory not available
"""


def test_explain_read_error_maps_exceptions_to_reasons() -> None:
    denied = explain_read_error("us.a", SPARK_OUTPUT)
    assert denied.reason is NotAuditedReason.AUTHORIZATION
    assert denied.detail.startswith("Spark's user is not authorized to read the topic")
    encrypted = explain_read_error("us.a", ENCRYPTED_KEY)
    assert encrypted.reason is NotAuditedReason.UNREACHABLE
    assert encrypted.detail.startswith("Java cannot decrypt the private key")
    far = explain_read_error("us.a", "Caused by: java.lang.ArithmeticException: long overflow\n")
    assert far.reason is NotAuditedReason.FAILED
    assert "a record with a timestamp after the year 294247" in far.detail
    other = explain_read_error("us.a", "java.lang.IllegalStateException: odd\nmore")
    assert other.reason is NotAuditedReason.FAILED
    assert other.detail == "reading it failed: IllegalStateException: odd"
    assert extract_root_cause("plain text\nand more") == "plain text"
    assert extract_root_cause("") == "Spark gave no reason"
