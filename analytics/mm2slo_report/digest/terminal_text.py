"""A Slack message as plain text for a terminal."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Final

from mm2slo_report.digest.headline import SIGNS
from mm2slo_report.digest.slack_markup import unescape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_report.digest.slack_blocks import Block
    from mm2slo_report.digest.slack_message import Message

WIDTH: Final = 80
_NO_BREAK: Final = "\N{NO-BREAK SPACE}"
_LINK: Final = re.compile(r"<(?P<url>https?://[^|>]+)\|(?P<label>[^>]+)>")
_BOLD: Final = re.compile(r"\*([^*]+)\*")
_MARKS: Final = dict(zip(SIGNS.values(), ("!!", "!", "?", "ok", "-"), strict=True))


def format_for_terminal(message: Message) -> str:
    """*message* in lines of at most 80 characters; only URLs may be longer."""
    return "\n".join(line for block in message.blocks for line in _lines(block))


def _lines(block: Block) -> Iterator[str]:
    if block["type"] == "divider":
        yield "-" * WIDTH
        return
    texts = [block["text"]] if "text" in block else block["elements"]
    for text in texts:
        shown = text["text"]
        if text["type"] == "mrkdwn":
            shown = _without_markup(shown)
        for line in unescape(shown).split("\n"):
            yield from _wrapped(line)
    if block["type"] != "context":
        yield ""


def _without_markup(text: str) -> str:
    """Emoji become marks, links show their URLs, code loses its backticks."""
    # Text in code is never markup.
    outside = re.split(r"`([^`]*)`", text)
    for at in range(0, len(outside), 2):
        piece = _LINK.sub(r"\g<label>: \g<url>", _BOLD.sub(r"\1", outside[at]))
        for sign, mark in _MARKS.items():
            piece = piece.replace(sign, mark)
        outside[at] = piece
    return "".join(outside)


def _wrapped(line: str) -> list[str]:
    # Keep a number and its percent sign on one line.
    text = line.replace(" %", _NO_BREAK + "%")
    found = textwrap.wrap(
        text,
        WIDTH,
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words="://" not in line,
    )
    return [each.replace(_NO_BREAK, " ") for each in found]
