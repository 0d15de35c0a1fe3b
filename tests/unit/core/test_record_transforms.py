"""What transforms of a source connector do to copies, by its settings."""

import pytest

from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.topic_filters import (
    CopyEffect,
    NameFilter,
    RecordTransforms,
    transform_settings,
)
from mm2slo_core.topic_selection import TopicRole, replicated_topics

KAFKA = "org.apache.kafka.connect.transforms."
BY_NAME = f"{KAFKA}predicates.TopicNameMatches"
BY_HEADER = f"{KAFKA}predicates.HasHeaderKey"


def chain(*transforms: dict[str, str], **others: str) -> dict[str, str]:
    """Settings with transforms named a, b and so on, in this order."""
    names = "abc"[: len(transforms)]
    settings = {
        f"transforms.{name}.{key}": value
        for name, options in zip(names, transforms, strict=True)
        for key, value in options.items()
    }
    more = {key.replace("_", "."): value for key, value in others.items()}
    return {"transforms": ", ".join(names), **settings, **more}


def router(regex: str, replacement: str, **options: str) -> dict[str, str]:
    return {
        "type": f"{KAFKA}RegexRouter",
        "regex": regex,
        "replacement": replacement,
        **options,
    }


US = {"predicates": "us", "predicates.us.type": BY_NAME, "predicates.us.pattern": r"us\..*"}
MARKED = {"predicates": "us", "predicates.us.type": BY_HEADER, "predicates.us.name": "gone"}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ("us.orders", False)),
        (chain(router(r"us\.(.*)", "new.$1")), ("new.orders", False)),
        (chain(router(r"eu\.(.*)", "new.$1")), ("us.orders", False)),
        (chain(router(r"us\.(.*)", "b.$1"), router("b.(.*)", "c.$1")), ("c.orders", False)),
        (chain({"type": f"{KAFKA}TimestampRouter"}), (None, False)),
        (chain({"type": "io.debezium.transforms.ByLogicalTableRouter"}), (None, False)),
        (chain({"type": "io.confluent.connect.transforms.ExtractTopic$Value"}), (None, False)),
        (chain(router("(", "x")), (None, False)),
        (chain(router(".*", "$7")), (None, False)),
        (chain({"type": f"{KAFKA}RegexRouter"}), (None, False)),
        (chain({"type": f"{KAFKA}InsertHeader"}), ("us.orders", False)),
        (chain({"type": "com.acme.Mask"}), ("us.orders", False)),
        (chain({"type": f"{KAFKA}Filter"}), ("us.orders", True)),
        (chain({"type": "Filter"}), ("us.orders", True)),
        (chain({"type": "io.confluent.connect.transforms.Filter$Value"}), ("us.orders", True)),
        (chain({"type": "com.acme.TopicFilter"}), ("us.orders", True)),
        (chain({"type": "com.acme.Mask"}, errors_tolerance="all"), ("us.orders", True)),
        ({"errors.tolerance": "all"}, ("us.orders", False)),
        (chain({"type": "Filter"}, router(r"us\.(.*)", "new.$1")), ("new.orders", True)),
        # predicates
        (chain(router("us.*", "x", predicate="us")) | US, ("x", False)),
        (chain(router("us.*", "x", predicate="us", negate="true")) | US, ("us.orders", False)),
        (chain(router("us.*", "x", predicate="us")) | MARKED, (None, False)),
        (chain(router("eu.*", "x", predicate="us")) | MARKED, ("us.orders", False)),
        (chain({"type": "Filter", "predicate": "us"}) | MARKED, ("us.orders", True)),
        (chain({"type": "Filter", "predicate": "us"}) | US, ("us.orders", True)),
        (chain({"type": "Filter", "predicate": "us", "negate": "true"}) | US, ("us.orders", False)),
        (chain({"type": "Filter", "predicate": "lost"}), ("us.orders", True)),
    ],
)
def test_effect_on_copies_of_a_topic(
    settings: dict[str, str], expected: tuple[str | None, bool]
) -> None:
    assert RecordTransforms(settings).effect("us.orders") == CopyEffect(*expected)


def test_settings_of_connector_keep_neither_secrets_nor_references() -> None:
    settings = chain(router(r"us\.(.*)", "${file:/run/names:new}.$1"), {"type": "com.acme.Seal"})
    settings |= {"transforms.b.key": "s3cret", "tasks.max": "2", "errors.tolerance": "none"}
    assert transform_settings(settings) == {
        "errors.tolerance": "none",
        "transforms": "a, b",
        "transforms.a.regex": r"us\.(.*)",
        "transforms.a.type": f"{KAFKA}RegexRouter",
        "transforms.b.type": "com.acme.Seal",
    }
    assert transform_settings({"errors.tolerance": "all", "predicates": "x"}) == {}


def test_topics_have_the_names_of_transforms_unless_several_copies_get_one_name() -> None:
    settings = chain(router(r"us\.(?:(a|b)\d|(.*))", "all.$1$2"))
    flow = FlowConfig.model_validate({"flow": "us->eu", "transforms": settings})
    pairs = replicated_topics(flow, ["a1", "a2", "b1", "orders"])
    assert {pair.source: pair.target for pair in pairs} == {
        "a1": "",
        "a2": "",
        "b1": "all.b",
        "orders": "all.orders",
    }


def test_topics_that_the_running_connector_does_not_select_have_a_role_of_their_own() -> None:
    flow = FlowConfig.model_validate({"flow": "us->eu"})
    running = NameFilter(("orders.*",), ("orders-x",))
    pairs = replicated_topics(flow, ["heartbeats", "orders", "orders-x", "pay"], running=running)
    assert {pair.source: pair.role for pair in pairs} == {
        "heartbeats": TopicRole.HEARTBEATS,
        "orders": TopicRole.DATA,
        "orders-x": TopicRole.UNSELECTED,
        "pay": TopicRole.UNSELECTED,
    }
