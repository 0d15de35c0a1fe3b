"""The entry of `flows:` that a flow of MirrorMaker 2 gives."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.config.exporter_settings import PolicyKind
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.mm2_config.flow_settings import flow_section
from mm2slo_core.mm2_config.mirror_setup import ConnectorKind, Finding, FindingSeverity, MirrorFlow
from mm2slo_core.mm2_config.mm2_properties import read_properties

FILES = Path(__file__).parent / "mm2_files"
APACHE = "org.apache.kafka.connect.mirror"
OLD_EXCLUDE = [r".*[\-\.]internal", r".*\.replica", "__.*"]


def _flows(lines: str) -> tuple[MirrorFlow, ...]:
    text = "clusters = us, eu\nbootstrap.servers = x\nus->eu.enabled = true\n" + lines
    return read_properties("mm2.properties", text.encode()).flows


def _flow(lines: str) -> MirrorFlow:
    return _flows(lines)[0]


def _section(
    lines: str, version: str | None = None
) -> tuple[dict[str, object], tuple[Finding, ...]]:
    flow, *back = _flows(lines)
    section, findings = flow_section(flow, version, writer=back[0] if back else None)
    FlowConfig.model_validate(section)
    assert section.pop("flow") == "us->eu"
    return section, findings


@pytest.mark.parametrize(
    ("lines", "section"),
    [
        ("", {}),
        ("topics = a, b.*", {"topics": ["a", "b.*"]}),
        ("us->eu.topics =", {"topics": []}),
        ("topics = .*", {}),
        ("topics = a, (?i)b", {"topics": ["a", "(?i)b"]}),
        ("topics = x, (a,b)", {"topics": ["x|(a|b)"]}),
        ("groups = g1", {"groups": ["g1"]}),
        ("groups.exclude = console-consumer-.*, connect-.*, __.*", {}),
        ("config.properties.exclude = a\\\\.b", {"config_properties_exclude": [r"a\.b"]}),
        ("offset-syncs.topic.location = target", {"offset_syncs_location": "target"}),
        ("offset-syncs.topic.location = source", {}),
        ("us.consumer.isolation.level = read_committed", {"isolation": "read_committed"}),
        ("us->eu.consumer.isolation.level = read_committed", {"isolation": "read_committed"}),
        ("us->eu.consumer.isolation.level = read_committed\n"
         "us.consumer.isolation.level = read_uncommitted", {}),
        ("consumer.isolation.level = read_committed", {}),
        ("eu.consumer.isolation.level = read_committed", {}),
        ("eu.exactly.once.source.support = enabled", {"exactly_once": True}),
        ("eu.exactly.once.source.support = PREPARING", {}),
        ("us.exactly.once.source.support = enabled", {}),
        ("eu.offset.flush.interval.ms = 10000", {"offset_flush_interval": "10s"}),
        ("eu.offset.flush.interval.ms = 250", {"offset_flush_interval": "250ms"}),
        ("eu.offset.flush.interval.ms = 60000", {}),
        ("emit.checkpoints.interval.seconds = 5", {"checkpoint_interval": "5s"}),
        ("emit.checkpoints.interval.seconds = 60 ", {}),
        ("offset.lag.max = 1000", {"offset_lag_max": 1000}),
        ("offset.lag.max = -1", {"offset_lag_max": 0}),
        ("emit.heartbeats.interval.seconds = 3", {"heartbeat_interval": "3s"}),
        ("emit.heartbeats.interval.seconds = 1", {}),
        ("emit.heartbeats.interval.seconds = 0", {}),
        ("us->eu.emit.heartbeats.interval.seconds = 3", {}),
        ("emit.checkpoints.interval.seconds = -5", {}),
        ("offset.storage.topic = mm2-offsets.us.internal ", {}),
        ("topic.filter.class = " + APACHE + ".DefaultTopicFilter", {}),
        ("replication.policy.class = " + APACHE + ".DefaultReplicationPolicy", {}),
        ("replication.policy.class = " + APACHE + ".IdentityReplicationPolicy",
         {"policy": {"kind": "identity"}}),
        ("replication.policy.separator = _", {"policy": {"separator": "_"}}),
        ("replication.policy.separator = _\n"
         "replication.policy.internal.topic.separator.enabled = false",
         {"policy": {"separator": "_", "internal_separator": False}}),
        ("replication.policy.internal.topic.separator.enabled = false", {}),
        ("offset.storage.topic = o\neu.status.storage.topic = s",
         {"connect": {"offsets_topic": "o", "status_topic": "s"}}),
        ("us->eu.offsets.storage.topic = p\noffset.storage.topic = o",
         {"connect": {"offsets_topic": "p"}}),
        ("config.storage.topic = mm2-configs.us.internal", {}),
        ("us->eu.source.cluster.alias = us", {}),
        ("heartbeats.replication.enabled = true", {}),
        # Without a place in mm2slo.yaml.
        ("emit.checkpoints.enabled = false\ntasks.max = 4\nsync.group.offsets.enabled = true", {}),
    ],
)  # fmt: skip
def test_flow_section_setting_gives_key(lines: str, section: dict[str, object]) -> None:
    assert _section(lines) == (section, ())


@pytest.mark.parametrize(
    ("version", "lines", "section"),
    [
        ("3.9.1", "", {"topics_exclude": OLD_EXCLUDE}),
        ("4.0.0", "", {}),
        ("latest", "", {}),
        ("3.9.1", "topics.exclude = x", {"topics_exclude": ["x"]}),
        ("3.9.1", r"topics.exclude = mm2.*\\.internal, .*\\.replica, __.*", {}),
        ("3.0.0", "replication.policy.separator = _",
         {"kafka_version": "3.0.0", "topics_exclude": OLD_EXCLUDE,
          "policy": {"separator": "_", "internal_separator": False}}),
        ("3.9.1", "topics.blacklist = x", {"topics_exclude": ["x"]}),
        ("2.6.0", "groups.blacklist = x",
         {"kafka_version": "2.6.0", "topics_exclude": OLD_EXCLUDE, "groups_exclude": ["x"]}),
        ("3.7.1", "", {"topics_exclude": OLD_EXCLUDE}),
        # Keys that the version does not know.
        ("3.9.1", "heartbeats.replication.enabled = false", {"topics_exclude": OLD_EXCLUDE}),
        ("2.8.2", "offset-syncs.topic.location = target\neu.exactly.once.source.support = enabled",
         {"kafka_version": "2.8.2", "topics_exclude": OLD_EXCLUDE}),
        ("2.6.0", "topics.exclude = x",
         {"kafka_version": "2.6.0", "topics_exclude": OLD_EXCLUDE}),
    ],
)  # fmt: skip
def test_flow_section_version_decides_defaults(
    version: str, lines: str, section: dict[str, object]
) -> None:
    assert _section(lines, version) == (section, ())


@pytest.mark.parametrize(("version", "section"), [(None, {"topics_exclude": ["x"]}), ("4.1.0", {})])
def test_flow_section_old_key_is_reported_where_kafka_ignores_it(
    version: str | None, section: dict[str, object]
) -> None:
    found, (finding,) = _section("us->eu.topics.blacklist = x", version)
    assert found == section
    assert str(finding) == (
        "mm2.properties:4: warning: us->eu.topics.blacklist is the old name of topics.exclude"
        " (write topics.exclude) [old-key]"
    )


@pytest.mark.parametrize(
    ("class_name", "section"),
    [
        (APACHE + ".IdentityReplicationPolicy", {"policy": {"kind": "identity"}}),
        *(
            (name, {"policy": {"kind": "identity"}, "canary": {"carrier": "off"}})
            for name in (
                "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy",
                "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy",
            )
        ),
    ],
)
def test_flow_section_identity_class_of_any_origin_is_identity(
    class_name: str, section: dict[str, object]
) -> None:
    found, findings = _section(f"replication.policy.class = {class_name} ")
    assert found == section
    assert [each.check for each in findings] == ["no-heartbeats"] * ("canary" in section)


def test_flow_section_heartbeats_that_are_not_replicated_switch_off_canaries() -> None:
    section, (finding,) = _section("heartbeats.replication.enabled = False")
    assert section == {"canary": {"carrier": "off"}}
    assert (finding.check, finding.severity) == ("no-heartbeats", FindingSeverity.WARNING)
    assert "heartbeats.replication.enabled = False" in finding.what


@pytest.mark.parametrize(
    ("line", "check", "action"),
    [
        ("replication.policy.class = org.example.Rename", "custom-policy", "set policy of"),
        ("replication.policy.separator =", "custom-policy", "set policy of"),
        ("source.cluster.alias =", "custom-policy", "set policy of"),
        ("target.cluster.alias = dr", "custom-policy", "set policy of"),
        ("topic.filter.class = org.example.Some", "custom-topics", "set topics of"),
        ("group.filter.class = org.example.Some", "custom-groups", "set groups of"),
        ("topics = a[", "invalid-value", "correct topics"),
        (r"topics = \\p{L}+", "custom-topics", "set topics of"),
        ("groups.exclude = [a-z&&[^b]]", "custom-groups_exclude", "set groups_exclude of"),
        ("topics.exclude = a{1,3}", "invalid-value", "correct topics.exclude"),
        ("groups = (?<x>a), (?<x>b)", "invalid-value", "correct groups"),
        ("offset-syncs.topic.location = remote", "invalid-value", "correct offset-syncs"),
        ("us.consumer.isolation.level = <FILL>", "invalid-value", "correct us.consumer"),
        ("eu.exactly.once.source.support = true", "invalid-value", "correct eu.exactly"),
        ("eu.offset.flush.interval.ms = 1s", "invalid-value", "correct eu.offset.flush"),
        ("emit.checkpoints.interval.seconds = 5 s", "invalid-value", "correct emit.checkpoints"),
        ("offset.storage.topic = a b", "invalid-value", "correct offset.storage.topic"),
        ("emit.heartbeats.interval.seconds = ${TIME}", "invalid-value", "correct emit.heartb"),
    ],
)
def test_flow_section_unusable_setting_is_error_with_its_line(
    line: str, check: str, action: str
) -> None:
    section, (finding, *others) = _section(line)
    assert (finding.check, finding.severity, others) == (check, FindingSeverity.ERROR, [])
    assert finding.action.startswith(action)
    assert finding.origin.line == 4
    assert section == {}


def test_flow_section_identity_with_an_empty_separator_has_no_heartbeats() -> None:
    lines = f"replication.policy.class = {APACHE}.IdentityReplicationPolicy\n"
    section, (finding,) = _section(lines + "replication.policy.separator =")
    assert section == {
        "policy": {"kind": "identity", "separator": ""},
        "canary": {"carrier": "off"},
    }
    assert (finding.check, finding.origin.line) == ("no-heartbeats", 5)


def test_flow_section_identity_imitated_by_empty_texts_needs_a_policy() -> None:
    flow = read_properties("x", (FILES / "empty_separator.properties").read_bytes()).flows[0]
    section, findings = flow_section(flow, None)
    assert section == {"flow": "A->B"}
    assert [(each.check, each.origin.line) for each in findings] == [
        ("custom-policy", 6),
        ("custom-policy", 7),
        ("custom-policy", 8),
    ]


def test_flow_section_heartbeat_interval_is_that_of_their_writer() -> None:
    setup = read_properties("x", (FILES / "bidirectional.properties").read_bytes())
    there, back = setup.flows
    sections = [
        flow_section(there, None, writer=back)[0],
        flow_section(back, None, writer=there)[0],
    ]
    assert [section.get("heartbeat_interval") for section in sections] == ["5s", None]
    assert sections[0] == {
        "flow": "us-east->eu-west",
        "topics": [r"orders\..*", "payments"],
        "topics_exclude": [r".*\.tmp"],
        "isolation": "read_committed",
        "exactly_once": True,
        "offset_flush_interval": "10s",
        "checkpoint_interval": "30s",
        "heartbeat_interval": "5s",
    }
    assert FlowConfig.model_validate(sections[0]).policy.kind is PolicyKind.DEFAULT


def test_flow_section_old_key_in_connector_is_read_as_the_new_one() -> None:
    flow = _flow("us->eu.topics.blacklist = x")
    checkpoint = flow.connectors[ConnectorKind.CHECKPOINT]
    settings = {"groups.blacklist": checkpoint.settings["topics.exclude"]}
    connectors = {ConnectorKind.CHECKPOINT: replace(checkpoint, settings=settings)}
    section, _ = flow_section(replace(flow, connectors=connectors), "3.9.0")
    assert section["groups_exclude"] == ["x"]


def test_flow_section_connect_cluster_gives_names_of_topics_and_connectors() -> None:
    flow = _flow("topics = a")
    source = flow.connectors[ConnectorKind.SOURCE]
    on_connect = replace(
        flow,
        connectors={ConnectorKind.SOURCE: replace(source, name="us->eu.MirrorSourceConnector")},
        worker=replace(
            flow.worker, offsets_topic="connect-offsets", status_topic=None, configs_topic=None
        ),
    )
    assert flow_section(on_connect, None) == (
        {
            "flow": "us->eu",
            "topics": ["a"],
            "connect": {
                "offsets_topic": "connect-offsets",
                "source_connector": "us->eu.MirrorSourceConnector",
            },
        },
        (),
    )


@pytest.mark.property
@given(
    st.lists(st.sampled_from(["topics", "groups.exclude", "offset-syncs.topic.location",
                              "emit.checkpoints.interval.seconds", "replication.policy.class",
                              "replication.policy.separator", "offset.storage.topic"])),
    st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]), max_size=12),
    st.sampled_from([None, "2.4", "3.9.0", "4.1", "x"]),
)  # fmt: skip
def test_flow_section_any_value_gives_errors_or_a_valid_entry(
    keys: list[str], value: str, version: str | None
) -> None:
    lines = "".join(f"{key} = {value}\n" for key in keys)
    section, findings = flow_section(_flow(lines), version)
    if not findings and "connect" not in section:
        FlowConfig.model_validate(section)
