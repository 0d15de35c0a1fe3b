"""ACLs of least privilege for MirrorMaker 2, the exporter and the audit."""

import shlex

import pytest
import yaml
from acl_grants import implies
from generated_mirror_setups import EXAMPLE, setups
from hypothesis import given
from strimzi_schemas import needs_definitions, schema_errors

from mm2slo_core.kafka_permissions import AclGrant, Component
from mm2slo_core.mm2_config.mirror_setup import Form, MirrorSetup
from mm2slo_core.mm2_config.mm2_properties import read_properties
from mm2slo_core.mm2_config.rendered_setup import (
    acl_bindings,
    portable_setup,
    render_acls,
    render_kafka_users,
)

ALL: tuple[Component, ...] = ("mirrormaker2", "exporter", "audit")
PROPERTIES = b"""
clusters = us, eu
us.bootstrap.servers = us:9092
eu.bootstrap.servers = eu:9092
us->eu.enabled = true
us->eu.topics = orders
us->eu.groups = shop-.*
eu->us.emit.heartbeats.enabled = false
"""


def bindings(more: str, *components: Component) -> list[str]:
    """Bindings as `cluster kind name operations`; a prefix ends in `*`."""
    setup = portable_setup([read_properties("mm2", PROPERTIES + more.encode())])
    return [
        f"{cluster} {kind} {name}{'*' * prefixed} {'+'.join(operations)}"
        for cluster, kind, (name, prefixed), operations in acl_bindings(setup, components)
    ]


def test_mirrormaker_needs_what_its_connectors_and_workers_use() -> None:
    assert bindings("", "mirrormaker2") == [
        "eu cluster kafka-cluster Alter",
        "eu group us-mm2 Read",
        "eu topic heartbeats Create+Write",
        "eu topic mm2-configs.us.internal Create+DescribeConfigs+Read+Write",
        "eu topic mm2-offsets.us.internal Create+DescribeConfigs+Read+Write",
        "eu topic mm2-status.us.internal Create+DescribeConfigs+Read+Write",
        "eu topic us.checkpoints.internal Create+Read+Write",
        "eu topic us.heartbeats Alter+AlterConfigs+Create+Write",
        "eu topic us.orders Alter+AlterConfigs+Create+Write",
        "us cluster kafka-cluster Describe",
        "us group shop-* Describe",
        "us topic heartbeats DescribeConfigs+Read",
        "us topic mm2-offset-syncs.eu.internal Create+Read+Write",
        "us topic orders DescribeConfigs+Read",
    ]


COPIES = ("eu topic us.orders Alter+AlterConfigs", "eu topic us.heartbeats Alter+AlterConfigs")


@pytest.mark.parametrize(
    ("setting", "removed", "added"),
    [
        (
            "sync.topic.acls.enabled = false",
            {"us cluster kafka-cluster Describe", "eu cluster kafka-cluster Alter"},
            set(),
        ),
        ("us->eu.emit.heartbeats.enabled = false", {"eu topic heartbeats Create+Write"}, set()),
        (
            "us->eu.emit.checkpoints.enabled = false",
            {"eu topic us.checkpoints.internal Create+Read+Write", "us group shop-* Describe"},
            set(),
        ),
        (
            "sync.group.offsets.enabled = true",
            {f"{each}+Create+Write" for each in COPIES},
            {"eu group shop-* Read", *(f"{each}+Create+Read+Write" for each in COPIES)},
        ),
        (
            "eu.exactly.once.source.support = enabled",
            set(),
            {
                "eu transactional-id connect-cluster-us-mm2 Write",
                "eu transactional-id us-mm2-* Write",
            },
        ),
        ("eu.group.id = mine", {"eu group us-mm2 Read"}, {"eu group mine Read"}),
        (
            "us->eu.offset-syncs.topic.location = target",
            {"us topic mm2-offset-syncs.eu.internal Create+Read+Write"},
            {"eu topic mm2-offset-syncs.us.internal Create+Read+Write"},
        ),
    ],
)
def test_settings_of_mirrormaker_change_its_permissions(
    setting: str, removed: set[str], added: set[str]
) -> None:
    before, after = set(bindings("", "mirrormaker2")), set(bindings(setting, "mirrormaker2"))
    assert (before - after, after - before) == (removed, added)


def test_herder_of_heartbeats_needs_its_worker_only() -> None:
    more = "us->eu.emit.heartbeats.enabled = false\neu->us.emit.heartbeats.enabled = true"
    found = set(bindings(more, "mirrormaker2")) - set(bindings("", "mirrormaker2"))
    assert found == {
        "us group eu-mm2 Read",
        "us topic heartbeats Create+DescribeConfigs+Read+Write",
        *(
            f"us topic mm2-{kind}.eu.internal Create+DescribeConfigs+Read+Write"
            for kind in ("configs", "offsets", "status")
        ),
    }


def test_one_principal_needs_nothing_twice() -> None:
    both = bindings("", "exporter", "audit")
    assert "eu topic us.orders DescribeConfigs+Read" in both
    assert not [line for line in both if "us.orders" in line and "Describe+" in line]


def test_lines_are_commands_of_kafka() -> None:
    setup = read_properties("mm2", PROPERTIES.replace(b"= orders", b"= .*"))
    texts, findings = render_acls([setup], {"User:mm2": ["mirrormaker2"], "User:o'x": ["audit"]})
    lines = [shlex.split(line) for line in texts["acls.sh"].splitlines()]
    assert findings == []
    start = ["kafka-acls.sh", "--bootstrap-server", "eu:9092", "--command-config"]
    assert lines[0] == [
        *start, "admin-eu.properties", "--add", "--allow-principal", "User:mm2",
        "--operation", "Alter", "--cluster",
    ]  # fmt: skip
    wanted = ["--operation", "DescribeConfigs", "--operation", "Read", "--topic"]
    assert [each[8:] for each in lines if each[7] == "User:o'x" and "DescribeConfigs" in each] == [
        [*wanted, "us.", "--resource-pattern-type", "prefixed"],
        [*wanted, "*"],
    ]


@needs_definitions
def test_kafka_users_are_valid_and_authenticate_as_the_cluster_demands() -> None:
    texts, findings = render_kafka_users(
        [read_properties("mm2", EXAMPLE)], {"User:mm2": ["mirrormaker2"]}
    )
    assert findings == []
    assert list(texts) == ["user-mm2-ap.yaml", "user-mm2-eu.yaml", "user-mm2-us.yaml"]
    assert [error for text in texts.values() for error in schema_errors(text)] == []
    users = {name: yaml.safe_load(text) for name, text in texts.items()}
    assert users["user-mm2-eu.yaml"]["spec"]["authentication"] == {"type": "tls"}
    assert users["user-mm2-us.yaml"]["spec"]["authentication"] == {"type": "scram-sha-512"}
    assert users["user-mm2-us.yaml"]["metadata"] == {
        "name": "mm2", "labels": {"strimzi.io/cluster": "us"}
    }  # fmt: skip
    acls = users["user-mm2-us.yaml"]["spec"]["authorization"]["acls"]
    assert acls[0] == {"resource": {"type": "cluster"}, "operations": ["Describe"]}
    assert acls[-1] == {
        "resource": {"type": "topic", "name": "payments", "patternType": "literal"},
        "operations": ["DescribeConfigs", "Read"],
    }


def test_unknown_policy_is_an_error() -> None:
    more = b"replication.policy.class = com.example.Policy\n"
    _, findings = render_acls([read_properties("mm2", PROPERTIES + more)], {"User:a": ["audit"]})
    assert [each.check for each in findings if each.severity == "error"] == ["custom-policy"]


@given(setups(Form.CONNECT_JSON))
def test_no_binding_is_implied_by_another(setup: MirrorSetup) -> None:
    grants = {
        AclGrant(cluster, kind, pattern, operation)
        for cluster, kind, pattern, operations in acl_bindings(portable_setup([setup]), ALL)
        for operation in operations
    }
    assert not [g for g in grants if any(implies(each, g) for each in grants - {g})]
