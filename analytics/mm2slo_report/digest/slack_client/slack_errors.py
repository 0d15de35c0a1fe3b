"""Slack's error codes and how to fix their causes.

Source: Slack's references of chat.postMessage, chat.update and of incoming webhooks' errors.
"""

from __future__ import annotations

import re
from typing import Final

_CODE: Final = re.compile(r"[a-z][a-z0-9_]{2,60}", re.ASCII)
_MAX_QUOTE: Final = 80
_TOKEN: Final = "write a valid bot token (xoxb-...) to the token file"
_WEBHOOK: Final = "create a new incoming webhook in Slack and write its URL to the webhook file"
_BUG: Final = "this is a bug in mm2slo: report it with the output of --dry-run --json"
_ADMIN: Final = "ask an administrator of the Slack workspace for permission"

GONE: Final = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
"""The message cannot be updated, but a new one can be posted."""

_ADVICE: Final = {
    "channel_not_found": (
        "give the channel's id, such as C0123456789 (at the end of the channel's details), and "
        "invite the bot if the channel is private"
    ),
    "not_in_channel": "invite the bot with /invite @its-name in the channel",
    "is_archived": "the channel is archived: choose another one",
    "channel_is_archived": "the channel is archived: create a webhook for another one",
    "invalid_auth": _TOKEN,
    "not_authed": _TOKEN,
    "account_inactive": f"the bot was removed: {_TOKEN}",
    "token_revoked": _TOKEN,
    "token_expired": _TOKEN,
    "not_allowed_token_type": _TOKEN,
    "missing_scope": "give the app the scope chat:write and reinstall it",
    "restricted_action": _ADMIN,
    "restricted_action_read_only_channel": _ADMIN,
    "action_prohibited": _ADMIN,
    "posting_to_general_channel_denied": _ADMIN,
    "ekm_access_denied": _ADMIN,
    "team_access_not_granted": _ADMIN,
    "access_denied": _ADMIN,
    "no_permission": _ADMIN,
    "team_disabled": _ADMIN,
    "no_service": _WEBHOOK,
    "no_service_id": _WEBHOOK,
    "no_team": _WEBHOOK,
    "no_active_hooks": _WEBHOOK,
    "invalid_token": _WEBHOOK,
    "user_not_found": _WEBHOOK,
    "invalid_payload": _BUG,
    "invalid_blocks": _BUG,
    "invalid_blocks_format": _BUG,
    "invalid_arguments": _BUG,
    "msg_too_long": _BUG,
    "msg_blocks_too_long": _BUG,
    "too_many_attachments": _BUG,
    "no_text": _BUG,
}


def describe_error(error: str, status: int) -> str:
    """Slack's *error* with its fix."""
    code = error.strip()
    known = _ADVICE.get(code)
    if known is not None:
        return f"{code}: {known}"
    if not _CODE.fullmatch(code):
        # A proxy's page, not Slack's response.
        line = " ".join(code.split())[:_MAX_QUOTE]
        received = f"HTTP {status}" + (f", {line!r}" if line else " with an empty body")
        return f"{received} is not a response of Slack: check proxies between this host and Slack"
    return f"{code} (HTTP {status}): look up this error in Slack's API reference"
