"""Units that can be audited, with fake clusters."""

from typing import cast

import pytest
from fake_clusters import ListedCluster as Cluster

from mm2slo_audit.scope import reachable_units
from mm2slo_audit.scope.reachable_units import ReachableUnits
from mm2slo_core.audit.audit_scope import NotAuditedReason
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import ErrorKind

CLUSTERS = """\
clusters:
  us: {bootstrap_servers: "us:1"}
  ap: {bootstrap_servers: "ap:1"}
  eu: {bootstrap_servers: "eu:1"}
"""
BOTH = "flows: [{flow: us->eu}, {flow: ap->eu}]\n"
KEEPING_NAMES = f"defaults: {{policy: {{kind: identity}}}}\n{BOTH}"


RENAMED = {"transforms": "a", "transforms.a.type": "RegexRouter"}
EXACT = RENAMED | {"transforms.a.regex": r"us\.(.*)", "transforms.a.replacement": "new.$1"}


@pytest.fixture(autouse=True)
def running(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, str]]:
    """Transforms of running connectors by flow; the others run as configured."""
    transforms: dict[str, dict[str, str]] = {}

    def use(flow: FlowConfig, _client: object) -> tuple[FlowConfig, tuple[str, ...]]:
        if flow.label not in transforms:
            return flow, ()
        return flow.model_copy(update={"transforms": transforms[flow.label]}), ("named",)

    monkeypatch.setattr(reachable_units, "use_running_settings", use)
    return transforms


def find(
    flows: str, clusters: dict[str, Cluster], *labels: str, topics: tuple[str, ...] = ()
) -> ReachableUnits:
    config = load_config(CLUSTERS + flows)
    clients = cast("dict[str, ClusterClient]", clusters)
    return ReachableUnits.find(config, config.select(labels), topics, clients)


def reasons(found: ReachableUnits) -> dict[str, NotAuditedReason]:
    return {each.target_topic: each.reason for each in found.not_audited}


def test_find_unit_has_partition_counts_of_both_sides() -> None:
    found = find(
        BOTH,
        {"us": Cluster({"a": 3}), "ap": Cluster({"a": 2}), "eu": Cluster({"us.a": 4, "ap.a": 2})},
        "us->eu",
    )
    assert [(each.unit.topic, each.partitions, each.source_partitions) for each in found.units] == [
        ("us.a", 4, (3,))
    ]
    assert found.not_audited == ()


def test_find_missing_source_or_target_topic_is_not_audited() -> None:
    found = find(
        BOTH, {"us": Cluster({"a": 1}), "ap": Cluster({}), "eu": Cluster({"us.gone": 1})}, "us->eu"
    )
    assert found.units == ()
    assert reasons(found) == {
        "us.a": NotAuditedReason.TARGET_MISSING,
        "us.gone": NotAuditedReason.SOURCE_MISSING,
    }
    assert found.not_audited[0].detail == "us.a does not exist on eu; it is the copy of a on us"


def test_find_internal_and_foreign_topics_have_no_missing_source() -> None:
    target = {"us.heartbeats": 1, "us.checkpoints.internal": 1, "local": 1, "eu.x": 1}
    found = find(BOTH, {"us": Cluster({}), "ap": Cluster({}), "eu": Cluster(target)}, "us->eu")
    assert reasons(found) == {}


def test_find_unauthorized_copy_is_not_audited() -> None:
    found = find(
        BOTH,
        {"us": Cluster({"a": 1}), "ap": Cluster({}), "eu": Cluster({}, hidden="us.a")},
        "us->eu",
    )
    assert reasons(found) == {"us.a": NotAuditedReason.AUTHORIZATION}


def test_find_unreachable_source_excludes_only_its_flow() -> None:
    found = find(
        BOTH,
        {
            "us": Cluster(ErrorKind.UNREACHABLE),
            "ap": Cluster({"a": 1}),
            "eu": Cluster({"ap.a": 1}),
        },
    )
    assert [each.unit.topic for each in found.units] == ["ap.a"]
    assert reasons(found) == {"us->eu": NotAuditedReason.UNREACHABLE}


def test_find_without_reachable_cluster_raises_kafka_error() -> None:
    clusters = {
        "us": Cluster(ErrorKind.UNREACHABLE), "ap": Cluster({}), "eu": Cluster({}),
    }  # fmt: skip
    with pytest.raises(UserError) as raised:
        find(BOTH, clusters, "us->eu")
    assert str(raised.value) == (
        "listing topics on cluster us failed (unreachable): no answer; "
        "check bootstrap_servers, the network, and that the brokers are up"
    )


def test_find_shared_target_with_unreachable_source_is_not_audited() -> None:
    found = find(
        KEEPING_NAMES,
        {"us": Cluster(ErrorKind.TIMEOUT), "ap": Cluster({"a": 1}), "eu": Cluster({"a": 1})},
        "ap->eu",
    )
    assert found.units == ()
    assert reasons(found) == {"a": NotAuditedReason.UNREACHABLE}
    assert found.not_audited[0].detail == (
        "us->eu may feed it as well, and its source is unreachable"
    )


def test_find_names_copies_by_the_transforms_of_the_running_connector(
    running: dict[str, dict[str, str]],
) -> None:
    running["us->eu"] = EXACT
    clusters = {"us": Cluster({"a": 1}), "ap": Cluster({}), "eu": Cluster({"new.a": 1})}
    found = find(BOTH, clusters, "us->eu")
    assert [each.unit.topic for each in found.units] == ["new.a"]
    assert reasons(found) == {}
    assert found.notes == ("named",)


@pytest.mark.parametrize(("topics", "unnamed"), [((), {"a", "b"}), (("a",), {"a"})])
def test_find_names_topics_whose_copy_has_no_known_name(
    running: dict[str, dict[str, str]], topics: tuple[str, ...], unnamed: set[str]
) -> None:
    running["us->eu"] = {"transforms": "a", "transforms.a.type": "com.example.Router"}
    clusters = {
        "us": Cluster({"a": 1, "b": 1}),
        "ap": Cluster({"c": 1}),
        "eu": Cluster({"ap.c": 1}),
    }
    found = find(BOTH, clusters, "us->eu", topics=topics)
    assert found.units == ()
    assert reasons(found) == dict.fromkeys(unnamed, NotAuditedReason.COPY_UNKNOWN)
    assert found.not_audited[0].detail == (
        "the name of the copy of a on eu is not known: the transforms of MirrorSourceConnector"
        " decide it"
    )
