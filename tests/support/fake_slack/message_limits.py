"""Slack's documented limits of messages and attachments.

Sources: Slack's references of secondary attachments (legacy fields), blocks, formatting text, and
errors of incoming webhooks.
"""

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from fake_slack.block_limits import check_blocks
from fake_slack.slack_markup import find_unescaped
from fake_slack.slack_refusal import RefusalError, require

ATTACHMENTS: Final = 100
TEXT: Final = 4_000
TITLE: Final = 1_024
FOOTER: Final = 300
ACTIONS: Final = 5
URL: Final = 3_000

_KEYS: Final = {
    "channel",
    "username",
    "icon_emoji",
    "icon_url",
    "link_names",
    "text",
    "attachments",
    "blocks",
    "mrkdwn",
    "response_type",
    "unfurl_links",
    "unfurl_media",
}
_ATTACHMENT_KEYS: Final = {
    *("title", "title_link", "pretext", "text", "fallback", "callback_id", "fields", "actions"),
    *("image_url", "thumb_url", "footer", "footer_icon", "color", "mrkdwn_in", "ts", "blocks"),
    *("author_name", "author_link", "author_icon"),
}
_COLOR: Final = re.compile(r"good|warning|danger|#[0-9A-Fa-f]{6}")

__all__ = ["RefusalError", "check_message"]


def check_message(payload: object) -> None:
    """Raise RefusalError if Slack would refuse *payload*, the decoded JSON of a message."""
    require(isinstance(payload, dict), "the payload is not an object")
    assert isinstance(payload, dict)
    _known(payload, _KEYS, "the message")
    attachments = payload.get("attachments", [])
    require(isinstance(attachments, list), "attachments is not a list")
    if len(attachments) > ATTACHMENTS:
        raise RefusalError(400, "too_many_attachments", f"{len(attachments)} attachments")
    text = payload.get("text", "")
    _text(text, "text", TEXT)
    if not text.strip() and not attachments and not payload.get("blocks"):
        raise RefusalError(400, "no_text", "neither text nor attachments nor blocks")
    if "blocks" in payload:
        check_blocks(payload["blocks"])
    for attachment in attachments:
        _check_attachment(attachment)


def _check_attachment(attachment: Any) -> None:
    require(isinstance(attachment, dict), "an attachment is not an object")
    _known(attachment, _ATTACHMENT_KEYS, "an attachment")
    _text(attachment.get("title", ""), "title", TITLE)
    for key in ("text", "pretext", "fallback"):
        _text(attachment.get(key, ""), key, TEXT)
    _text(attachment.get("footer", ""), "footer", FOOTER)
    if "blocks" in attachment:
        check_blocks(attachment["blocks"])
    elif not any(attachment.get(key) for key in ("title", "text", "pretext", "fields")):
        raise RefusalError(400, "no_text", "an attachment without content")
    else:
        require(bool(attachment.get("fallback")), "an attachment without fallback")
    if "color" in attachment:
        color = attachment["color"]
        require(isinstance(color, str) and bool(_COLOR.fullmatch(color)), f"color {color!r}")
    for key in ("title_link", "image_url", "thumb_url", "author_link"):
        if key in attachment:
            check_url(attachment[key], key)
    parsed = set(attachment.get("mrkdwn_in", ()))
    require(parsed <= {"text", "pretext", "fields"}, f"mrkdwn_in {sorted(parsed)}")
    for each in attachment.get("fields", ()):
        require(bool(each.get("title")) and bool(each.get("value")), f"an empty field {each!r}")
        _text(each["title"], "field title", TITLE)
        _text(each["value"], "field value", TEXT)
        require(isinstance(each.get("short"), bool), f"short of {each!r}")
    actions = attachment.get("actions", [])
    require(len(actions) <= ACTIONS, f"{len(actions)} actions")
    for action in actions:
        _check_action(action)


def _check_action(action: Mapping[str, Any]) -> None:
    require(action.get("type") == "button", f"an action of type {action.get('type')!r}")
    require(bool(action.get("text")), "a button without text")
    _text(action["text"], "button text", 75)
    # A button without a link needs an app, which a webhook does not have.
    require("url" in action, f"the button {action['text']!r} has no url")
    check_url(action["url"], f"url of the button {action['text']!r}")
    style = action.get("style", "default")
    require(style in {"default", "primary", "danger"}, f"a button's style {style!r}")


def check_url(url: object, what: str) -> None:
    """Raise RefusalError if *url* is not a web address."""
    require(isinstance(url, str) and len(url) <= URL, f"{what} is too long or not a string")
    assert isinstance(url, str)
    parts = urlsplit(url)
    good = parts.scheme in {"http", "https"} and parts.hostname and not re.search(r"[\s<>\"`]", url)
    require(bool(good), f"{what} is not a web address: {url!r}")


def _text(text: object, what: str, longest: int) -> None:
    require(isinstance(text, str), f"{what} is not a string")
    assert isinstance(text, str)
    require(len(text) <= longest, f"{what} has {len(text)} characters, at most {longest}")
    if found := find_unescaped(text):
        raise RefusalError(400, "invalid_payload", f"{what} has a raw {found!r}: {text!r}")


def _known(found: Mapping[str, Any], keys: set[str], where: str) -> None:
    unknown = sorted(set(found) - keys)
    require(not unknown, f"{where} has unknown keys {unknown}")
