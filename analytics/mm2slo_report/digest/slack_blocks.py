"""Slack blocks within Slack's limits.

Source: Slack's Block Kit reference of each block. Callers escape texts unless stated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from mm2slo_report.digest.slack_markup import slack_length, truncate

if TYPE_CHECKING:
    from collections.abc import Sequence

Block: TypeAlias = Mapping[str, Any]

BLOCKS: Final = 50
TOTAL: Final = 12_000
"""Of all blocks as JSON. Slack refuses about 13,000 (`msg_blocks_too_long`) and states no limit."""
_HEADER: Final = 150
_SECTION: Final = 3_000
_ELEMENTS: Final = 10
_REMARK: Final = 300
_MORE: Final = 40
"""Room for the line that counts the omitted ones."""


def header(text: str) -> Block:
    """A heading; *text* is escaped and cut here."""
    return {"type": "header", "text": _plain(truncate(text, _HEADER))}


def section(lines: Sequence[str]) -> Block:
    """Lines of markup. Lines that do not fit are left out; a last line counts them."""
    kept: list[str] = []
    used = 0
    for line in lines:
        used += slack_length(line) + 1
        if used > _SECTION - _MORE:
            kept.append(f"… and {len(lines) - len(kept)} more")
            break
        kept.append(line)
    return {"type": "section", "text": _markup("\n".join(kept))}


def context(line: str) -> Block:
    """One small line of markup."""
    return {"type": "context", "elements": [_markup(line)]}


def remarks(texts: Sequence[str]) -> Block:
    """At most 10 plain texts, escaped and cut to 300 characters here; the last counts the rest."""
    kept = [truncate(each, _REMARK) for each in texts[:_ELEMENTS]]
    if len(texts) > _ELEMENTS:
        kept[-1] = f"… and {len(texts) - _ELEMENTS + 1} more"
    return {"type": "context", "elements": [_plain(each) for each in kept]}


def divider() -> Block:
    return {"type": "divider"}


def fits(blocks: Sequence[Block]) -> bool:
    """Whether one message can hold *blocks*."""
    if len(blocks) > BLOCKS:
        return False
    return slack_length(json.dumps(blocks, ensure_ascii=False)) <= TOTAL


def _plain(text: str) -> Block:
    # Without emoji, a name such as us:eu:ap keeps its colons.
    return {"type": "plain_text", "text": text, "emoji": False}


def _markup(text: str) -> Block:
    # Verbatim: addresses and channel names in it become no links.
    return {"type": "mrkdwn", "text": text, "verbatim": True}
