"""`mm2slo check --connect` against brokers with TLS, SCRAM and ACLs."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from acl_grants import least_grants
from transactional_traffic import consume_and_commit

from mm2slo_cli.check_connect import diagnose
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.kafka_permissions import AclGrant, CheckResult, FlowResources
from mm2slo_core.replication_policy import DefaultPolicy, internal_topics
from mm2slo_core.topology import Flow
from mm2slo_kafka.cluster_inspection import ClusterInspection
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.lab_topology import ADMIN, APP, User
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("secured-lab")]

FLOW, POLICY, TOPIC, GROUP = Flow("us", "eu"), DefaultPolicy(), "orders", "shop"
OWN_TOPICS = tuple(f"mm2slo.{own}.internal" for own in ("state", "watermarks", "arrivals"))
RESOURCES = FlowResources(
    FLOW,
    POLICY,
    (TOPIC,),
    (GROUP,),
    internal_topics(FLOW, POLICY),
    canary_topic="heartbeats",
    leases_instance=True,
    state_topic=OWN_TOPICS[0],
    timeline_topic=OWN_TOPICS[1],
    arrivals_topic=OWN_TOPICS[2],
)
GRANTS = least_grants(RESOURCES, "exporter", "audit")


def arguments(grant: AclGrant) -> tuple[str, str, str]:
    """The grant for `DataAdmin.grant`; of a prefix, the name that is checked."""
    name = grant.pattern.name + "mm2slo" * grant.pattern.prefixed
    operation = "DESCRIBE_CONFIGS" if grant.operation == "DescribeConfigs" else grant.operation
    return grant.kind.upper(), name, operation.upper()


@pytest.fixture(scope="module")
def secured(secured_lab: Lab) -> Iterator[Lab]:
    us, eu = secured_lab.cluster("us"), secured_lab.cluster("eu")
    us.admin.create_topic(TOPIC, 1)
    produce(us.librdkafka(), TOPIC, Load(10))
    consume_and_commit(us.librdkafka(), TOPIC, GROUP, 10)
    # The exporter creates them; without them, whether they may be written is unknown.
    for own in OWN_TOPICS:
        eu.admin.create_topic(own, 1)
    for grant in GRANTS:
        secured_lab.cluster(grant.cluster).admin.grant(APP.name, *arguments(grant))
    secured_lab.mm2.wait_mirroring()
    wait_for(lambda: f"us.{TOPIC}" in eu.admin.topics(), "the copy of orders")
    yield secured_lab
    for own in OWN_TOPICS:
        eu.admin.delete_topic(own)
    for grant in GRANTS:
        secured_lab.cluster(grant.cluster).admin.revoke(APP.name, *arguments(grant))


def check(lab: Lab, user: User = APP, *, allow_writes: bool = False) -> list[CheckResult]:
    flow = {"topics": [TOPIC], "groups": [GROUP]}
    text = lab.config_yaml(flow=flow, user=user)
    config = load_config(text, name="mm2slo.yaml")
    with ExitStack() as clients:
        clusters = {
            alias: ClusterInspection(alias, cluster.librdkafka_properties())
            for alias, cluster in config.clusters.items()
        }
        for cluster in clusters.values():
            clients.enter_context(cluster.client)
        return list(diagnose(config, clusters, {}, allow_writes=allow_writes))


def to_fix(results: list[CheckResult]) -> list[tuple[str, str, str]]:
    return [(each.where, each.check, each.finding) for each in results if each.state == "fix"]


def test_printed_grants_suffice(secured: Lab) -> None:
    results = check(secured)
    # MirrorMaker 2 replicates `.*`; the configuration names one topic and one group.
    assert to_fix(results) == [
        ("us->eu", "settings", "topics is 'orders', but MirrorMaker 2 runs with '.*'"),
        ("us->eu", "settings", "groups is 'shop', but MirrorMaker 2 runs with '.*'"),
    ]
    by_check = {(each.where, each.check): each for each in results}
    assert by_check["us", "certificate-expiry"].state == "ok"
    assert by_check["us", "authentication"].finding == "1 broker accepts SCRAM-SHA-512"
    unknown = {(each.where, each.check) for each in results if each.state == "unknown"}
    assert unknown == {("us", "clock"), ("eu", "clock"), ("us->eu", "readers")}


@pytest.mark.long
@pytest.mark.parametrize(
    "grant",
    [grant for grant in GRANTS if grant.operation != "Create"],  # needed for missing topics only
    ids=lambda grant: f"{grant.cluster}-{grant.pattern.name}-{grant.operation}",
)
def test_each_missing_permission_is_reported_by_name(secured: Lab, grant: AclGrant) -> None:
    admin = secured.cluster(grant.cluster).admin
    kind, name, operation = arguments(grant)
    assert admin.revoke(APP.name, kind, name, operation) == 1
    expected = f"{grant.operation} on {grant.kind} {name}"
    try:
        wait_for(
            lambda: any(expected in finding for _, _, finding in to_fix(check(secured))),
            f"{expected!r} to be reported",
        )
    finally:
        admin.grant(APP.name, kind, name, operation)


def test_wrong_password_is_an_authentication_failure(secured: Lab) -> None:
    results = check(secured, User(APP.name, "wrong-horse-battery"))
    found = [(each.where, each.check, each.state) for each in results if each.state != "ok"]
    assert sorted(found) == [
        ("eu", "authentication", "fix"),
        ("us", "authentication", "fix"),
        ("us->eu", "flow", "unknown"),
    ]
    assert not any("wrong-horse" in each.finding for each in results)


def test_readers_of_the_source_are_compared_and_clocks_measured(secured: Lab) -> None:
    us, eu = secured.cluster("us"), secured.cluster("eu")
    for kind, name in (("TOPIC", TOPIC), ("GROUP", GROUP)):
        us.admin.grant("reader", kind, name, "READ")

    def readers() -> list[CheckResult]:
        results = check(secured, ADMIN, allow_writes=True)
        clocks = [each.state for each in results if each.check == "clock"]
        assert clocks == ["ok", "ok"]
        return [r for r in results if r.check == "readers" and "User:reader" in r.finding]

    denied = "after a failover, User:reader may not Read topic us.orders, group shop"
    assert [each.finding for each in readers()] == [denied]
    eu.admin.grant("reader", "TOPIC", f"us.{TOPIC}", "READ")
    eu.admin.grant("reader", "GROUP", GROUP, "READ")
    wait_for(lambda: [each.state for each in readers()] == ["ok"], "equal permissions")
