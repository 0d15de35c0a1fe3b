"""Escaping and truncation of text in Slack's markup."""

import pytest
from fake_slack import find_unescaped, utf16_length
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_report.digest.digest_message import format_code, slack_length, truncate, unescape


def test_truncate_escapes_markup() -> None:
    assert truncate("us->eu & <!channel>", 80) == "us-&gt;eu &amp; &lt;!channel&gt;"


def test_truncate_never_cuts_an_escape_sequence() -> None:
    assert [truncate("a&b", longest) for longest in (7, 6, 5, 3)] == ["a&amp;b", "a…", "a…", "a…"]


def test_slack_length_emoji_counts_as_two() -> None:
    assert slack_length("🙂a") == 3
    assert truncate("🙂🙂🙂", 5) == "🙂🙂…"
    assert truncate("🙂🙂🙂", 4) == "🙂…"


def test_truncate_replaces_control_characters_with_spaces() -> None:
    assert truncate("a\nb\x00c\N{RIGHT-TO-LEFT OVERRIDE}d \ud800e", 80) == "a b c d e"


@pytest.mark.parametrize("nothing", ["", " ", "\x00", "\N{ZERO WIDTH SPACE}"])
def test_truncate_empty_text_becomes_a_question_mark(nothing: str) -> None:
    assert truncate(nothing, 80) == "?"


def test_format_code_replaces_backticks() -> None:
    named = format_code("`*us*` <@U1>")
    assert named == "`ˋ*us*ˋ &lt;@U1&gt;`"  # noqa: RUF001 - the letter that looks like it
    assert named.count("`") == 2


@given(st.text(), st.integers(min_value=2, max_value=100))
def test_truncate_any_text_is_short_and_escaped(text: str, longest: int) -> None:
    found = truncate(text, longest)
    assert 0 < utf16_length(found) <= longest
    assert find_unescaped(found) is None
    assert "\n" not in found


@given(st.text(alphabet="ab&<>;", max_size=20))
def test_unescape_reverses_escaping(text: str) -> None:
    assert unescape(truncate(text, 1_000)) == (text or "?")
