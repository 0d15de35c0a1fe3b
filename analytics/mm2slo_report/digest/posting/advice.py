"""What Slack's errors mean, and what to do about them.

Source: Slack's references of chat.postMessage, chat.update and of incoming webhooks' errors.
"""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = re.compile(r"[a-z][a-z0-9_]{2,60}", re.ASCII)
_SAID: Final = 80
_TOKEN: Final = "put a valid bot token (xoxb-...) into the token's file"
_HOOK: Final = "make a new incoming webhook in Slack, and put its address into the webhook's file"
_OURS: Final = "look at it with --dry-run --json, and tell the makers of mm2slo"
_ADMIN: Final = "ask an administrator of the Slack workspace to allow it"

GONE: Final = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
"""The message cannot be changed, but one can be posted."""

_ADVICE: Final = {
    "channel_not_found": (
        "give the channel's id as in C0123456789 (at the end of the channel's details), and "
        "invite the bot where the channel is private"
    ),
    "not_in_channel": "invite the bot: /invite @its-name in the channel",
    "is_archived": "the channel is archived: choose another",
    "channel_is_archived": "the channel is archived: choose another, with a webhook of its own",
    "invalid_auth": _TOKEN,
    "not_authed": _TOKEN,
    "account_inactive": f"the bot was removed: {_TOKEN}",
    "token_revoked": _TOKEN,
    "token_expired": _TOKEN,
    "not_allowed_token_type": _TOKEN,
    "missing_scope": "give the app the scope chat:write, and install it again",
    "restricted_action": _ADMIN,
    "restricted_action_read_only_channel": _ADMIN,
    "action_prohibited": _ADMIN,
    "posting_to_general_channel_denied": _ADMIN,
    "ekm_access_denied": _ADMIN,
    "team_access_not_granted": _ADMIN,
    "access_denied": _ADMIN,
    "no_permission": _ADMIN,
    "team_disabled": _ADMIN,
    "no_service": _HOOK,
    "no_service_id": _HOOK,
    "no_team": _HOOK,
    "no_active_hooks": _HOOK,
    "invalid_token": _HOOK,
    "user_not_found": _HOOK,
    "invalid_payload": _OURS,
    "invalid_blocks": _OURS,
    "invalid_blocks_format": _OURS,
    "invalid_arguments": _OURS,
    "msg_too_long": _OURS,
    "msg_blocks_too_long": _OURS,
    "too_many_attachments": _OURS,
    "no_text": _OURS,
}


def advice(error: str, status: int) -> str:
    """*error* as Slack said it, with what to do."""
    said = error.strip()
    known = _ADVICE.get(said)
    if known is not None:
        return f"{said}: {known}"
    if not _WORD.fullmatch(said):
        # A proxy's page, not Slack's answer.
        line = " ".join(said.split())[:_SAID]
        told = f"HTTP {status}" + (f", {line!r}" if line else " and nothing else")
        return f"{told}: check what stands between here and Slack"
    return f"{said} (HTTP {status}): see Slack's reference of that error"
