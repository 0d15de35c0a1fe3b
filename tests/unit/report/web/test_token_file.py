"""Reloading of the token file."""

import hashlib
import logging
from pathlib import Path

import pytest
from report_service_fixture import start_service

from mm2slo_core.user_errors import UserError
from mm2slo_report.access_tokens import TokenFile
from mm2slo_store.store import Store


def line(token: str, scope: str = "read") -> str:
    return f"{hashlib.sha256(token.encode()).hexdigest()} {scope} {token}\n"


class WatchedFile:
    """A token file with a clock."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self._now = 0.0
        path.write_text(text)
        self.file = TokenFile(str(path), clock=lambda: self._now)

    def scopes(self) -> dict[str, str]:
        """Scopes by name, one second later."""
        self._now += 1.0
        return {each.name: each.scope.value for each in self.file.valid}


@pytest.fixture
def watched(tmp_path: Path) -> WatchedFile:
    return WatchedFile(tmp_path / "tokens", line("ana") + line("ben", "write"))


def test_changed_token_file_revokes_and_adds_tokens(watched: WatchedFile) -> None:
    assert watched.scopes() == {"ana": "read", "ben": "write"}
    watched.path.write_text(line("ben") + line("eve", "write"))
    assert watched.scopes() == {"ben": "read", "eve": "write"}


def test_replaced_token_file_is_reloaded(watched: WatchedFile) -> None:
    new = watched.path.with_name("new")
    new.write_text(line("eva") + line("ben", "write"))
    new.replace(watched.path)
    assert watched.scopes() == {"eva": "read", "ben": "write"}


def test_token_file_is_checked_at_most_once_per_second(watched: WatchedFile) -> None:
    watched.path.write_text(line("eve"))
    assert {each.name for each in watched.file.valid} == {"ana", "ben"}
    assert watched.scopes() == {"eve": "read"}


def test_invalid_token_file_only_revokes_tokens(
    watched: WatchedFile, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        watched.path.write_text(
            line("ana", "write") + "hunter2 is no digest\n" + line("eve", "write")
        )
        # ben is revoked, eve is new, and ana keeps her narrower scope.
        assert watched.scopes() == {"ana": "read"}
    (message,) = caplog.messages
    assert "line 2: expected the 64 hex digits" in message
    assert "keeping 1 of the 2 previously loaded tokens" in message
    assert "hunter2" not in message
    watched.path.write_text(line("ana", "write") + line("eve", "write"))
    assert watched.scopes() == {"ana": "write", "eve": "write"}


def test_invalid_token_file_only_narrows_flows(watched: WatchedFile) -> None:
    watched.path.write_text(line("ana", "read:us->eu,us->ap") + line("ben"))
    assert set(watched.scopes()) == {"ana", "ben"}
    watched.path.write_text(line("ana", "read:us->eu,eu->us") + line("ben", "read:a->b") + "x\n")
    watched.scopes()
    assert {each.name: each.flows for each in watched.file.valid} == {
        "ana": ("us->eu",), "ben": ("a->b",),
    }  # fmt: skip
    watched.path.write_text(line("ana") + line("ben") + "x\n")
    watched.scopes()
    assert {each.name: each.flows for each in watched.file.valid} == {
        "ana": ("us->eu",), "ben": ("a->b",),
    }  # fmt: skip


@pytest.mark.parametrize("content", [None, b"", b"# empty\n", b"\xff\xfe"])
def test_missing_or_empty_token_file_revokes_all_tokens(
    watched: WatchedFile, caplog: pytest.LogCaptureFixture, content: bytes | None
) -> None:
    if content is None:
        watched.path.unlink()
    else:
        watched.path.write_bytes(content)
    with caplog.at_level(logging.ERROR):
        assert watched.scopes() == {}
    assert len(caplog.messages) == 1
    # The message is not repeated until the file changes.
    assert watched.scopes() == {}
    assert len(caplog.messages) == 1


def test_start_with_invalid_token_file_raises(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        TokenFile(str(tmp_path / "nowhere"))
    (tmp_path / "tokens").write_text("x\n")
    with pytest.raises(UserError, match="line 1"):
        TokenFile(str(tmp_path / "tokens"))


def test_service_uses_current_token_file(watched: WatchedFile, store: Store) -> None:
    service = start_service(store, token_source=watched.file)

    def status(token: str) -> int:
        watched.scopes()
        headers = {"Authorization": f"Bearer {token}"}
        return int(service.client.get("/slo", headers=headers).status_code)

    assert (status("ana"), status("ben"), status("eve")) == (200, 200, 401)
    watched.path.write_text(line("eve"))
    assert (status("ana"), status("ben"), status("eve")) == (401, 401, 200)
    assert service.client.get("/readyz").status_code == 200
    watched.path.unlink()
    assert status("eve") == 401
    response = service.client.get("/readyz")
    assert response.status_code == 503
    assert "lists no valid token" in response.text
    # A missing file does not disable authentication.
    assert service.client.get("/slo").status_code == 401
