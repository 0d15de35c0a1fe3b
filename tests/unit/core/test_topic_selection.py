"""The replicated topics of a flow, and drift of their settings."""

from typing import Any

import pytest

from mm2slo_core.config.flow_config import DEFAULT_TOPICS_EXCLUDE, FlowConfig
from mm2slo_core.topic_selection import (
    ConfigDrift,
    SyncedSettings,
    TopicEpochs,
    TopicPair,
    TopicRole,
    replicated_topics,
)

DATA, HEARTBEATS, CANARY = TopicRole.DATA, TopicRole.HEARTBEATS, TopicRole.CANARY


def plan(
    *topics: str,
    include: tuple[str, ...] = (".*",),
    exclude: tuple[str, ...] = DEFAULT_TOPICS_EXCLUDE,
    canary: str | None = None,
    **flow: Any,
) -> tuple[TopicPair, ...]:
    config = FlowConfig.model_validate(
        {"flow": "us->eu", "topics": include, "topics_exclude": exclude, **flow}
    )
    return replicated_topics(config, topics, canary)


def test_replicated_topics_have_source_prefix_and_are_sorted() -> None:
    assert plan("pay", "orders") == (
        TopicPair("orders", "us.orders", DATA),
        TopicPair("pay", "us.pay", DATA),
    )


@pytest.mark.parametrize(
    "topic",
    [
        "__consumer_offsets",
        "mm2-offset-syncs.eu.internal",
        "mm2-configs.ap.internal",
        "ap.checkpoints.internal",
        "mm2slo.watermarks.internal",
        "orders.replica",
        ".hidden",
    ],
)
def test_internal_topics_are_never_replicated(topic: str) -> None:
    assert plan(topic) == ()


def test_internal_topics_in_filter_are_not_replicated() -> None:
    assert plan("__consumer_offsets", "us.checkpoints.internal", exclude=()) == ()


@pytest.mark.parametrize(
    ("topic", "copied"),
    [("eu.orders", False), ("ap.eu.orders", False), ("ap.orders", True), ("europe.orders", True)],
)
def test_topics_from_target_are_not_replicated(topic: str, copied: bool) -> None:
    assert bool(plan(topic)) is copied


def test_topic_filter_matches_whole_names_and_exclusion_wins() -> None:
    found = plan("orders", "orders-old", "pay", include=("orders.*",), exclude=(".*-old",))
    assert [pair.source for pair in found] == ["orders"]


def test_heartbeats_are_replicated_despite_filter() -> None:
    found = plan("heartbeats", "ap.heartbeats", "eu.heartbeats", "orders", include=("pay",))
    assert found == (
        TopicPair("ap.heartbeats", "us.ap.heartbeats", HEARTBEATS),
        TopicPair("heartbeats", "us.heartbeats", HEARTBEATS),
    )


def test_canary_topic_has_canary_role_only_as_carrier() -> None:
    assert plan("mm2slo.canary", canary="mm2slo.canary")[0].role is CANARY
    assert plan("mm2slo.canary")[0].role is DATA


def test_identity_policy_keeps_names_except_heartbeats_and_detects_no_cycles() -> None:
    found = plan("heartbeats", "eu.orders", "orders", policy={"kind": "identity"})
    assert found == (
        TopicPair("eu.orders", "eu.orders", DATA),
        TopicPair("heartbeats", "us.heartbeats", HEARTBEATS),
        TopicPair("orders", "orders", DATA),
    )


def test_other_separator_applies_to_names_and_cycles() -> None:
    found = plan("orders", "eu_pay", "eu.pay", policy={"separator": "_"})
    assert [pair.target for pair in found] == ["us_eu.pay", "us_orders"]


def test_other_engine_does_not_replicate_heartbeats() -> None:
    found = plan("heartbeats", "orders", engine="other", canary="orders")
    assert [(pair.source, pair.role) for pair in found] == [("orders", CANARY)]


EXCLUDED = (
    r"follower\.replication\.throttled\.replicas",
    r"message\.timestamp\.type",
    r"min\.insync\.replicas",
)


@pytest.mark.parametrize(
    ("case", "source", "target", "expected"),
    [
        ("equal", {"retention.ms": "1"}, {"retention.ms": "1"}, ()),
        (
            "different",
            {"retention.ms": "1"},
            {"retention.ms": "2"},
            (ConfigDrift("retention.ms", "1", "2"),),
        ),
        (
            "not replicated",
            {"cleanup.policy": "compact"},
            {},
            (ConfigDrift("cleanup.policy", "compact", None),),
        ),
        (
            "set only on the copy, which MM2 removes",
            {},
            {"segment.bytes": "9"},
            (ConfigDrift("segment.bytes", None, "9"),),
        ),
        (
            "not synced by MM2",
            {"min.insync.replicas": "2"},
            {"min.insync.replicas": "1", "message.timestamp.type": "LogAppendTime"},
            (),
        ),
        (
            "a pattern matches whole names",
            {"min.insync.replicas.too": "2"},
            {},
            (ConfigDrift("min.insync.replicas.too", "2", None),),
        ),
    ],
)
def test_config_drift(
    case: str,
    source: dict[str, str],
    target: dict[str, str],
    expected: tuple[ConfigDrift, ...],
) -> None:
    assert SyncedSettings(EXCLUDED).drift(source, target) == expected, case


def test_synced_settings_with_invalid_expression_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"\(unclosed"):
        SyncedSettings(("(unclosed",))


def test_other_topic_id_is_recreation() -> None:
    epochs = TopicEpochs()
    seen = [epochs.observe_id(topic_id) for topic_id in ("x", "x", None, "y", "y", "x")]
    assert seen == [False, False, False, True, False, True]
    assert epochs.recreations == 2
