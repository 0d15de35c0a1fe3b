"""A Slack message on the terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from rich.markup import escape
from rich.table import Table

from mm2slo_alerts.preview.slack_blocks import unescaped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

WIDTH: Final = 80
_BOLD: Final = re.compile(r"(?:^|(?<= ))\*([^*]+)\*(?= |$)")


def show(console: Console, message: Mapping[str, Any]) -> None:
    """Print the message behind a bar of its colour, as Slack shows an attachment."""
    [attachment] = message["attachments"]
    lines = [f"[bold]{escape(unescaped(attachment['title']))}[/bold]"]
    lines += [_markup(line) for line in attachment["text"].split("\n")]
    lines += [f"[reverse] {each['text']} [/reverse] {each['url']}" for each in _buttons(attachment)]
    if attachment["footer"]:
        lines.append(f"[dim]{escape(unescaped(attachment['footer']))}[/dim]")
    table = Table.grid(padding=(0, 1))
    table.add_column(style=attachment["color"])
    table.add_column(overflow="fold")
    for line in lines:
        text = console.render_str(line)
        for row in text.wrap(console, WIDTH - 2, overflow="fold"):
            table.add_row("▌", row)
    console.print(table)


def _buttons(attachment: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(attachment.get("actions", ()))


def _markup(line: str) -> str:
    """Translate Slack's bold to rich markup."""
    return _BOLD.sub(r"[bold]\1[/bold]", escape(unescaped(line)))
