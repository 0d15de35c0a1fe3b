"""The webhook and bot posters against Slack's documented behaviour."""

import http.client
import logging
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

import pytest
from digest_samples import entry, report
from fake_slack import TOKEN, FakeSlackApi, FakeSlackWebhook
from slack_sdk import http_retry

from mm2slo_core.config.secret import Secret
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_report.digest import slack_posters as webhook_module
from mm2slo_report.digest.digest_message import build_message
from mm2slo_report.digest.slack_posters import BotPoster, WebhookPoster
from mm2slo_report.digest.slo_digest import (
    MessageGoneError,
    PostRefusedError,
    PostUnconfirmedError,
    read_bot_token,
    read_webhook_url,
)
from mm2slo_report.service_settings import ReportLinks

CHANNEL = "C0123456789"
MESSAGE = build_message(
    report([entry(Flow("us", "eu"), bad=38)]), [], ReportLinks("https://slo.example")
)


class FakeSleep:
    """Records the waits of slack-sdk without sleeping, without its jitter of up to a second."""

    def __init__(self) -> None:
        self.slept: list[int] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(int(seconds))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeSleep:
    found = FakeSleep()
    for module in (http_retry.handler, http_retry.builtin_handlers):
        monkeypatch.setattr(module, "time", found)
    return found


@pytest.fixture
def receiver() -> Iterator[FakeSlackWebhook]:
    with FakeSlackWebhook(burst=20) as found:
        yield found


@pytest.fixture
def api() -> Iterator[FakeSlackApi]:
    with FakeSlackApi(CHANNEL, others=frozenset({"C0OTHERS00"})) as found:
        yield found


def hook(receiver: FakeSlackWebhook) -> WebhookPoster:
    return WebhookPoster(Secret(receiver.url), "ops")


def bot(api: FakeSlackApi, *, token: str = TOKEN, channel: str = CHANNEL) -> BotPoster:
    return BotPoster(Secret(token), channel, base_url=api.base_url)


@dataclass
class HangingUp:
    """Reads each request and closes the connection without a response."""

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
def unresponsive_server() -> Iterator[str]:
    """Accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


def closed_port_url() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}/"


def test_webhook_post_sends_text_and_blocks(receiver: FakeSlackWebhook, clock: FakeSleep) -> None:
    assert hook(receiver).post(MESSAGE) == ""
    assert receiver.refusals == []
    [taken] = receiver.messages
    assert taken.payload == {
        "text": MESSAGE.text,
        "blocks": list(MESSAGE.blocks),
        "unfurl_links": False,
        "unfurl_media": False,
    }


def test_webhook_post_rate_limited_waits_for_retry_after(clock: FakeSleep) -> None:
    with FakeSlackWebhook(burst=1, rate=0.05) as receiver:
        poster = hook(receiver)
        poster.post(MESSAGE)
        with pytest.raises(PostRefusedError, match="allows no message for 20 s"):
            poster.post(MESSAGE)
    assert clock.slept == [20, 20, 20]
    assert len(receiver.messages) == 1


def test_bot_post_retry_after_of_an_hour_is_refused(api: FakeSlackApi, clock: FakeSleep) -> None:
    api.fail(429, '{"ok": false, "error": "ratelimited"}', retry_after="3600")
    with pytest.raises(PostRefusedError, match="for 3600 s, nothing was posted"):
        bot(api).post(MESSAGE)
    assert clock.slept == []


def test_bot_post_after_rate_limit_posts_once(api: FakeSlackApi, clock: FakeSleep) -> None:
    api.fail(429, '{"ok": false, "error": "ratelimited"}', retry_after="7", times=2)
    assert bot(api).post(MESSAGE) == "1784530800.000000"
    assert clock.slept == [7, 7]
    assert len(api.messages) == 1


def test_webhook_post_server_error_is_tried_four_times(
    receiver: FakeSlackWebhook, clock: FakeSleep
) -> None:
    receiver.fail(status=503, body="", times=3)
    hook(receiver).post(MESSAGE)
    assert clock.slept == [1, 2, 4]
    receiver.fail(status=500, body="rollup_error", times=4)
    with pytest.raises(PostRefusedError, match=r"rollup_error \(HTTP 500\)"):
        hook(receiver).post(MESSAGE)
    assert len(receiver.messages) == 1


def test_post_connection_closed_without_response_is_not_retried(clock: FakeSleep) -> None:
    with hanging_up() as slack:
        with pytest.raises(PostUnconfirmedError, match=r"check the channel, and .* --again"):
            WebhookPoster(Secret(slack.url), "ops").post(MESSAGE)
        with pytest.raises(PostUnconfirmedError, match=r"RemoteDisconnected|ConnectionReset"):
            BotPoster(Secret(TOKEN), CHANNEL, base_url=slack.url).post(MESSAGE)
    assert slack.requests == 2
    assert clock.slept == []


def test_webhook_post_timeout_is_not_retried(
    clock: FakeSleep, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert webhook_module.TIMEOUT_S == 10
    monkeypatch.setattr(webhook_module, "TIMEOUT_S", 0.05)
    with unresponsive_server() as url, pytest.raises(PostUnconfirmedError, match="TimeoutError"):
        WebhookPoster(Secret(url), "ops").post(MESSAGE)
    assert clock.slept == []


def raise_on_send(monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    def raise_it(*_: object, **__: object) -> None:
        raise failure

    for module in ("slack_sdk.webhook.client", "slack_sdk.web.base_client"):
        monkeypatch.setattr(f"{module}.urlopen", raise_it)


def check_failing_post(then: type[Exception]) -> None:
    """Both posters raise *then*."""
    with pytest.raises(then):
        WebhookPoster(Secret("https://slack.example/"), "ops").post(MESSAGE)
    with pytest.raises(then):
        BotPoster(Secret(TOKEN), CHANNEL).post(MESSAGE)


@pytest.mark.parametrize(
    "reason",
    [
        ConnectionRefusedError(111, "Connection refused"),
        socket.gaierror(-2, "Name or service not known"),
        OSError(113, "No route to host"),
    ],
)
def test_unreachable_server_is_tried_four_times(
    clock: FakeSleep, monkeypatch: pytest.MonkeyPatch, reason: OSError
) -> None:
    raise_on_send(monkeypatch, URLError(reason))
    check_failing_post(PostRefusedError)
    assert clock.slept == [1, 2, 4, 1, 2, 4]


@pytest.mark.parametrize(
    "reason",
    [ssl.SSLCertVerificationError(1, "certificate verify failed"), TimeoutError("timed out")],
)
def test_permanent_connection_error_is_not_retried(
    clock: FakeSleep, monkeypatch: pytest.MonkeyPatch, reason: OSError
) -> None:
    raise_on_send(monkeypatch, URLError(reason))
    check_failing_post(PostRefusedError)
    assert clock.slept == []


@pytest.mark.parametrize(
    "failure",
    [
        URLError(ConnectionResetError(104, "reset while it was sent")),
        URLError(BrokenPipeError(32, "broken while it was sent")),
        ConnectionResetError(104, "reset"),
        http.client.RemoteDisconnected("no answer"),
        http.client.IncompleteRead(b"o"),
        TimeoutError("timed out"),
        UnicodeDecodeError("utf-8", b"\xe9", 0, 1, "invalid"),
        LookupError("unknown encoding: x-proxy"),
    ],
)
def test_error_after_sending_is_not_retried(
    clock: FakeSleep, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    raise_on_send(monkeypatch, failure)
    check_failing_post(PostUnconfirmedError)
    assert clock.slept == []


def test_post_succeeds_after_server_error_and_rate_limit(
    api: FakeSlackApi, clock: FakeSleep
) -> None:
    api.fail(503, "down")
    api.fail(429, '{"ok": false, "error": "ratelimited"}', retry_after="3")
    assert bot(api).post(MESSAGE) == "1784530800.000000"
    assert clock.slept == [1, 3]


@pytest.mark.parametrize("value", ["soon", "-1", "1.5"])
def test_retry_after_that_is_no_whole_number_is_refused(
    api: FakeSlackApi, clock: FakeSleep, value: str
) -> None:
    api.fail(429, '{"ok": false, "error": "ratelimited"}', retry_after=value)
    with pytest.raises(PostRefusedError, match=r"for \d s, nothing was posted"):
        bot(api).post(MESSAGE)
    assert clock.slept == []


def test_rate_limit_without_retry_after_waits_a_second(api: FakeSlackApi, clock: FakeSleep) -> None:
    api.fail(429, '{"ok": false, "error": "ratelimited"}')
    bot(api).post(MESSAGE)
    assert clock.slept == [1]


@pytest.mark.parametrize("status", [502, 504])
def test_webhook_post_gateway_error_is_not_retried(
    receiver: FakeSlackWebhook, clock: FakeSleep, status: int
) -> None:
    receiver.fail(status=status, body="<html>", times=1)
    with pytest.raises(PostUnconfirmedError, match=f"HTTP {status}"):
        hook(receiver).post(MESSAGE)
    assert clock.slept == []


def test_webhook_post_connection_refused_is_retried(clock: FakeSleep) -> None:
    with pytest.raises(
        PostRefusedError, match=r"unreachable \(ConnectionRefusedError: .*nothing was"
    ):
        WebhookPoster(Secret(closed_port_url()), "ops").post(MESSAGE)
    assert clock.slept == [1, 2, 4]


@pytest.mark.parametrize(
    ("token", "channel", "expected"),
    [
        ("xoxb-another", CHANNEL, "invalid_auth: write a valid bot token"),
        (TOKEN, "C0OTHERS00", "not_in_channel: invite the bot with /invite"),
        (TOKEN, "C0UNKNOWN0", "channel_not_found: give the channel's id, such as C0123456789"),
    ],
)
def test_bot_post_refused_error_shows_the_fix(
    api: FakeSlackApi, clock: FakeSleep, token: str, channel: str, expected: str
) -> None:
    with pytest.raises(PostRefusedError, match=expected):
        bot(api, token=token, channel=channel).post(MESSAGE)
    assert clock.slept == []


def test_bot_post_unknown_error_is_shown_verbatim(api: FakeSlackApi, clock: FakeSleep) -> None:
    api.fail(200, '{"ok": false, "error": "brand_new_error"}')
    with pytest.raises(
        PostRefusedError, match=r"brand_new_error \(HTTP 200\): look up this error in Slack's"
    ):
        bot(api).post(MESSAGE)


def test_webhook_post_proxy_page_is_refused(receiver: FakeSlackWebhook, clock: FakeSleep) -> None:
    receiver.fail(status=200, body="<html>log in</html>")
    with pytest.raises(
        PostRefusedError, match=r"HTTP 200, '<html>log in</html>' is not a response of Slack"
    ):
        hook(receiver).post(MESSAGE)


def test_bot_update_replaces_the_message(api: FakeSlackApi, clock: FakeSleep) -> None:
    poster = bot(api)
    ts = poster.post(MESSAGE)
    other = build_message(report([]), [], ReportLinks())
    assert poster.update(other, ts) == ts
    assert api.messages[ts]["text"] == other.text
    with pytest.raises(MessageGoneError, match="message_not_found"):
        poster.update(other, "1.0")


def test_webhook_update_raises_message_gone(receiver: FakeSlackWebhook, clock: FakeSleep) -> None:
    with pytest.raises(MessageGoneError):
        hook(receiver).update(MESSAGE, "1.0")


def test_bot_poster_channel_name_is_refused(api: FakeSlackApi, clock: FakeSleep) -> None:
    with pytest.raises(UserError, match=r"'#ops' is not the id of a Slack channel.*C0123456789"):
        bot(api, channel="#ops")


def test_posters_never_log_secrets(
    receiver: FakeSlackWebhook,
    api: FakeSlackApi,
    clock: FakeSleep,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    receiver.fail(status=400, body="invalid_payload")
    with pytest.raises(PostRefusedError) as refused:
        hook(receiver).post(MESSAGE)
    hook(receiver).post(MESSAGE)
    bot(api).post(MESSAGE)
    with pytest.raises(PostRefusedError) as unreached:
        WebhookPoster(Secret(closed_port_url() + "T0/SECRET"), "ops").post(MESSAGE)
    text = caplog.text + str(refused.value) + str(unreached.value)
    assert "XXXX" not in text
    assert TOKEN not in text
    assert "SECRET" not in text


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
def test_webhook_url_invalid_file_is_refused_without_its_content(
    tmp_path: Path, content: str
) -> None:
    path = tmp_path / "hook"
    path.write_text(content + "\n", encoding="utf-8")
    with pytest.raises(UserError, match="does not hold the URL of a webhook") as refused:
        read_webhook_url(path)
    assert "s3cret" not in str(refused.value)


def test_webhook_url_and_bot_token_are_stripped(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("https://hooks.slack.com/services/T/B/x\n", encoding="utf-8")
    assert read_webhook_url(path).reveal() == "https://hooks.slack.com/services/T/B/x"
    with pytest.raises(UserError, match="starts with xoxb-") as refused:
        read_bot_token(path)
    assert "hooks" not in str(refused.value)
    path.write_text("xoxb-1\n", encoding="utf-8")
    assert read_bot_token(path).reveal() == "xoxb-1"
    with pytest.raises(UserError, match="No such file"):
        read_bot_token(tmp_path / "none")
