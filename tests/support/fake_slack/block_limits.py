"""Slack's documented limits of each type of block."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from fake_slack.slack_markup import find_unescaped, utf16_length
from fake_slack.slack_refusal import RefusalError
from fake_slack.slack_refusal import require as _require

require = partial(_require, body="invalid_blocks")

BLOCKS: Final = 50
HEADER: Final = 150
SECTION: Final = 3_000
FIELDS: Final = 10
FIELD: Final = 2_000
CONTEXT: Final = 10
ACTIONS: Final = 25
BUTTON: Final = 75
URL: Final = 3_000
ID: Final = 255
TOTAL: Final = 13_000
"""Of all blocks: undocumented, Slack refuses messages from about this size."""


def check_blocks(blocks: Any) -> None:
    """Raise RefusalError if Slack would refuse *blocks*."""
    require(isinstance(blocks, list) and bool(blocks), "blocks is not a list, or is empty")
    require(len(blocks) <= BLOCKS, f"{len(blocks)} blocks, at most {BLOCKS}")
    ids = [block["block_id"] for block in blocks if "block_id" in block]
    require(len(ids) == len(set(ids)), "duplicate block_id")
    require(all(0 < len(each) <= ID for each in ids), "a block_id is empty or too long")
    total = utf16_length(json.dumps(blocks, ensure_ascii=False))
    if total > TOTAL:
        raise RefusalError(400, "msg_blocks_too_long", f"{total} characters of blocks")
    for block in blocks:
        kind = block.get("type")
        require(kind in _CHECKS, f"a block of type {kind!r}")
        _CHECKS[kind](block)


def _header(block: Mapping[str, Any]) -> None:
    _text_object(block.get("text"), HEADER, kinds={"plain_text"})


def _section(block: Mapping[str, Any]) -> None:
    require("text" in block or "fields" in block, "a section without text and fields")
    if "text" in block:
        _text_object(block["text"], SECTION)
    if "fields" in block:
        require(0 < len(block["fields"]) <= FIELDS, f"{len(block['fields'])} fields")
        for each in block["fields"]:
            _text_object(each, FIELD)


def _context(block: Mapping[str, Any]) -> None:
    elements = block.get("elements", [])
    require(0 < len(elements) <= CONTEXT, f"{len(elements)} elements of a context")
    for each in elements:
        _text_object(each, SECTION)


def _actions(block: Mapping[str, Any]) -> None:
    elements = block.get("elements", [])
    require(0 < len(elements) <= ACTIONS, f"{len(elements)} elements of actions")
    for each in elements:
        require(each.get("type") == "button", f"an element of type {each.get('type')!r}")
        _text_object(each.get("text"), BUTTON, kinds={"plain_text"})
        if "url" in each:
            url = each["url"]
            require(url.startswith(("http://", "https://")), f"a button's url {url!r}")
            require(len(url) <= URL, f"a url of {len(url)} characters")
        style = each.get("style", "primary")
        require(style in {"primary", "danger"}, f"a button's style {style!r}")


def _text_object(
    text: Any, longest: int, kinds: frozenset[str] | set[str] = frozenset({"plain_text", "mrkdwn"})
) -> None:
    require(isinstance(text, dict) and text.get("type") in kinds, f"a text object {text!r}")
    content = text.get("text")
    require(isinstance(content, str) and bool(content), "an empty text")
    length = utf16_length(content)
    require(length <= longest, f"a text of {length} characters, at most {longest}")
    if text["type"] == "mrkdwn":
        require(find_unescaped(content) is None, f"a raw {find_unescaped(content)!r}: {content!r}")


_CHECKS: Final[Mapping[str, Callable[[Mapping[str, Any]], None]]] = {
    "header": _header,
    "section": _section,
    "context": _context,
    "actions": _actions,
    "divider": lambda _: None,
}
