"""Reads webhook URLs and bot tokens from files; no error shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from mm2slo_core.secret import Secret, may_carry_secrets
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

_TOKEN: Final = "xox"


def webhook_url(path: Path) -> Secret:
    """The webhook URL in the file *path*. Raises UserError unless https, or http on loopback."""
    text = _read(path, "the URL of a Slack webhook")
    try:
        parts = urlsplit(text)
        usable = may_carry_secrets(parts) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not text.isascii() or len(text.split()) != 1:
        raise UserError(
            f"{str(path)!r} does not hold the URL of a webhook; expected one line such as "
            "https://hooks.slack.com/services/..."
        )
    return Secret(text)


def bot_token(path: Path) -> Secret:
    """The bot token in the file *path*. Raises UserError if it is invalid."""
    text = _read(path, "a Slack bot token")
    if not text.startswith(_TOKEN) or not text.isascii() or len(text.split()) != 1:
        raise UserError(
            f"{str(path)!r} does not hold a bot token; expected one line that starts with xoxb-"
        )
    return Secret(text)


def _read(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UserError(
            f"cannot read {str(path)!r}: {error.strerror}; expected a file with {what}"
        ) from None
    except UnicodeDecodeError:
        raise UserError(f"{str(path)!r} is not UTF-8 text; expected a file with {what}") from None
