"""Replication policies, against tables of Kafka's behaviour."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.replication_policy import (
    DefaultPolicy,
    IdentityPolicy,
    KafkaVersion,
    OffsetSyncsLocation,
    internal_topics,
)
from mm2slo_core.topology import Flow

V39, V40, V44 = KafkaVersion(3, 9), KafkaVersion(4, 0), KafkaVersion(4, 4)


@pytest.mark.parametrize(
    ("topic", "source", "upstream", "original", "heartbeats"),
    [
        ("foo", None, None, "foo", False),
        ("A.foo", "A", "foo", "foo", False),
        ("B.A.foo", "B", "A.foo", "foo", False),
        ("orders.v1", "orders", "v1", "v1", False),
        ("heartbeats", None, None, "heartbeats", True),
        ("A.heartbeats", "A", "heartbeats", "heartbeats", True),
        ("x.y.heartbeats", "x", "y.heartbeats", "heartbeats", True),
        ("foo.", None, None, "foo.", False),
        (".foo", "", "foo", "foo", False),
        ("a..b", "a", ".b", "b", False),
        ("a...", None, None, "a...", False),
    ],
)
def test_default_policy_splits_names_as_java_does(
    topic: str, source: str | None, upstream: str | None, original: str, *, heartbeats: bool
) -> None:
    policy = DefaultPolicy()
    assert policy.topic_source(topic) == source
    assert policy.upstream_topic(topic) == upstream
    assert policy.original_topic(topic) == original
    assert policy.is_heartbeats_topic(topic) is heartbeats


def test_default_policy_with_empty_separator_uses_first_character_as_source() -> None:
    policy = DefaultPolicy(separator="")
    assert policy.topic_source("foo") == "f"
    assert policy.upstream_topic("foo") == "oo"
    assert policy.topic_source("f") is None
    assert policy.original_topic("foo") == "o"


@pytest.mark.parametrize("separator", [".", "_", "--", "->", "*"])
@given(alias=st.from_regex(r"[a-z]{1,8}", fullmatch=True), topic=st.from_regex(r"[a-z0-9]{1,8}"))
def test_remote_topic_round_trips(separator: str, alias: str, topic: str) -> None:
    policy = DefaultPolicy(separator)
    topic = topic.strip() or "t"
    assert policy.topic_source(policy.remote_topic(alias, topic)) == alias
    assert policy.upstream_topic(policy.remote_topic(alias, topic)) == topic


@pytest.mark.parametrize(
    ("policy", "syncs", "checkpoints"),
    [
        (DefaultPolicy(), "mm2-offset-syncs.B.internal", "A.checkpoints.internal"),
        (DefaultPolicy("_"), "mm2-offset-syncs_B_internal", "A_checkpoints_internal"),
        (
            DefaultPolicy("_", internal_separator_enabled=False),
            "mm2-offset-syncs.B.internal",
            "A.checkpoints.internal",
        ),
        (IdentityPolicy(source_alias="A"), "mm2-offset-syncs.B.internal", "A.checkpoints.internal"),
        (
            IdentityPolicy("_", source_alias="A"),
            "mm2-offset-syncs_B_internal",
            "A_checkpoints_internal",
        ),
    ],
)
def test_separator_applies_to_internal_topics_if_enabled(
    policy: DefaultPolicy | IdentityPolicy, syncs: str, checkpoints: str
) -> None:
    assert policy.offset_syncs_topic("B") == syncs
    assert policy.checkpoints_topic("A") == checkpoints
    assert policy.is_checkpoints_topic(checkpoints)
    assert policy.is_internal_topic(syncs)


@pytest.mark.parametrize(
    ("topic", "before_4_0", "since_4_0"),
    [
        ("__consumer_offsets", True, True),
        (".hidden", True, True),
        ("mm2-offset-syncs.B.internal", True, True),
        ("A.checkpoints.internal", True, True),
        ("mm2-configs.A.internal", True, True),
        ("app.internal", True, False),
        ("foo-internal", True, False),
        ("mm2slo.watermarks.internal", True, True),
        ("mm2slo.canary", False, False),
        ("internal", False, False),
        ("foo", False, False),
    ],
)
def test_user_topics_named_internal_are_replicated_since_4_0(
    topic: str, *, before_4_0: bool, since_4_0: bool
) -> None:
    assert DefaultPolicy(version=V39).is_internal_topic(topic) is before_4_0
    assert DefaultPolicy(version=V40).is_internal_topic(topic) is since_4_0
    assert IdentityPolicy(version=V40, source_alias="A").is_internal_topic(topic) is since_4_0


@pytest.mark.parametrize(
    ("topic", "remote", "source", "upstream"),
    [
        ("foo", "foo", "A", "foo"),
        ("B.foo", "B.foo", "A", "B.foo"),
        ("heartbeats", "A.heartbeats", None, None),
        ("my-heartbeats", "A.my-heartbeats", None, None),
        ("orders.heartbeats", "A.orders.heartbeats", "orders", "heartbeats"),
    ],
)
def test_identity_policy_renames_only_heartbeats_topics(
    topic: str, remote: str, source: str | None, upstream: str | None
) -> None:
    policy = IdentityPolicy(source_alias="A")
    assert policy.remote_topic("A", topic) == remote
    assert policy.topic_source(topic) == source
    assert policy.upstream_topic(topic) == upstream


def test_identity_policy_without_source_alias_has_no_source() -> None:
    assert IdentityPolicy(source_alias=None).topic_source("foo") is None
    assert IdentityPolicy(source_alias=None).original_topic("foo") == "foo"


@pytest.mark.parametrize(
    ("topic", "is_cycle", "since_4_4"),
    [
        ("foo", False, False),
        ("B.foo", True, True),
        ("C.B.foo", True, True),
        ("C.foo", False, False),
        ("A.foo", False, True),
        ("C.A.foo", False, True),
        ("B.heartbeats", True, True),
    ],
)
def test_topic_that_was_on_target_is_cycle(topic: str, *, is_cycle: bool, since_4_4: bool) -> None:
    assert DefaultPolicy().is_cycle(topic, "B", "A") is is_cycle
    assert DefaultPolicy(version=V44).is_cycle(topic, "B", "A") is since_4_4
    assert DefaultPolicy(version=V44).is_cycle(topic, "B") is is_cycle


def test_identity_policy_detects_cycles_only_of_heartbeats() -> None:
    policy = IdentityPolicy(version=V44, source_alias="A")
    assert not policy.is_cycle("B.foo", "B", "A")
    assert policy.is_cycle("B.heartbeats", "B", "A")
    assert not policy.is_cycle("A.heartbeats", "B", "A")


def test_internal_topics_are_on_the_expected_clusters() -> None:
    topics = internal_topics(Flow("us", "eu"), DefaultPolicy("_"))
    assert topics.offset_syncs == ("us", "mm2-offset-syncs_eu_internal")
    assert topics.checkpoints == ("eu", "us_checkpoints_internal")
    assert topics.heartbeats == ("us", "heartbeats")
    assert topics.remote_heartbeats == ("eu", "us_heartbeats")
    assert topics.connect_offsets == ("eu", "mm2-offsets.us.internal")
    assert topics.connect_status == ("eu", "mm2-status.us.internal")
    assert topics.connect_configs == ("eu", "mm2-configs.us.internal")


def test_offset_syncs_topic_on_target_has_source_alias() -> None:
    topics = internal_topics(Flow("us", "eu"), DefaultPolicy(), OffsetSyncsLocation.TARGET)
    assert topics.offset_syncs == ("eu", "mm2-offset-syncs.us.internal")
