"""Tokens from a file that changes while the service runs."""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING

import pytest
from serving import served

from mm2slo_core.errors import UserError
from mm2slo_report.web.token_file import TokenFile

if TYPE_CHECKING:
    from pathlib import Path

    from mm2slo_store import Store


def line(token: str, scope: str = "read") -> str:
    return f"{hashlib.sha256(token.encode()).hexdigest()} {scope} {token}\n"


class Watched:
    """A file of tokens, and a clock."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self._now = 0.0
        path.write_text(text)
        self.file = TokenFile(str(path), clock=lambda: self._now)

    def good(self) -> dict[str, str]:
        """Name -> scope, a while later."""
        self._now += 1.0
        return {each.name: each.scope.value for each in self.file.good}


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "tokens", line("ana") + line("ben", "write"))


def test_who_is_taken_out_is_let_in_no_more_and_who_is_added_is(watched: Watched) -> None:
    assert watched.good() == {"ana": "read", "ben": "write"}
    watched.path.write_text(line("ben") + line("eve", "write"))
    assert watched.good() == {"ben": "read", "eve": "write"}


def test_a_file_that_is_replaced_by_another_is_noticed(watched: Watched) -> None:
    new = watched.path.with_name("new")
    new.write_text(line("eva") + line("ben", "write"))
    new.replace(watched.path)
    assert watched.good() == {"eva": "read", "ben": "write"}


def test_it_is_looked_at_once_a_second_at_most(watched: Watched) -> None:
    watched.path.write_text(line("eve"))
    assert {each.name for each in watched.file.good} == {"ana", "ben"}
    assert watched.good() == {"eve": "read"}


def test_a_broken_file_takes_away_and_gives_nothing(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        watched.path.write_text(
            line("ana", "write") + "hunter2 is no digest\n" + line("eve", "write")
        )
        # Not ben, who is taken out; not eve, who is new; and ana still may not write.
        assert watched.good() == {"ana": "read"}
    (told,) = caplog.messages
    assert "line 2: expected the 64 hex digits" in told
    assert "1 of 2 are" in told
    assert "hunter2" not in told
    watched.path.write_text(line("ana", "write") + line("eve", "write"))
    assert watched.good() == {"ana": "write", "eve": "write"}


@pytest.mark.parametrize("content", [None, b"", b"# nobody\n", b"\xff\xfe"])
def test_a_file_that_is_gone_or_empty_lets_nobody_in(
    watched: Watched, caplog: pytest.LogCaptureFixture, content: bytes | None
) -> None:
    if content is None:
        watched.path.unlink()
    else:
        watched.path.write_bytes(content)
    with caplog.at_level(logging.ERROR):
        assert watched.good() == {}
    assert len(caplog.messages) == 1
    # Nobody is told again until something changes.
    assert watched.good() == {}
    assert len(caplog.messages) == 1


def test_a_start_with_a_file_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: No such file"):
        TokenFile(str(tmp_path / "nowhere"))
    (tmp_path / "tokens").write_text("x\n")
    with pytest.raises(UserError, match="line 1"):
        TokenFile(str(tmp_path / "tokens"))


def test_the_service_goes_by_the_file_as_it_is(watched: Watched, store: Store) -> None:
    service = served(store, let_in=watched.file)

    def status(token: str) -> int:
        watched.good()
        headers = {"Authorization": f"Bearer {token}"}
        return int(service.client.get("/slo", headers=headers).status_code)

    assert (status("ana"), status("ben"), status("eve")) == (200, 200, 401)
    watched.path.write_text(line("eve"))
    assert (status("ana"), status("ben"), status("eve")) == (401, 401, 200)
    assert service.client.get("/readyz").status_code == 200
    watched.path.unlink()
    assert status("eve") == 401
    answer = service.client.get("/readyz")
    assert answer.status_code == 503
    assert "lists no token that lets anybody in" in answer.text
    # Without a file that can be read nobody becomes one of those who need no token.
    assert service.client.get("/slo").status_code == 401
