"""Target topics, and which flows feed them."""

from __future__ import annotations

import pytest

from mm2slo_audit.scope.audit_units import Unit, plan_units, select_units
from mm2slo_core.config import Config, load_config
from mm2slo_core.user_errors import UserError

CLUSTERS = """\
clusters:
  us: {bootstrap_servers: "us:1"}
  ap: {bootstrap_servers: "ap:1"}
  eu: {bootstrap_servers: "eu:1"}
"""


def config(flows: str) -> Config:
    return load_config(CLUSTERS + flows)


def units(flows: str, **topics: list[str]) -> tuple[Unit, ...]:
    return plan_units(config(flows).flows, topics, {"mm2slo.watermarks.internal"})


def shown(found: tuple[Unit, ...]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    return [
        (unit.cluster, unit.topic, [(feed.flow.label, feed.topic) for feed in unit.feeds])
        for unit in found
    ]


def test_each_copied_topic_is_a_unit_and_internal_ones_are_none() -> None:
    found = units(
        "flows: [{flow: us->eu, canary: {carrier: topic, topic: mm2slo.canary}}]",
        us=["orders", "heartbeats", "mm2-offset-syncs.eu.internal", "__consumer_offsets",
            "eu.payments", "mm2slo.canary", "mm2slo.watermarks.internal"],
    )  # fmt: skip
    assert shown(found) == [("eu", "us.orders", [("us->eu", "orders")])]
    assert not found[0].shared


def test_flows_that_keep_names_share_their_target_topic() -> None:
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
    # One flow is asked for, and its unit is judged with all that feeds it.
    assert select_units(found, {"ap->eu"}, []) == (found[1],)


def test_the_audit_of_a_flow_leaves_topics_out() -> None:
    found = units(
        "flows: [{flow: us->eu, audit: {topics: 'a.*', topics_exclude: '.*-tmp'}}]",
        us=["a", "a-tmp", "b"],
    )
    assert [unit.topic for unit in found] == ["us.a"]


def test_a_topic_is_named_by_either_side() -> None:
    found = units("flows: [{flow: us->eu}]", us=["orders", "payments"])
    assert [unit.topic for unit in select_units(found, (), ["orders"])] == ["us.orders"]
    assert [unit.topic for unit in select_units(found, (), ["us.orders"])] == ["us.orders"]
    assert len(select_units(found, (), [])) == 2


def test_an_unknown_topic_is_refused_with_the_nearest_one() -> None:
    found = units("flows: [{flow: us->eu}]", us=["orders"])
    with pytest.raises(UserError) as refused:
        select_units(found, (), ["ordes"])
    assert str(refused.value) == (
        "no topic 'ordes' is copied by these flows: expected the name of a source topic, or of its"
        " copy, that topics and audit.topics of a flow let through; did you mean 'orders'?"
    )
