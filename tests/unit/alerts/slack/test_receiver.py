"""The fake Slack server: accepted and rejected messages."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from fake_slack import FakeSlackWebhook, RefusalError, check_message


def attachment(**more: Any) -> dict[str, Any]:
    return {"fallback": "f", "title": "t", "text": "x", "footer": "", "callback_id": "", **more}


def message(**more: Any) -> dict[str, Any]:
    return {"attachments": [attachment(**more)]}


def button(**more: Any) -> dict[str, Any]:
    return {"type": "button", "text": "Go", "url": "https://a.example", **more}


GOOD = [
    {"text": "plain"},
    message(),
    message(text="&lt;b&gt; &amp; <https://a.example|a link> <!here> <@U1> *bold*"),
    message(text="x" * 4_000, title="x" * 1_024, footer="x" * 300),
    message(color="good", actions=[button(), button(style="danger")]),
    message(fields=[{"title": "a", "value": "b", "short": True}], mrkdwn_in=["text"]),
    {"attachments": [attachment()] * 100},
    {"blocks": [{"type": "divider"}] * 50},
    {"blocks": [{"type": "header", "text": {"type": "plain_text", "text": "x" * 150}}]},
    {"blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3_000}}]},
]
BAD = [
    ([], "invalid_payload", "not an object"),
    ({}, "no_text", "neither text nor attachments"),
    ({"text": "  "}, "no_text", "neither text nor attachments"),
    ({"attachments": [attachment()] * 101}, "too_many_attachments", "101"),
    ({"attachments": [{"fallback": "f", "text": ""}]}, "no_text", "without content"),
    ({"attachments": [{"text": "x"}]}, "invalid_payload", "without fallback"),
    ({"text": "x", "colour": "red"}, "invalid_payload", "colour"),
    (message(text="a < b"), "invalid_payload", "raw '<'"),
    (message(text="a & b"), "invalid_payload", "raw '&'"),
    (message(title="us->eu"), "invalid_payload", "title has a raw '>'"),
    (message(footer="a&b"), "invalid_payload", "footer has a raw '&'"),
    (message(text="x" * 4_001), "invalid_payload", "4001 characters"),
    (message(title="x" * 1_025), "invalid_payload", "1025 characters"),
    (message(footer="x" * 301), "invalid_payload", "301 characters"),
    (message(color="red"), "invalid_payload", "color"),
    (message(title_link="ftp://a"), "invalid_payload", "title_link is not a web address"),
    (message(actions=[button()] * 6), "invalid_payload", "6 actions"),
    (message(actions=[{"type": "button", "text": "Go"}]), "invalid_payload", "has no url"),
    (message(actions=[button(url="")]), "invalid_payload", "is not a web address"),
    (message(actions=[button(url="https://a.example/ b")]), "invalid_payload", "not a web address"),
    (message(actions=[button(style="loud")]), "invalid_payload", "style"),
    (message(fields=[{"title": "a", "short": True}]), "invalid_payload", "an empty field"),
    (message(mrkdwn_in=["fallback"]), "invalid_payload", "mrkdwn_in"),
    ({"blocks": []}, "no_text", "neither"),
    ({"text": "t", "blocks": [{"type": "divider"}] * 51}, "invalid_blocks", "51 blocks"),
    ({"blocks": [{"type": "banner"}]}, "invalid_blocks", "banner"),
    (
        {"blocks": [{"type": "header", "text": {"type": "plain_text", "text": "x" * 151}}]},
        "invalid_blocks",
        "151 characters",
    ),
    (
        {"blocks": [{"type": "header", "text": {"type": "mrkdwn", "text": "x"}}]},
        "invalid_blocks",
        "text object",
    ),
    (
        {"blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3_001}}]},
        "invalid_blocks",
        "3001 characters",
    ),
    ({"blocks": [{"type": "section"}]}, "invalid_blocks", "without text and fields"),
    ({"blocks": [{"type": "actions", "elements": []}]}, "invalid_blocks", "0 elements"),
    (
        {"blocks": [{"type": "divider", "block_id": "a"}, {"type": "divider", "block_id": "a"}]},
        "invalid_blocks",
        "duplicate block_id",
    ),
]


@pytest.mark.parametrize("payload", GOOD)
def test_valid_message_is_accepted(payload: dict[str, Any]) -> None:
    check_message(payload)


@pytest.mark.parametrize(("payload", "body", "reason"), BAD)
def test_invalid_message_is_rejected_with_slack_error(
    payload: object, body: str, reason: str
) -> None:
    with pytest.raises(RefusalError, match=reason) as refused:
        check_message(payload)
    assert (refused.value.status, refused.value.body) == (400, body)


@pytest.fixture
def slack() -> Iterator[FakeSlackWebhook]:
    with FakeSlackWebhook(burst=2, channels=frozenset({"mirroring"})) as found:
        yield found


def send(url: str, content: bytes, kind: str = "application/json") -> tuple[int, str, str]:
    """Status, body and Retry-After."""
    headers = {"Content-Type": kind}
    request = urllib.request.Request(url, data=content, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as reply:
            return reply.status, reply.read().decode(), ""
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), error.headers.get("Retry-After", "")


def test_accepted_message_is_recorded(slack: FakeSlackWebhook) -> None:
    assert send(slack.url, json.dumps(message(title="one")).encode()) == (200, "ok", "")
    assert slack.titles() == ["one"]
    assert slack.refusals == []


@pytest.mark.parametrize(
    ("path", "content", "kind", "status", "body"),
    [
        ("", b"{", "application/json", 400, "invalid_payload"),
        ("", b'{"text": "x"}', "text/plain", 400, "invalid_payload"),
        ("", b'{"text": "x", "channel": "no"}', "application/json", 404, "channel_not_found"),
        ("0", b'{"text": "x"}', "application/json", 403, "invalid_token"),
        ("/../../../x", b'{"text": "x"}', "application/json", 403, "invalid_token"),
    ],
)
def test_invalid_request_is_rejected(  # noqa: PLR0917 - a table's columns
    slack: FakeSlackWebhook, path: str, content: bytes, kind: str, status: int, body: str
) -> None:
    assert send(slack.url + path, content, kind) == (status, body, "")
    assert slack.messages == []


def test_unknown_service_returns_404(slack: FakeSlackWebhook) -> None:
    address = slack.url.partition("/services")[0]
    assert send(f"{address}/hook", b"{}")[:2] == (404, "no_service")


def test_messages_over_burst_are_rate_limited() -> None:
    with FakeSlackWebhook(burst=2, rate=0.01) as slack:
        answers = [send(slack.url, b'{"text": "x"}') for _ in range(3)]
    assert [answer[:2] for answer in answers] == [
        (200, "ok"),
        (200, "ok"),
        (429, "rate_limited"),
    ]
    assert 90 <= int(answers[2][2]) <= 100
    assert len(slack.messages) == 2


def test_configured_failure_happens_once(slack: FakeSlackWebhook) -> None:
    slack.fail(status=410, body="channel_is_archived")
    assert send(slack.url, b'{"text": "x"}')[:2] == (410, "channel_is_archived")
    assert send(slack.url, b'{"text": "x"}')[:2] == (200, "ok")
    assert [refusal.body for refusal in slack.refusals] == ["channel_is_archived"]
