"""Filters of names, and transforms of records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.java_values import UnreadablePatternError, compile_java, split_list
from mm2slo_core.replication_policy import KafkaVersion
from mm2slo_core.topic_filters import (
    CopyEffect,
    GroupFilter,
    NameFilter,
    RecordTransforms,
    TopicFilter,
    default_topics_exclude,
    transform_settings,
)
from mm2slo_core.topic_selection import TopicRole, replicated_topics


@pytest.mark.parametrize(
    ("topic", "before_4_0", "since_4_0"),
    [
        ("orders", True, True),
        ("app.internal", False, True),
        ("app-internal", False, True),
        ("mm2-configs.A.internal", False, False),
        ("mm2slo.watermarks.internal", False, False),
        ("mm2slo.canary", True, True),
        ("us.replica", False, False),
        ("__consumer_offsets", False, False),
    ],
)
def test_default_topic_excludes_changed_in_4_0(
    topic: str, *, before_4_0: bool, since_4_0: bool
) -> None:
    old = TopicFilter(exclude=default_topics_exclude(KafkaVersion(3, 9)))
    assert old.matches(topic) is before_4_0
    assert TopicFilter().matches(topic) is since_4_0


@pytest.mark.parametrize(
    ("group", "passes"),
    [("billing", True), ("console-consumer-1", False), ("connect-x", False), ("__g", False)],
)
def test_default_group_filter_excludes_tools(group: str, *, passes: bool) -> None:
    assert GroupFilter().matches(group) is passes


@pytest.mark.parametrize(
    ("include", "exclude", "name", "passes"),
    [
        (("orders",), (), "orders", True),
        (("orders",), (), "orders2", False),
        (("order",), (), "orders", False),
        (("a", "b.*"), (), "bcd", True),
        (("a, b.*",), (), "bcd", True),
        ((".*",), ("b.*",), "bcd", False),
        ((), (), "a", False),
        (("",), (), "a", False),
        (("(?i)A", "b"), (), "B", True),
        (("a", "(?i)b", "c"), (), "C", True),
        (("a", "(?i)b", "c"), (), "A", False),
        (("(a|b", "c)d"), (), "cd", True),
    ],
)
def test_filter_matches_whole_name_and_exclusion_wins(
    include: tuple[str, ...], exclude: tuple[str, ...], name: str, *, passes: bool
) -> None:
    assert TopicFilter(include, exclude).matches(name) is passes


def test_split_list_separates_at_every_comma() -> None:
    assert split_list(" a ,b , c{1,2}") == ("a", "b", "c{1", "2}")
    assert split_list("  ") == ()
    with pytest.raises(ValueError, match=r"c\{1\|2\}.*repetition without a number"):
        TopicFilter(("c{1,2}",))


@pytest.mark.parametrize(
    ("java", "text", "matches"),
    [
        (r"\Qa.b\E", "a.b", True),
        (r"\Qa.b\E", "axb", False),
        (r"\Qa.b", "a.b", True),
        (r"\p{Alpha}+", "abc", True),
        (r"\P{Alpha}+", "abc", False),
        (r"[\p{Digit}x]+", "1x2", True),
        (r"a*+b", "aab", True),
        (r"a*+a", "aa", False),
        (r"(?>a|ab)c", "abc", False),
        (r"(?i)ORDERS", "orders", True),
        (r"(?i:A)b", "ab", True),
        (r"(?i:A)B", "ab", False),
        ("a|(?i)b|c", "C", True),
        ("a|(?i)b|c", "A", False),
        ("x(?i)b|c", "xB", True),
        ("x(?i)b|c", "C", True),
        ("x(?i)b|c", "xC", False),
        ("(a|(?i)b)c", "Bc", True),
        ("(a|(?i)b)c", "BC", False),
        ("(?i)a(?-i)b|c", "Ab", True),
        ("(?i)a(?-i)b|c", "C", False),
        ("(?i)|b", "", True),
        (r"(?i)[|)]\|", ")|", True),
        (r"(?<x>a)\k<x>", "aa", True),
        (r"(a)\1", "aa", True),
        (r"\x41\u0042\x{43}\0104", "ABCD", True),
        (r"a\z", "a", True),
        (r"[]a]+", "]a", True),
        (r"[a--b]", "-", True),
        (r"[a||b]", "|", True),
        (r"\w+", "café", False),
        (r"\d", "٣", False),
        (r"a{2}", "aa", True),
        (r"a}", "a}", True),
        (r"us\.orders-\d+", "us.orders-12", True),
    ],
)
def test_java_expressions_match_as_java_does(java: str, text: str, *, matches: bool) -> None:
    assert (compile_java(java).fullmatch(text) is not None) is matches


@pytest.mark.parametrize(
    ("java", "reason"),
    [
        ("[a-z&&[^b]]", "&&"),
        ("[a[b]]", "a class inside a class"),
        (r"\p{L}", r"\p{L}"),
        (r"\p{IsAlphabetic}", r"\p{IsAlphabetic}"),
        ("(?x)a", "'(?x)'"),
        (r"\h", r"\h"),
        (r"\R", r"\R"),
        ("(?<=a|bc)d", "look-behind"),
        ("(?i-i)a", "inline flags"),
        ("(a)|(?<=b{1,2})c", "look-behind"),
    ],
)
def test_java_expression_that_cannot_be_translated_is_not_called_invalid(
    java: str, reason: str
) -> None:
    with pytest.raises(UnreadablePatternError, match=r"^unsupported Java regular") as caught:
        compile_java(java)
    assert reason in caught.value.problem


@pytest.mark.parametrize(
    ("java", "reason"),
    [
        ("a|(?i)*", "nothing to repeat"),
        ("(?i)a)|(b", "unbalanced parenthesis"),
        ("(?<x>a)|(?<x>b)", "redefinition of group name"),
        ("(?P<n>a)", "'(?P<'"),
        (r"\y", r"\y"),
        (r"[\b]", r"\b"),
        ("a{", "a repetition without a number"),
        ("a{,3}", "a repetition without a number"),
        ("(a", "missing )"),
        ("*a", "nothing to repeat"),
        ("a\\", "near position 1"),
        (r"\x{110000}", "is not a character"),
    ],
)
def test_expression_that_java_rejects_is_invalid(java: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r"^invalid|is not a character") as caught:
        compile_java(java)
    assert reason in str(caught.value)


@given(st.text())
def test_any_text_compiles_or_raises_value_error(text: str) -> None:
    try:
        compile_java(text)
    except ValueError as error:
        assert str(error)  # noqa: PT017 - compiling is right as well


@given(st.text().filter(lambda text: "\\E" not in text))
def test_quoted_expression_matches_itself(text: str) -> None:
    assert compile_java(rf"\Q{text}\E").fullmatch(text) is not None


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
