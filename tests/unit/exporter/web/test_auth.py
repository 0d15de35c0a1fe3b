"""Who may read: Basic with bcrypt, bearer tokens, and what stays open."""

import asyncio
import base64
import hashlib
import json
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import bcrypt
import pytest

from mm2slo_core.config.secret import Secret
from mm2slo_web.authenticator import Authenticator, TooManyLoginsError

PASSWORD = "correct horse é"
HASH = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
TOKEN = "a-token"
DIGEST = hashlib.sha256(TOKEN.encode()).hexdigest()


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def allows(authenticator: Authenticator, authorization: str | None) -> bool:
    return asyncio.run(authenticator.allows(authorization))


def both() -> Authenticator:
    return Authenticator({"me": Secret(HASH)}, (Secret("0" * 64), Secret(DIGEST)))


@pytest.mark.parametrize(
    ("authorization", "allowed"),
    [
        (basic("me", PASSWORD), True),
        (basic("me", PASSWORD).replace("Basic", "bAsIc"), True),
        (basic("me", PASSWORD + "x"), False),
        (basic("you", PASSWORD), False),
        (basic("", ""), False),
        (basic("me", "x" * 100), False),
        (basic("me", "\0"), False),
        ("Basic", False),
        ("Basic !!!", False),
        ("Basic " + base64.b64encode(b"me").decode(), False),
        ("Basic " + base64.b64encode(b"\xff:x").decode(), False),
        (f"Bearer {TOKEN}", True),
        (f"bearer  {TOKEN}", True),
        ("Bearer a-tokem", False),
        (f"Bearer {DIGEST}", False),
        ("Bearer ", False),
        ("Bearer \xff", False),
        ("Digest x", False),
        ("", False),
        (None, False),
    ],
)
def test_only_the_right_credentials_are_allowed(
    authorization: str | None,
    allowed: bool,
) -> None:
    authenticator = both()
    for _ in range(2):  # the remembered answer is the same answer
        assert allows(authenticator, authorization) is allowed


def test_authenticator_rejects_unconfigured_scheme() -> None:
    assert not allows(Authenticator({"me": Secret(HASH)}, ()), "Bearer ")
    assert not allows(Authenticator({}, (Secret(DIGEST),)), basic("me", PASSWORD))


def test_a_right_password_costs_bcrypt_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[bytes] = []
    original = bcrypt.checkpw

    def counting(password: bytes, known: bytes) -> bool:
        checked.append(password)
        return original(password, known)

    monkeypatch.setattr(bcrypt, "checkpw", counting)
    authenticator = both()
    assert [allows(authenticator, basic("me", PASSWORD)) for _ in range(5)] == [True] * 5
    assert len(checked) == 1
    assert not allows(authenticator, basic("me", "wrong"))
    assert not allows(authenticator, basic("unknown", PASSWORD))  # takes as long as a known user
    assert checked == [PASSWORD.encode(), b"wrong", PASSWORD.encode()]


def test_what_is_remembered_is_not_the_password_and_differs_by_process() -> None:
    one, other = both(), both()
    assert allows(one, basic("me", PASSWORD))
    assert allows(other, basic("me", PASSWORD))
    kept = pickle.dumps([one._right, one._users, one._tokens])
    assert PASSWORD.encode() not in kept
    assert one._right != other._right


async def brute_force(authenticator: Authenticator, network: str) -> None:
    """Try wrong passwords from one network, more at once than it may, until cancelled."""

    async def attempt(number: int) -> None:
        while True:
            with suppress(TooManyLoginsError):
                wrong, peer = basic("me", f"wrong-{number}"), network.format(number)
                assert not await authenticator.allows(wrong, peer)
            await asyncio.sleep(0)

    await asyncio.gather(*map(attempt, range(20)))


@pytest.mark.parametrize("network", ["192.0.2.7", "2001:db8:7::{:x}"])
def test_brute_force_does_not_lock_out_another_address(
    network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[bool] = []

    def check(password: bytes, _known: bytes) -> bool:
        checked.append(password == PASSWORD.encode())
        return checked[-1]

    monkeypatch.setattr(bcrypt, "checkpw", check)
    authenticator = both()

    async def scrape() -> int:
        attack = asyncio.create_task(brute_force(authenticator, network))
        while len(checked) < 20:
            await asyncio.sleep(0)
        before = len(checked)
        assert await authenticator.allows(basic("me", PASSWORD), "2001:db8:8::1")
        attack.cancel()
        return len(checked) - before

    # The check in progress, and one of the attacker between the two.
    assert asyncio.run(scrape()) <= 4


def test_reload_keeps_what_is_known_of_unchanged_hashes() -> None:
    before = Authenticator({"me": Secret(HASH), "you": Secret(HASH)}, ())
    for user in ("me", "you"):
        assert allows(before, basic(user, PASSWORD))
    other = bcrypt.hashpw(b"other", bcrypt.gensalt(4)).decode()
    users = {"me": Secret(HASH), "you": Secret(other)}
    after = Authenticator(users, (), before)
    assert after.recognizes(basic("me", PASSWORD))
    assert not after.recognizes(basic("you", PASSWORD))
    assert not allows(after, basic("you", PASSWORD))
    assert not Authenticator({}, (Secret(DIGEST),), before).recognizes(basic("me", PASSWORD))


def test_changed_file_keeps_what_is_known_of_unchanged_hashes(
    serve: Any, web_config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, header = serve(web_config=web_config), {"Authorization": basic("me", PASSWORD)}
    assert client("/metrics", header).status == 200
    monkeypatch.setattr(bcrypt, "checkpw", lambda *_: pytest.fail("checked again"))
    replace(web_config, json.dumps({"basic_auth_users": {"me": HASH}}))
    assert client("/metrics", header).status == 200


def test_liveness_does_not_wait_for_password_checks(
    serve: Any, web_config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bcrypt, "checkpw", lambda *_: pytest.fail("checked"))
    header = {"Authorization": basic("me", "wrong")}
    assert serve(web_config=web_config)("/healthz", header).status == 200


@pytest.fixture
def web_config(tmp_path: Path) -> Path:
    file = tmp_path / "web.yml"
    content = {
        "basic_auth_users": {"me": HASH},
        "bearer_tokens_sha256": [DIGEST],
        "http_server_config": {"headers": {"X-Own": "1", "Server": "x"}},
    }
    file.write_text(json.dumps(content))
    return file


@pytest.mark.parametrize("path", ["/", "/metrics", "/nothing"])
def test_reading_needs_credentials(serve: Any, web_config: Path, path: str) -> None:
    client = serve(web_config=web_config)
    answer = client(path)
    assert (answer.status, answer.body) == (401, b"authentication is needed\n")
    assert [value for name, value in answer.all_headers if name == "www-authenticate"] == [
        'Basic realm="mm2slo", charset="UTF-8"',
        'Bearer realm="mm2slo"',
    ]
    assert client.site.calls == []


@pytest.mark.parametrize("header", [basic("me", PASSWORD), f"Bearer {TOKEN}"])
def test_credentials_open_the_door(serve: Any, web_config: Path, header: str) -> None:
    client = serve(web_config=web_config)
    assert client("/metrics", {"Authorization": header}).status == 200
    assert client("/nothing", {"Authorization": header}).status == 404


def test_a_reload_needs_credentials_too(serve: Any, web_config: Path) -> None:
    client = serve(web_config=web_config)
    assert client("/-/reload", method="POST").status == 401
    header = {"Authorization": f"Bearer {TOKEN}"}
    assert client("/-/reload", header, method="POST").status == 200


def test_probes_stay_open_but_name_no_flow(serve: Any, web_config: Path) -> None:
    client = serve(web_config=web_config)
    assert client("/healthz").status == 200
    answer = client("/readyz")
    assert (answer.status, json.loads(answer.body)) == (200, {"ready": True})
    header = {"Authorization": f"Bearer {TOKEN}"}
    assert "us->eu" in client("/readyz", header).body.decode()


def test_configured_headers_are_sent_and_win(serve: Any, web_config: Path) -> None:
    answer = serve(web_config=web_config)("/healthz")
    assert answer.headers["x-own"] == "1"
    assert [value for name, value in answer.all_headers if name == "server"] == ["x"]


def test_a_change_of_users_is_seen_without_a_restart(serve: Any, web_config: Path) -> None:
    client = serve(web_config=web_config)
    header = {"Authorization": f"Bearer {TOKEN}"}
    assert client("/metrics", header).status == 200
    replace(web_config, json.dumps({"basic_auth_users": {"me": HASH}}))
    assert client("/metrics", header).status == 401
    assert client("/metrics", {"Authorization": basic("me", PASSWORD)}).status == 200


def test_a_file_that_became_wrong_changes_nothing_and_is_said_once(
    serve: Any, web_config: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = serve(web_config=web_config)
    replace(web_config, "basic_auth_users: {me: hunter2}")
    for _ in range(3):
        assert client("/metrics").status == 401
        assert client("/metrics", {"Authorization": f"Bearer {TOKEN}"}).status == 200
    assert caplog.text.count("keeping the previous TLS and access rules") == 1
    assert "hunter2" not in caplog.text
    web_config.unlink()
    assert client("/metrics").status == 401


def replace(file: Path, text: str) -> None:
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(file)
