"""A fake of Slack's incoming webhooks and Web API that enforces Slack's documented limits.

It also refuses messages that Slack accepts but shows wrongly: an unescaped `<`, folded text, a
button without a URL.
"""

import json
import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from recording_server import Answer, RecordingServer, Request

_PATH: Final = "/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"

_RATE: Final = 1.0
"""Messages per second that Slack accepts per channel, apart from short bursts."""


@dataclass(frozen=True, slots=True)
class Message:
    """An accepted message; `at` is monotonic."""

    payload: dict[str, Any]
    at: float

    @property
    def attachment(self) -> dict[str, Any]:
        """The only attachment."""
        [attachment] = self.payload["attachments"]
        assert isinstance(attachment, dict)
        return attachment

    @property
    def title(self) -> str:
        """The attachment's title, escaped as it was sent."""
        return str(self.attachment["title"])


class FakeSlackWebhook(RecordingServer):
    """Accepts messages at `url`: *burst* at once, then *rate* per second."""

    def __init__(
        self, *, burst: int = 5, rate: float = _RATE, channels: frozenset[str] = frozenset()
    ) -> None:
        self.messages: list[Message] = []
        self.refusals: list[RefusalError] = []
        self._burst = burst
        self._rate = rate
        self._channels = channels
        self._tokens = float(burst)
        self._filled_at = time.monotonic()
        self._failures: list[Answer] = []
        super().__init__(self._answer)

    @property
    def url(self) -> str:
        """The webhook's URL."""
        return self.address + _PATH

    def fail(self, *, status: int = 500, body: str = "rollup_error", times: int = 1) -> None:
        """Refuse the next *times* messages."""
        self._failures += [Answer(status, body)] * times

    def titles(self) -> list[str]:
        """Titles of the accepted messages."""
        return [message.title for message in self.messages]

    def _answer(self, request: Request) -> Answer:
        try:
            self._take(request)
        except RefusalError as refusal:
            self.refusals.append(refusal)
            headers = {"Retry-After": refusal.reason} if refusal.status == 429 else {}
            return Answer(refusal.status, refusal.body, headers)
        return Answer()

    def _take(self, request: Request) -> None:
        if request.method != "POST":
            raise RefusalError(405, "method_not_allowed", request.method)
        if not request.path.startswith("/services/"):
            raise RefusalError(404, "no_service", request.path)
        if request.path != _PATH:
            raise RefusalError(403, "invalid_token", request.path)
        self._limit(request.at)
        if self._failures:
            failure = self._failures.pop(0)
            raise RefusalError(failure.status, failure.body, "configured failure")
        payload = _decoded(request)
        channel = payload.get("channel") if isinstance(payload, dict) else None
        if channel is not None and channel not in self._channels:
            raise RefusalError(404, "channel_not_found", repr(channel))
        check_message(payload)
        self.messages.append(Message(payload, request.at))

    def _limit(self, now: float) -> None:
        """Apply a token bucket."""
        filled = self._tokens + (now - self._filled_at) * self._rate
        self._tokens, self._filled_at = min(filled, float(self._burst)), now
        if self._tokens < 1.0:
            raise RefusalError(
                429, "rate_limited", str(math.ceil((1.0 - self._tokens) / self._rate))
            )
        self._tokens -= 1.0


def _decoded(request: Request) -> Any:
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/json":
        raise RefusalError(400, "invalid_payload", f"content type {kind!r}")
    try:
        return json.loads(request.body)
    except ValueError as error:
        raise RefusalError(400, "invalid_payload", str(error)) from error


TOKEN: Final = "xoxb-1-of-the-tests"
_API_FIELDS: Final = frozenset({"channel", "ts"})


class FakeSlackApi(RecordingServer):
    """Accepts messages at `base_url` from the bot with `TOKEN`.

    *channels* are those of the bot; it is not a member of *others*.
    """

    def __init__(self, *channels: str, others: frozenset[str] = frozenset()) -> None:
        self.messages: dict[str, dict[str, Any]] = {}
        """Current messages by `ts`."""
        self.refusals: list[RefusalError] = []
        self.calls: list[str] = []
        self._channels = frozenset(channels)
        self._others = others
        self._failures: list[Answer] = []
        super().__init__(self._answer)

    @property
    def base_url(self) -> str:
        """Base URL for `WebClient`."""
        return self.address + "/api/"

    def fail(
        self, status: int, body: str = "", *, retry_after: str | None = None, times: int = 1
    ) -> None:
        """Refuse the next *times* calls."""
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        self._failures += [Answer(status, body, headers)] * times

    def _answer(self, request: Request) -> Answer:
        self.calls.append(request.path.removeprefix("/api/"))
        if self._failures:
            return self._failures.pop(0)
        try:
            return _json({"ok": True, **self._take(request)})
        except RefusalError as refusal:
            self.refusals.append(refusal)
            # Slack returns 200 for all errors but rate limiting.
            return _json({"ok": False, "error": refusal.body})

    def _take(self, request: Request) -> dict[str, Any]:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            raise RefusalError(200, "invalid_auth", "wrong token")
        payload = json.loads(request.body)
        channel = payload.get("channel")
        if channel in self._others:
            raise RefusalError(200, "not_in_channel", repr(channel))
        if channel not in self._channels:
            raise RefusalError(200, "channel_not_found", repr(channel))
        check_message({key: value for key, value in payload.items() if key not in _API_FIELDS})
        if not payload.get("text"):
            raise RefusalError(200, "no_text", "blocks without a text to fall back to")
        ts = f"1784530800.{len(self.messages):06}"
        if request.path == "/api/chat.update":
            ts = payload["ts"]
            if ts not in self.messages:
                raise RefusalError(200, "message_not_found", ts)
        elif request.path != "/api/chat.postMessage":
            raise RefusalError(200, "unknown_method", request.path)
        self.messages[ts] = payload
        return {"channel": channel, "ts": ts}


def _json(content: dict[str, Any]) -> Answer:
    return Answer(200, json.dumps(content), content_type="application/json; charset=utf-8")


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


class RefusalError(Exception):
    """Slack's status and body; Slack does not send *reason*."""

    def __init__(self, status: int, body: str, reason: str) -> None:
        super().__init__(f"{status} {body}: {reason}")
        self.status = status
        self.body = body
        self.reason = reason


def require(holds: bool, reason: str, body: str = "invalid_payload") -> None:
    """Raise RefusalError unless *holds*."""
    if not holds:
        raise RefusalError(400, body, reason)


require_block = partial(require, body="invalid_blocks")
BLOCKS: Final = 50
HEADER: Final = 150
SECTION: Final = 3_000
FIELDS: Final = 10
FIELD: Final = 2_000
CONTEXT: Final = 10
BLOCK_ACTIONS: Final = 25
BUTTON: Final = 75
ID: Final = 255

TOTAL: Final = 13_000
"""Of all blocks: undocumented, Slack refuses messages from about this size."""


def check_blocks(blocks: Any) -> None:
    """Raise RefusalError if Slack would refuse *blocks*."""
    require_block(isinstance(blocks, list) and bool(blocks), "blocks is not a list, or is empty")
    require_block(len(blocks) <= BLOCKS, f"{len(blocks)} blocks, at most {BLOCKS}")
    ids = [block["block_id"] for block in blocks if "block_id" in block]
    require_block(len(ids) == len(set(ids)), "duplicate block_id")
    require_block(all(0 < len(each) <= ID for each in ids), "a block_id is empty or too long")
    total = utf16_length(json.dumps(blocks, ensure_ascii=False))
    if total > TOTAL:
        raise RefusalError(400, "msg_blocks_too_long", f"{total} characters of blocks")
    for block in blocks:
        kind = block.get("type")
        require_block(kind in _CHECKS, f"a block of type {kind!r}")
        _CHECKS[kind](block)


def _header(block: Mapping[str, Any]) -> None:
    _text_object(block.get("text"), HEADER, kinds={"plain_text"})


def _section(block: Mapping[str, Any]) -> None:
    require_block("text" in block or "fields" in block, "a section without text and fields")
    if "text" in block:
        _text_object(block["text"], SECTION)
    if "fields" in block:
        require_block(0 < len(block["fields"]) <= FIELDS, f"{len(block['fields'])} fields")
        for each in block["fields"]:
            _text_object(each, FIELD)


def _context(block: Mapping[str, Any]) -> None:
    elements = block.get("elements", [])
    require_block(0 < len(elements) <= CONTEXT, f"{len(elements)} elements of a context")
    for each in elements:
        _text_object(each, SECTION)


def _actions(block: Mapping[str, Any]) -> None:
    elements = block.get("elements", [])
    require_block(0 < len(elements) <= BLOCK_ACTIONS, f"{len(elements)} elements of actions")
    for each in elements:
        require_block(each.get("type") == "button", f"an element of type {each.get('type')!r}")
        _text_object(each.get("text"), BUTTON, kinds={"plain_text"})
        if "url" in each:
            url = each["url"]
            require_block(url.startswith(("http://", "https://")), f"a button's url {url!r}")
            require_block(len(url) <= URL, f"a url of {len(url)} characters")
        style = each.get("style", "primary")
        require_block(style in {"primary", "danger"}, f"a button's style {style!r}")


def _text_object(
    text: Any, longest: int, kinds: frozenset[str] | set[str] = frozenset({"plain_text", "mrkdwn"})
) -> None:
    require_block(isinstance(text, dict) and text.get("type") in kinds, f"a text object {text!r}")
    content = text.get("text")
    require_block(isinstance(content, str) and bool(content), "an empty text")
    length = utf16_length(content)
    require_block(length <= longest, f"a text of {length} characters, at most {longest}")
    if text["type"] == "mrkdwn":
        require_block(
            find_unescaped(content) is None, f"a raw {find_unescaped(content)!r}: {content!r}"
        )


_CHECKS: Final[Mapping[str, Callable[[Mapping[str, Any]], None]]] = {
    "header": _header,
    "section": _section,
    "context": _context,
    "actions": _actions,
    "divider": lambda _: None,
}

# Angle brackets may contain only a link, a mention, a channel or a special mention.
_CONTROL: Final = re.compile(r"<(?:https?://[^<>|\s]+(?:\|[^<>|]+)?|[@#][A-Z0-9]+|![a-z^][^<>]*)>")
_RAW: Final = re.compile(r"[<>]|&(?!(?:amp|lt|gt);)")


def find_unescaped(text: str) -> str | None:
    """The first character of *text* that should have been escaped."""
    found = _RAW.search(_CONTROL.sub("", text))
    return None if found is None else found[0]


def utf16_length(text: str) -> int:
    """Length as Slack counts it, in UTF-16 units: an emoji is two."""
    return len(text.encode("utf-16-le")) // 2
