"""Texts in Slack's markup."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slack_receiver.markup import raw, units

from mm2slo_report.digest.text import code, fitted, size, unescaped


def test_signs_of_markup_are_escaped() -> None:
    assert fitted("us->eu & <!channel>", 80) == "us-&gt;eu &amp; &lt;!channel&gt;"


def test_an_escape_is_never_cut_in_two() -> None:
    assert [fitted("a&b", longest) for longest in (7, 6, 5, 3)] == ["a&amp;b", "a…", "a…", "a…"]


def test_an_emoji_counts_as_slack_counts_it() -> None:
    assert size("🙂a") == 3
    assert fitted("🙂🙂🙂", 5) == "🙂🙂…"
    assert fitted("🙂🙂🙂", 4) == "🙂…"


def test_lines_controls_and_turned_directions_become_spaces() -> None:
    assert fitted("a\nb\x00c\N{RIGHT-TO-LEFT OVERRIDE}d \ud800e", 80) == "a b c d e"


@pytest.mark.parametrize("nothing", ["", " ", "\x00", "\N{ZERO WIDTH SPACE}"])
def test_nothing_is_told_as_a_question_mark(nothing: str) -> None:
    assert fitted(nothing, 80) == "?"


def test_a_name_cannot_leave_its_code() -> None:
    named = code("`*us*` <@U1>")
    assert named == "`ˋ*us*ˋ &lt;@U1&gt;`"  # noqa: RUF001 - the letter that looks like it
    assert named.count("`") == 2


@given(st.text(), st.integers(min_value=2, max_value=100))
def test_no_text_is_longer_than_allowed_or_has_a_raw_sign(text: str, longest: int) -> None:
    found = fitted(text, longest)
    assert 0 < units(found) <= longest
    assert raw(found) is None
    assert "\n" not in found


@given(st.text(alphabet="ab&<>;", max_size=20))
def test_what_is_escaped_is_read_as_it_was(text: str) -> None:
    assert unescaped(fitted(text, 1_000)) == (text or "?")
