"""Names that transforms give to copies, against Kafka's classes."""

from typing import Any

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from mm2slo_core.topic_filters import RecordTransforms

pytestmark = pytest.mark.xdist_group("spark")

_PACKAGE = "org.apache.kafka.connect.transforms"
_TOPICS = ("us.orders", "orders", "us.a", "ab", "aab", "us.x.y", "a", "us.12", "$1", "us\nx")


def their_name(jvm: Any, regex: str, replacement: str, topic: str) -> str | None:
    """The name that RegexRouter gives; None if it fails."""
    router = jvm.org.apache.kafka.connect.transforms.RegexRouter()
    record = jvm.org.apache.kafka.connect.source.SourceRecord(None, None, topic, None, None)
    try:
        router.configure({"regex": regex, "replacement": replacement})
        return str(router.apply(record).topic())
    except Py4JJavaError:
        return None


@pytest.mark.parametrize(
    "regex",
    [
        *(r"us\.(.*)", "(.*)", "(u)(s)(.+)", "us.orders", r"(?<where>us|eu)\.(?<what>\w+)"),
        *("a|ab", "a*|a*b", r"(us)?\.?(\w+)", "(a)(b)?", r"\Qus.a\E", r"(?i)US\.([a-z]+)"),
    ],
)
def test_regex_router_renames_as_kafka_does(jvm: Any, regex: str) -> None:
    replacements = (
        *("$1", "new.$1", "x", "$0-copy", "$12", "$1$2", "$9", "${where}_${what}", "${none}"),
        *(r"\$1", r"a\\b", "$", "$x", "a\\", "${where", "$2.$1"),
    )
    for replacement in replacements:
        settings = {
            "transforms": "route",
            "transforms.route.type": f"{_PACKAGE}.RegexRouter",
            "transforms.route.regex": regex,
            "transforms.route.replacement": replacement,
        }
        ours = RecordTransforms(settings)
        for topic in _TOPICS:
            expected = their_name(jvm, regex, replacement, topic) or None
            assert ours.effect(topic).name == expected, (replacement, topic)


@pytest.mark.parametrize("pattern", [r"us\..*", "us", ".*", "us.orders", "a|ab"])
def test_topic_predicate_matches_as_kafka_does(jvm: Any, pattern: str) -> None:
    predicate = getattr(jvm, f"{_PACKAGE}.predicates").TopicNameMatches()
    predicate.configure({"pattern": pattern})
    settings = {
        "transforms": "drop",
        "transforms.drop.type": f"{_PACKAGE}.Filter",
        "transforms.drop.predicate": "some",
        "predicates": "some",
        "predicates.some.type": f"{_PACKAGE}.predicates.TopicNameMatches",
        "predicates.some.pattern": pattern,
    }
    for topic in _TOPICS:
        record = jvm.org.apache.kafka.connect.source.SourceRecord(None, None, topic, None, None)
        assert RecordTransforms(settings).effect(topic).may_drop == predicate.test(record), topic
