"""Target topics and the flows that feed them."""

import pytest

from mm2slo_audit.scope.audit_units import AuditUnit, plan_units, select_units
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.config.config_model import Config
from mm2slo_core.user_errors import UserError

CLUSTERS = """\
clusters:
  us: {bootstrap_servers: "us:1"}
  ap: {bootstrap_servers: "ap:1"}
  eu: {bootstrap_servers: "eu:1"}
"""


def config(flows: str) -> Config:
    return load_config(CLUSTERS + flows)


def units(flows: str, **topics: list[str]) -> tuple[AuditUnit, ...]:
    return plan_units(config(flows).flows, topics, {"mm2slo.watermarks.internal"})


def shown(found: tuple[AuditUnit, ...]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    return [
        (unit.cluster, unit.topic, [(feed.flow.label, feed.topic) for feed in unit.feeds])
        for unit in found
    ]


def test_plan_units_excludes_internal_topics() -> None:
    found = units(
        "flows: [{flow: us->eu, canary: {carrier: topic, topic: mm2slo.canary}}]",
        us=["orders", "heartbeats", "mm2-offset-syncs.eu.internal", "__consumer_offsets",
            "eu.payments", "mm2slo.canary", "mm2slo.watermarks.internal"],
    )  # fmt: skip
    assert shown(found) == [("eu", "us.orders", [("us->eu", "orders")])]
    assert not found[0].shared


def test_plan_units_identity_policy_shares_target_topic() -> None:
    found = units(
        "defaults: {policy: {kind: identity}}\nflows: [{flow: us->eu}, {flow: ap->eu}]",
        us=["orders", "only-us"],
        ap=["orders"],
    )
    assert shown(found) == [
        ("eu", "only-us", [("us->eu", "only-us")]),
        ("eu", "orders", [("us->eu", "orders"), ("ap->eu", "orders")]),
    ]
    assert found[1].shared
    # A unit keeps all its feeds, even if only one flow is selected.
    assert select_units(found, {"ap->eu"}, []) == (found[1],)


def test_plan_units_applies_audit_topic_filters() -> None:
    found = units(
        "flows: [{flow: us->eu, audit: {topics: 'a.*', topics_exclude: '.*-tmp'}}]",
        us=["a", "a-tmp", "b"],
    )
    assert [unit.topic for unit in found] == ["us.a"]


def test_select_units_matches_source_and_target_name() -> None:
    found = units("flows: [{flow: us->eu}]", us=["orders", "payments"])
    assert [unit.topic for unit in select_units(found, (), ["orders"])] == ["us.orders"]
    assert [unit.topic for unit in select_units(found, (), ["us.orders"])] == ["us.orders"]
    assert len(select_units(found, (), [])) == 2


def test_select_units_unknown_topic_raises_error_with_suggestion() -> None:
    found = units("flows: [{flow: us->eu}]", us=["orders"])
    with pytest.raises(UserError) as raised:
        select_units(found, (), ["ordes"])
    assert str(raised.value) == (
        "topic 'ordes' is not copied by these flows; expected a source topic, or its copy, that"
        " topics and audit.topics of a flow select; did you mean 'orders'?"
    )
