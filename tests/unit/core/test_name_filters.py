"""Topic and group filters, and the translation of Java's regular expressions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.java_values import compile_java, split_list
from mm2slo_core.replication_policy import KafkaVersion
from mm2slo_core.topic_filters import GroupFilter, TopicFilter, default_topics_exclude


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
        ("a(?i)b", "put flags at the start of the pattern"),
        ("(?x)a", "put flags at the start of the pattern"),
        ("(?P<n>a)", "(?P<"),
        (r"\h", r"\h"),
        (r"\R", r"\R"),
        (r"[\b]", r"\b"),
        ("a{", "a repetition without a number"),
        ("a{,3}", "a repetition without a number"),
        ("(a", "invalid regular expression"),
        ("*a", "invalid regular expression"),
        ("a\\", "near position 1"),
        (r"\x{110000}", "is not a character"),
    ],
)
def test_unsupported_java_expression_raises_value_error(java: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
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
