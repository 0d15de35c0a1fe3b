"""A message on a terminal, as Slack shows it, without its colours."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Final

from mm2slo_report.digest.headline import SIGNS
from mm2slo_report.digest.text import unescaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_report.digest.blocks import Block
    from mm2slo_report.digest.message import Message

WIDTH: Final = 80
_HELD: Final = "\N{NO-BREAK SPACE}"
_LINK: Final = re.compile(r"<(?P<url>https?://[^|>]+)\|(?P<label>[^>]+)>")
_BOLD: Final = re.compile(r"\*([^*]+)\*")
_MARKS: Final = dict(zip(SIGNS.values(), ("!!", "!", "?", "ok", "-"), strict=True))


def readable(message: Message) -> str:
    """*message* in lines of at most 80 characters; addresses alone are never broken."""
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
        for line in unescaped(shown).split("\n"):
            yield from _wrapped(line)
    if block["type"] != "context":
        yield ""


def _without_markup(text: str) -> str:
    """Signs as marks, links with their addresses, names without the signs of code."""
    # What stands in code is never markup.
    outside = re.split(r"`([^`]*)`", text)
    for at in range(0, len(outside), 2):
        piece = _LINK.sub(r"\g<label>: \g<url>", _BOLD.sub(r"\1", outside[at]))
        for sign, mark in _MARKS.items():
            piece = piece.replace(sign, mark)
        outside[at] = piece
    return "".join(outside)


def _wrapped(line: str) -> list[str]:
    # A figure stays on the line of its sign.
    held = line.replace(" %", _HELD + "%")
    found = textwrap.wrap(
        held,
        WIDTH,
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words="://" not in line,
    )
    return [each.replace(_HELD, " ") for each in found]
