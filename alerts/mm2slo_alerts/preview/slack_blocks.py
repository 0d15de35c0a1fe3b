"""A message as Slack blocks, as for Block Kit Builder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEADER = 150
_CODE = "`"


def blocks(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return title, text, footer and buttons as blocks; the colour needs an attachment."""
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
    """Return *text* as Slack shows it."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
