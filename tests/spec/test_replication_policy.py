"""Replication policies, filters and topic selection against Kafka's."""

import random
from itertools import product
from typing import Any

import pytest

from mm2slo_core.replication_policy import DefaultPolicy, IdentityPolicy
from mm2slo_core.topic_filters import TopicFilter

pytestmark = pytest.mark.xdist_group("spark")

_PACKAGE = "org.apache.kafka.connect.mirror"
_TABLE = (
    *("foo", "A.foo", "B.A.foo", "orders.v1", "A.heartbeats", "x.y.heartbeats", "foo.", ".foo"),
    *("a..b", "", ".", "..", "a..", "heartbeats", "my-heartbeats", "__x", "app.internal", "x"),
    *("mm2-offset-syncs.B.internal", "A.checkpoints.internal", "A_checkpoints_internal"),
    *(
        "mm2slo.state.internal",
        "mm2slo.watermarks.internal",
        "mm2_x_internal",
        "us.replica",
        "B.heartbeats",
        "foo-internal",
    ),
)
_PIECES = (
    "A",
    "B",
    "C",
    "foo",
    "heartbeats",
    "internal",
    "mm2",
    "checkpoints",
    "-",
    ".",
    "_",
    "__",
)


def random_names(count: int) -> list[str]:
    dice = random.Random(7)
    return ["".join(dice.choices(_PIECES, k=dice.randint(1, 6))) for _ in range(count)]


def settings_of(policy: DefaultPolicy | IdentityPolicy) -> dict[str, str]:
    settings = {
        "replication.policy.separator": policy.separator,
        "replication.policy.internal.topic.separator.enabled": str(
            policy.internal_separator_enabled
        ).lower(),
    }
    if isinstance(policy, IdentityPolicy) and policy.source_alias is not None:
        settings["source.cluster.alias"] = policy.source_alias
    return settings


def kafka_policy(jvm: Any, policy: DefaultPolicy | IdentityPolicy) -> Any:
    kind = "Identity" if isinstance(policy, IdentityPolicy) else "Default"
    theirs = getattr(jvm, f"{_PACKAGE}.{kind}ReplicationPolicy")()
    theirs.configure(settings_of(policy))
    return theirs


def policies() -> list[DefaultPolicy | IdentityPolicy]:
    shapes = list(product((".", "_", "", "--"), (True, False)))
    return [
        *(DefaultPolicy(separator, enabled) for separator, enabled in shapes),
        *(IdentityPolicy(separator, enabled, source_alias="A") for separator, enabled in shapes),
        IdentityPolicy(source_alias=None),
    ]


@pytest.mark.parametrize("policy", policies(), ids=repr)
def test_policy_names_equal_kafka(jvm: Any, policy: DefaultPolicy | IdentityPolicy) -> None:
    theirs = kafka_policy(jvm, policy)
    for topic in (*_TABLE, *random_names(60)):
        assert policy.topic_source(topic) == theirs.topicSource(topic), topic
        assert policy.upstream_topic(topic) == theirs.upstreamTopic(topic), topic
        assert policy.original_topic(topic) == theirs.originalTopic(topic), topic
        assert policy.is_heartbeats_topic(topic) == theirs.isHeartbeatsTopic(topic), topic
        assert policy.is_checkpoints_topic(topic) == theirs.isCheckpointsTopic(topic), topic
        assert policy.is_mm2_internal_topic(topic) == theirs.isMM2InternalTopic(topic), topic
        assert policy.is_internal_topic(topic) == theirs.isInternalTopic(topic), topic
        assert policy.remote_topic("A", topic) == theirs.formatRemoteTopic("A", topic), topic
    assert policy.offset_syncs_topic("B") == theirs.offsetSyncsTopic("B")
    assert policy.checkpoints_topic("A") == theirs.checkpointsTopic("A")


@pytest.mark.parametrize(
    "policy", [DefaultPolicy(), DefaultPolicy("_"), IdentityPolicy(source_alias="A")]
)
def test_topic_selection_equals_kafka(
    jvm: Any, probe: Any, policy: DefaultPolicy | IdentityPolicy
) -> None:
    theirs = kafka_policy(jvm, policy)
    their_filter = getattr(jvm, f"{_PACKAGE}.DefaultTopicFilter")()
    their_filter.configure({})
    ours = TopicFilter()
    for topic in (*_TABLE, *random_names(120)):
        cycle, selected = probe("selects", "A", "B", theirs, their_filter, topic)
        assert policy.is_cycle(topic, "B", "A") == cycle, topic
        assert (
            (ours.matches(topic) or policy.is_heartbeats_topic(topic))
            and not policy.is_internal_topic(topic)
            and not policy.is_cycle(topic, "B", "A")
        ) == selected, topic


@pytest.mark.parametrize(
    ("include", "exclude"),
    [
        (".*", r"mm2.*\.internal, .*\.replica, __.*"),
        (r"A\..*, foo", ""),
        (r"\QA.foo\E,  x", "x"),
        ("(?i)a.*,foo.*", "(?i:FOO)"),
        ("foo,x(?i)y|a.*,B.*", "c|(?i)X.*"),
        (r"\p{Alpha}+", r"\p{Upper}.*"),
        ("[^.]++", "[A-C]"),
        (r".*\bheartbeats\Z", "x.y.*"),
        (r"(A|B|, C)\.?.*", "a{2}"),
        (r"[]a.]+|\x66oo", "(?>a|b)"),
        ("", ""),
    ],
)
def test_topic_filter_equals_kafka(jvm: Any, include: str, exclude: str) -> None:
    theirs = getattr(jvm, f"{_PACKAGE}.DefaultTopicFilter")()
    theirs.configure({"topics": include, "topics.exclude": exclude})
    ours = TopicFilter((include,), (exclude,))
    for topic in (*_TABLE, *random_names(60)):
        assert ours.matches(topic) == theirs.shouldReplicateTopic(topic), topic
