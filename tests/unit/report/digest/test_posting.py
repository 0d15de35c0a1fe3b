"""A webhook and a bot against Slack's documented behaviour."""

from __future__ import annotations

import logging
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from digests import entry, report
from slack_receiver import SlackApi, SlackReceiver
from slack_receiver.web_api import TOKEN

from mm2slo_core.errors import UserError
from mm2slo_core.secret import Secret
from mm2slo_core.topology import Flow
from mm2slo_report.digest.links import Links
from mm2slo_report.digest.message import digest
from mm2slo_report.digest.posting import webhook as webhook_module
from mm2slo_report.digest.posting.bot import BotPoster
from mm2slo_report.digest.posting.port import Gone, Refused, Unsure
from mm2slo_report.digest.posting.secrets import bot_token, webhook_url
from mm2slo_report.digest.posting.webhook import WebhookPoster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHANNEL = "C0123456789"
MESSAGE = digest(report([entry(Flow("us", "eu"), bad=38)]), [], Links("https://slo.example"))


class Clock:
    """Sleeps that take no time."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def receiver() -> Iterator[SlackReceiver]:
    with SlackReceiver(burst=20) as found:
        yield found


@pytest.fixture
def api() -> Iterator[SlackApi]:
    with SlackApi(CHANNEL, others=frozenset({"C0OTHERS00"})) as found:
        yield found


def hook(receiver: SlackReceiver, clock: Clock) -> WebhookPoster:
    return WebhookPoster(Secret(receiver.url), "ops", sleep=clock)


def bot(api: SlackApi, clock: Clock, *, token: str = TOKEN, channel: str = CHANNEL) -> BotPoster:
    return BotPoster(Secret(token), channel, base_url=api.base_url, sleep=clock)


@dataclass
class HangingUp:
    """Reads each request and ends the connection: nobody knows what became of it."""

    url: str
    requests: int = 0


@contextmanager
def hanging_up() -> Iterator[HangingUp]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = HangingUp(f"http://127.0.0.1:{server.getsockname()[1]}/")

        def serve() -> None:
            while True:
                connection, _ = server.accept()
                with connection:
                    if not connection.recv(1 << 20):
                        return
                    found.requests += 1

        thread = threading.Thread(target=serve)
        thread.start()
        yield found
        with socket.create_connection(server.getsockname()):
            pass
        thread.join()


@contextmanager
def silent() -> Iterator[str]:
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


def nobody() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}/"


def test_a_webhook_takes_the_message_as_it_is(receiver: SlackReceiver, clock: Clock) -> None:
    assert hook(receiver, clock).post(MESSAGE) == ""
    assert receiver.refusals == []
    [taken] = receiver.messages
    assert taken.payload == {
        "text": MESSAGE.text,
        "blocks": list(MESSAGE.blocks),
        "unfurl_links": False,
        "unfurl_media": False,
    }


def test_a_rate_limit_is_waited_for_as_slack_asks(clock: Clock) -> None:
    with SlackReceiver(burst=1, rate=0.05) as receiver:
        poster = hook(receiver, clock)
        poster.post(MESSAGE)
        with pytest.raises(Refused, match="takes no more messages for 20 s"):
            poster.post(MESSAGE)
    assert clock.slept == [20.0, 20.0, 20.0]
    assert len(receiver.messages) == 1


def test_an_hour_is_not_waited_for(api: SlackApi, clock: Clock) -> None:
    api.fail(429, '{"ok": false, "error": "ratelimited"}', retry_after="3600")
    with pytest.raises(Refused, match="for 3600 s: nothing was posted"):
        bot(api, clock).post(MESSAGE)
    assert clock.slept == []


def test_a_limit_that_passes_is_posted_once(api: SlackApi, clock: Clock) -> None:
    api.fail(429, '{"ok": false, "error": "ratelimited"}', retry_after="7", times=2)
    assert bot(api, clock).post(MESSAGE) == "1784530800.000000"
    assert clock.slept == [7.0, 7.0]
    assert len(api.messages) == 1


def test_failures_of_slack_are_tried_four_times(receiver: SlackReceiver, clock: Clock) -> None:
    receiver.fail(status=503, body="", times=3)
    hook(receiver, clock).post(MESSAGE)
    assert clock.slept == [1.0, 2.0, 4.0]
    receiver.fail(status=500, body="rollup_error", times=4)
    with pytest.raises(Refused, match=r"rollup_error \(HTTP 500\)"):
        hook(receiver, clock).post(MESSAGE)
    assert len(receiver.messages) == 1


def test_what_may_have_been_posted_is_not_tried_again(clock: Clock) -> None:
    with hanging_up() as slack:
        with pytest.raises(Unsure, match=r"look at the channel, and .* --again"):
            WebhookPoster(Secret(slack.url), "ops", sleep=clock).post(MESSAGE)
        with pytest.raises(Unsure, match=r"RemoteDisconnected|ConnectionReset"):
            BotPoster(Secret(TOKEN), CHANNEL, base_url=slack.url, sleep=clock).post(MESSAGE)
    assert slack.requests == 2
    assert clock.slept == []


def test_no_answer_in_time_is_not_tried_again(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert webhook_module.TIMEOUT_S == 10
    monkeypatch.setattr(webhook_module, "TIMEOUT_S", 0.05)
    with silent() as url, pytest.raises(Unsure, match="TimeoutError"):
        WebhookPoster(Secret(url), "ops", sleep=clock).post(MESSAGE)
    assert clock.slept == []


@pytest.mark.parametrize("status", [502, 504])
def test_a_gateway_without_an_answer_may_have_passed_it_on(
    receiver: SlackReceiver, clock: Clock, status: int
) -> None:
    receiver.fail(status=status, body="<html>", times=1)
    with pytest.raises(Unsure, match=f"HTTP {status}"):
        hook(receiver, clock).post(MESSAGE)
    assert clock.slept == []


def test_what_was_never_sent_is_tried_again(clock: Clock) -> None:
    with pytest.raises(Refused, match=r"not reached \(ConnectionRefusedError: .*nothing was"):
        WebhookPoster(Secret(nobody()), "ops", sleep=clock).post(MESSAGE)
    assert clock.slept == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    ("token", "channel", "says"),
    [
        ("xoxb-another", CHANNEL, "invalid_auth: put a valid bot token"),
        (TOKEN, "C0OTHERS00", "not_in_channel: invite the bot: /invite"),
        (TOKEN, "C0UNKNOWN0", "channel_not_found: give the channel's id as in C0123456789"),
    ],
)
def test_refusals_say_what_to_do(
    api: SlackApi, clock: Clock, token: str, channel: str, says: str
) -> None:
    with pytest.raises(Refused, match=says):
        bot(api, clock, token=token, channel=channel).post(MESSAGE)
    assert clock.slept == []


def test_an_error_that_is_not_known_is_said_as_it_is(api: SlackApi, clock: Clock) -> None:
    api.fail(200, '{"ok": false, "error": "brand_new_error"}')
    with pytest.raises(Refused, match=r"brand_new_error \(HTTP 200\): see Slack's reference"):
        bot(api, clock).post(MESSAGE)


def test_a_page_of_a_proxy_is_not_taken_for_slack(receiver: SlackReceiver, clock: Clock) -> None:
    receiver.fail(status=200, body="<html>log in</html>")
    with pytest.raises(Refused, match=r"HTTP 200, '<html>log in</html>': check what stands"):
        hook(receiver, clock).post(MESSAGE)


def test_a_bot_changes_its_message(api: SlackApi, clock: Clock) -> None:
    poster = bot(api, clock)
    ts = poster.post(MESSAGE)
    other = digest(report([]), [], Links())
    assert poster.update(other, ts) == ts
    assert api.messages[ts]["text"] == other.text
    with pytest.raises(Gone, match="message_not_found"):
        poster.update(other, "1.0")


def test_a_webhook_changes_no_message(receiver: SlackReceiver, clock: Clock) -> None:
    with pytest.raises(Gone):
        hook(receiver, clock).update(MESSAGE, "1.0")


def test_a_bot_needs_an_id_not_a_name(api: SlackApi, clock: Clock) -> None:
    with pytest.raises(UserError, match=r"'#ops' is no id of a Slack channel.*C0123456789"):
        bot(api, clock, channel="#ops")


def test_no_secret_is_logged(
    receiver: SlackReceiver, api: SlackApi, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    receiver.fail(status=400, body="invalid_payload")
    with pytest.raises(Refused) as refused:
        hook(receiver, clock).post(MESSAGE)
    hook(receiver, clock).post(MESSAGE)
    bot(api, clock).post(MESSAGE)
    with pytest.raises(Refused) as unreached:
        WebhookPoster(Secret(nobody() + "T0/SECRET"), "ops", sleep=clock).post(MESSAGE)
    said = caplog.text + str(refused.value) + str(unreached.value)
    assert "XXXX" not in said
    assert TOKEN not in said
    assert "SECRET" not in said


@pytest.mark.parametrize(
    "content",
    [
        "",
        "not an address",
        "ftp://hooks.slack.com/a",
        "http://hooks.slack.com/s3cret",
        "https://[",
        "https://a:b/c",
    ],
)
def test_a_file_without_a_webhook_is_refused_and_not_shown(tmp_path: Path, content: str) -> None:
    path = tmp_path / "hook"
    path.write_text(content + "\n", encoding="utf-8")
    with pytest.raises(UserError, match="does not hold the address of a webhook") as refused:
        webhook_url(path)
    assert "s3cret" not in str(refused.value)


def test_secrets_are_read_without_their_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("https://hooks.slack.com/services/T/B/x\n", encoding="utf-8")
    assert webhook_url(path).reveal() == "https://hooks.slack.com/services/T/B/x"
    with pytest.raises(UserError, match="starts with xoxb-") as refused:
        bot_token(path)
    assert "hooks" not in str(refused.value)
    path.write_text("xoxb-1\n", encoding="utf-8")
    assert bot_token(path).reveal() == "xoxb-1"
    with pytest.raises(UserError, match="No such file"):
        bot_token(tmp_path / "none")
