"""Policies and canary settings of a flow, from its configuration."""

from typing import Any

import pytest
from flow_observations import flow_config

from mm2slo_core.config.config_loader import load_config
from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.mm2_config.running_settings import RunningConnectors
from mm2slo_core.records.connect_records import ConnectorConfig
from mm2slo_core.replication_policy import DefaultPolicy, IdentityPolicy, PlacedTopic
from mm2slo_core.topic_selection import TopicRole, replication_policy
from mm2slo_exporter.flow_plan import FlowPolicies, canary_spec
from mm2slo_exporter.service.flow_manager import shares_target

TOPIC, HEARTBEATS, OFF = CanaryCarrier.TOPIC, CanaryCarrier.HEARTBEATS, CanaryCarrier.OFF


def rules(**flow: Any) -> FlowPolicies:
    return FlowPolicies(flow_config(**flow))


def test_replication_policy_follows_flow_config() -> None:
    assert replication_policy(flow_config()) == DefaultPolicy(".", internal_separator_enabled=True)
    other = flow_config(policy={"separator": "_", "internal_separator": False})
    assert replication_policy(other) == DefaultPolicy("_", internal_separator_enabled=False)
    identity = flow_config(policy={"kind": "identity"})
    assert replication_policy(identity) == IdentityPolicy(".", True, source_alias="us")


def test_plan_is_cached_until_topics_are_read_again() -> None:
    policies = rules()
    topics = {"orders": 1}
    plan = policies.plan(topics)
    assert policies.plan(topics) is plan
    assert policies.plan({"orders": 1, "pay": 1}) != plan


@pytest.mark.parametrize("carrier", list(CanaryCarrier))
def test_topic_of_canaries_is_no_data_whoever_sends_them(carrier: CanaryCarrier) -> None:
    policies = rules(canary={"carrier": carrier.value, "topic": "probe"})
    roles = {pair.source: pair.role for pair in policies.plan(["orders", "probe"]).pairs}
    is_carrier = carrier is TOPIC
    assert roles["probe"] is (TopicRole.CANARY if is_carrier else TopicRole.DATA)


ROUTER = {"transforms": "a", "transforms.a.type": "RegexRouter", "transforms.a.regex": "us.(.*)"}
NEW = ROUTER | {"transforms.a.replacement": "new.$1"}


def running(**settings: str) -> RunningConnectors:
    name = "MirrorSourceConnector"
    return RunningConnectors({name: ConnectorConfig(name, settings)})


def test_plan_follows_transforms_and_filter_of_the_running_connector() -> None:
    policies, topics = rules(), {"orders": 1, "pay": 1}
    assert [pair.target for pair in policies.plan(topics).pairs] == ["us.orders", "us.pay"]
    connectors = running(topics="orders", **NEW)
    plan = policies.plan(topics, connectors)
    assert [(pair.target, pair.role) for pair in plan.pairs] == [
        ("new.orders", TopicRole.DATA),
        ("new.pay", TopicRole.UNSELECTED),
    ]
    assert policies.plan(topics, connectors) is plan
    assert policies.copy_name("heartbeats") == "new.heartbeats"
    assert {pair.target for pair in policies.plan(topics, running(**ROUTER)).pairs} == {""}
    assert policies.copy_name("heartbeats") is None


def test_plan_ignores_the_running_connector_if_the_flow_says_so() -> None:
    policies = rules(settings="configured", transforms=NEW)
    plan = policies.plan({"orders": 1}, running(topics="pay"))
    assert [(pair.target, pair.role) for pair in plan.pairs] == [("new.orders", TopicRole.DATA)]


def test_other_engine_has_no_heartbeats_and_no_groups() -> None:
    policies = rules(engine="other")
    pairs = policies.plan(["heartbeats", "orders"]).pairs
    assert [(pair.source, pair.target, pair.role) for pair in pairs] == [
        ("orders", "orders", TopicRole.DATA)
    ]
    assert not policies.wants_group("app")


def test_wants_group_follows_group_filters() -> None:
    policies = rules(groups=["app.*"], groups_exclude=["app-test"])
    assert [policies.wants_group(group) for group in ("app-1", "app-test", "other")] == [
        True,
        False,
        False,
    ]


def test_remote_topic_and_offset_syncs_location() -> None:
    assert rules().copy_name("orders") == "us.orders"
    assert rules(policy={"kind": "identity"}).copy_name("orders") == "orders"
    assert rules().internal.offset_syncs == PlacedTopic("us", "mm2-offset-syncs.eu.internal")
    there = rules(offset_syncs_location="target").internal.offset_syncs
    assert there == PlacedTopic("eu", "mm2-offset-syncs.us.internal")


CONFIG = """
clusters:
  us: {bootstrap_servers: "127.0.0.1:1"}
  ap: {bootstrap_servers: "127.0.0.1:2"}
  eu: {bootstrap_servers: "127.0.0.1:3"}
flows:
  - {flow: us->eu, policy: {kind: KIND}, canary: {carrier: CARRIER, interval: 2s}}
  - {flow: ap->eu, policy: {kind: identity}}
exporter: {instance: here, read_only: READ_ONLY}
"""


def config(kind: str = "default", carrier: str = "topic", read_only: str = "false") -> Any:
    text = CONFIG.replace("KIND", kind).replace("CARRIER", carrier)
    return load_config(text.replace("READ_ONLY", read_only))


@pytest.mark.parametrize(("kind", "shared"), [("default", False), ("identity", True)])
def test_shares_target_for_identity_flows_to_same_target(
    kind: str,
    shared: bool,
) -> None:
    found = config(kind)
    assert [shares_target(found, flow) for flow in found.flows] == [shared, shared]


@pytest.mark.parametrize(
    ("transforms", "expected"),
    [
        ({}, ("heartbeats", "us.heartbeats", "us.heartbeats")),
        (NEW, ("heartbeats", "new.heartbeats", "new.heartbeats")),
        (ROUTER, ("off", "", None)),
    ],
)
def test_canaries_are_read_from_renamed_copy_and_off_if_its_name_is_unknown(
    transforms: dict[str, str], expected: tuple[str, str, str | None]
) -> None:
    found = config(carrier="heartbeats")
    policies = FlowPolicies(found.flows[0])
    policies.plan(["heartbeats"], running(**transforms))
    spec = canary_spec(found, policies)
    assert (spec.carrier, spec.target_topic, spec.heartbeats_topic_on_target) == expected


@pytest.mark.parametrize(
    ("carrier", "read_only", "expected"),
    [
        ("topic", "false", ("topic", "mm2slo.canary", "us.mm2slo.canary")),
        ("heartbeats", "false", ("heartbeats", "heartbeats", "us.heartbeats")),
        ("topic", "true", ("off", "heartbeats", "us.heartbeats")),
    ],
)
def test_canary_spec_follows_configuration(
    carrier: str, read_only: str, expected: tuple[str, str, str]
) -> None:
    found = config(carrier=carrier, read_only=read_only)
    flow = found.flows[0]
    spec = canary_spec(found, FlowPolicies(flow))
    assert (spec.carrier, spec.source_topic, spec.target_topic) == expected
    assert (spec.flow, spec.instance, spec.interval_seconds) == ("us->eu", "here", 2.0)
    assert (spec.source_alias, spec.target_alias) == ("us", "eu")
    assert spec.heartbeats_topic_on_target == "us.heartbeats"
    assert spec.source_client["bootstrap.servers"] == "127.0.0.1:1"
    assert spec.target_client["bootstrap.servers"] == "127.0.0.1:3"
