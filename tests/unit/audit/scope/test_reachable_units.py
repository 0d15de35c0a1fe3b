"""Which units can be audited at all, by clusters that answer as they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from told_clusters import ListedCluster as Cluster

from mm2slo_audit.scope.reachable_units import ReachableUnits
from mm2slo_core.audit.audit_scope import NotAuditedReason
from mm2slo_core.config import load_config
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.kafka_errors import ErrorKind

if TYPE_CHECKING:
    from mm2slo_kafka.cluster_client import ClusterClient

CLUSTERS = """\
clusters:
  us: {bootstrap_servers: "us:1"}
  ap: {bootstrap_servers: "ap:1"}
  eu: {bootstrap_servers: "eu:1"}
"""
BOTH = "flows: [{flow: us->eu}, {flow: ap->eu}]\n"
KEEPING_NAMES = f"defaults: {{policy: {{kind: identity}}}}\n{BOTH}"


def find(
    flows: str, clusters: dict[str, Cluster], *labels: str, topics: tuple[str, ...] = ()
) -> ReachableUnits:
    config = load_config(CLUSTERS + flows)
    clients = cast("dict[str, ClusterClient]", clusters)
    return ReachableUnits.find(config, config.select(labels), topics, clients)


def reasons(reach: ReachableUnits) -> dict[str, NotAuditedReason]:
    return {each.target_topic: each.reason for each in reach.not_audited}


def test_a_unit_has_the_partitions_of_both_sides() -> None:
    reach = find(
        BOTH,
        {"us": Cluster({"a": 3}), "ap": Cluster({"a": 2}), "eu": Cluster({"us.a": 4, "ap.a": 2})},
        "us->eu",
    )
    assert [(each.unit.topic, each.partitions, each.source_partitions) for each in reach.units] == [
        ("us.a", 4, (3,))
    ]
    assert reach.not_audited == ()


def test_a_copy_without_its_source_and_a_source_without_its_copy() -> None:
    reach = find(
        BOTH, {"us": Cluster({"a": 1}), "ap": Cluster({}), "eu": Cluster({"us.gone": 1})}, "us->eu"
    )
    assert reach.units == ()
    assert reasons(reach) == {
        "us.a": NotAuditedReason.TARGET_MISSING,
        "us.gone": NotAuditedReason.SOURCE_MISSING,
    }
    assert reach.not_audited[0].detail == "there is no us.a on eu, the copy of a on us"


def test_internal_copies_and_topics_of_others_miss_no_source() -> None:
    target = {"us.heartbeats": 1, "us.checkpoints.internal": 1, "local": 1, "eu.x": 1}
    reach = find(BOTH, {"us": Cluster({}), "ap": Cluster({}), "eu": Cluster(target)}, "us->eu")
    assert reasons(reach) == {}


def test_a_copy_that_may_not_be_seen() -> None:
    reach = find(
        BOTH,
        {"us": Cluster({"a": 1}), "ap": Cluster({}), "eu": Cluster({}, hidden="us.a")},
        "us->eu",
    )
    assert reasons(reach) == {"us.a": NotAuditedReason.AUTHORIZATION}


def test_a_source_that_does_not_answer_takes_its_own_flow_with_it() -> None:
    reach = find(
        BOTH,
        {
            "us": Cluster(ErrorKind.UNREACHABLE),
            "ap": Cluster({"a": 1}),
            "eu": Cluster({"ap.a": 1}),
        },
    )
    assert [each.unit.topic for each in reach.units] == ["ap.a"]
    assert reasons(reach) == {"us->eu": NotAuditedReason.UNREACHABLE}


def test_nothing_that_answers_is_an_error_with_kafkas_words() -> None:
    clusters = {
        "us": Cluster(ErrorKind.UNREACHABLE), "ap": Cluster({}), "eu": Cluster({}),
    }  # fmt: skip
    with pytest.raises(UserError) as refused:
        find(BOTH, clusters, "us->eu")
    assert str(refused.value) == (
        "listing topics on cluster us failed (unreachable): no answer; "
        "check bootstrap_servers, the network, and that the brokers are up"
    )


def test_a_shared_target_is_not_judged_without_one_of_its_sources() -> None:
    reach = find(
        KEEPING_NAMES,
        {"us": Cluster(ErrorKind.TIMEOUT), "ap": Cluster({"a": 1}), "eu": Cluster({"a": 1})},
        "ap->eu",
    )
    assert reach.units == ()
    assert reasons(reach) == {"a": NotAuditedReason.UNREACHABLE}
    assert reach.not_audited[0].detail == (
        "us->eu may feed it as well, and its source could not be asked"
    )
