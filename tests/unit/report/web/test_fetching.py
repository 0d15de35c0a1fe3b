"""An exporter's page over HTTP."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest
from recording_server import Answer, RecordingServer, Request

from mm2slo_report.sources.port import SliSourceError
from mm2slo_report.web import fetching
from mm2slo_report.web.fetching import Fetcher

if TYPE_CHECKING:
    from pathlib import Path


def test_the_environment_decides_neither_the_way_nor_the_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> Answer:
        asked.append(request)
        return Answer(body="a 1\nb 2\n")

    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login eve password s3cret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with RecordingServer(answer) as server:
        assert list(Fetcher()(server.address)) == ["a 1", "b 2"]
        (tmp_path / "token").write_text("t0ken\n")
        assert list(Fetcher(tmp_path / "token")(server.address)) == ["a 1", "b 2"]
    logins = [each.headers.get("authorization") for each in asked]
    assert logins == [None, "Bearer t0ken"]
    assert asked[0].path == "/metrics"
    assert base64.b64encode(b"eve:s3cret").decode() not in str(asked)


@pytest.mark.parametrize(
    ("status", "headers", "told"),
    [(503, {}, "answers 503"), (302, {"Location": "http://127.0.0.1:9/"}, "answers 302")],
)
def test_what_is_no_page_is_a_problem(status: int, headers: dict[str, str], told: str) -> None:
    with (
        RecordingServer(lambda _: Answer(status=status, headers=headers)) as server,
        pytest.raises(SliSourceError, match=told),
    ):
        list(Fetcher()(server.address))


def test_nobody_there_and_secrets_that_cannot_be_sent_are_problems(tmp_path: Path) -> None:
    with pytest.raises(SliSourceError, match=r"cannot be asked \(ConnectionError\)") as away:
        list(Fetcher()("http://127.0.0.1:9"))
    assert not away.value.slow
    for content in (b"s3cret\nX-Evil: 1", b"\xff\xfe"):
        (tmp_path / "token").write_bytes(content)
        with pytest.raises(SliSourceError, match="cannot be asked") as refused:
            list(Fetcher(tmp_path / "token")("http://127.0.0.1:9"))
        assert "s3cret" not in str(refused.value)


def test_a_page_that_takes_too_long_or_is_too_large_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with RecordingServer(lambda _: Answer(body="a 1\n" * 10)) as server:
        with monkeypatch.context() as patch:
            patch.setattr(fetching, "_ALTOGETHER", -1.0)
            with pytest.raises(SliSourceError, match="too slowly") as late:
                list(Fetcher()(server.address))
            assert late.value.slow
        monkeypatch.setattr(fetching, "_LARGEST", 20)
        with pytest.raises(SliSourceError, match="too much"):
            list(Fetcher()(server.address))
