"""A message in Slack's blocks, for Block Kit Builder and for reading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEADER = 150
_CODE = "`"


def blocks(message: Mapping[str, Any]) -> dict[str, Any]:
    """The same title, text, footer and buttons; the colour needs an attachment around them."""
    [attachment] = message["attachments"]
    title = unescaped(attachment["title"])
    found: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": title[:_HEADER]}},
        {"type": "section", "text": {"type": "mrkdwn", "text": attachment["text"]}},
    ]
    if attachment.get("actions"):
        found.append(
            {
                "type": "actions",
                "elements": [
                    {
                        "type": "button",
                        "text": {"type": "plain_text", "text": action["text"]},
                        "url": action["url"],
                    }
                    for action in attachment["actions"]
                ],
            }
        )
    if attachment["footer"]:
        code = {"type": "mrkdwn", "text": f"{_CODE}{attachment['footer']}{_CODE}"}
        found.append({"type": "context", "elements": [code]})
    return {
        "text": attachment["fallback"],
        "attachments": [{"color": attachment["color"], "blocks": found}],
    }


def unescaped(text: str) -> str:
    """*text* as Slack shows it."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
