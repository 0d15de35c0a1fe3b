"""Fetching an exporter's `/metrics`."""

import base64
from pathlib import Path

import pytest
from recording_server import Answer, RecordingServer, Request

from mm2slo_report import http_session
from mm2slo_report.http_session import ExporterFetcher
from mm2slo_report.sli_source import SliSourceError


def test_fetcher_ignores_environment_proxy_and_netrc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[Request] = []

    def response(request: Request) -> Answer:
        requests.append(request)
        return Answer(body="a 1\nb 2\n")

    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login eve password s3cret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with RecordingServer(response) as server:
        assert list(ExporterFetcher()(server.address)) == ["a 1", "b 2"]
        (tmp_path / "token").write_text("t0ken\n")
        assert list(ExporterFetcher(tmp_path / "token")(server.address)) == ["a 1", "b 2"]
    logins = [each.headers.get("authorization") for each in requests]
    assert logins == [None, "Bearer t0ken"]
    assert requests[0].path == "/metrics"
    assert base64.b64encode(b"eve:s3cret").decode() not in str(requests)


@pytest.mark.parametrize(
    ("status", "headers", "message"),
    [
        (503, {}, "returned status 503"),
        (302, {"Location": "http://127.0.0.1:9/"}, "returned status 302"),
    ],
)
def test_unexpected_status_raises_source_error(
    status: int, headers: dict[str, str], message: str
) -> None:
    with (
        RecordingServer(lambda _: Answer(status=status, headers=headers)) as server,
        pytest.raises(SliSourceError, match=message),
    ):
        list(ExporterFetcher()(server.address))


def test_connection_error_and_invalid_token_raise_source_error(tmp_path: Path) -> None:
    with pytest.raises(SliSourceError, match=r"cannot fetch .* \(ConnectionError\)") as error:
        list(ExporterFetcher()("http://127.0.0.1:9"))
    assert not error.value.slow
    for content in (b"s3cret\nX-Evil: 1", b"\xff\xfe"):
        (tmp_path / "token").write_bytes(content)
        with pytest.raises(SliSourceError, match="cannot fetch") as refused:
            list(ExporterFetcher(tmp_path / "token")("http://127.0.0.1:9"))
        assert "s3cret" not in str(refused.value)


def test_slow_or_large_response_raises_source_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with RecordingServer(lambda _: Answer(body="a 1\n" * 10)) as server:
        with monkeypatch.context() as patch:
            patch.setattr(http_session, "_TOTAL_TIMEOUT", -1.0)
            with pytest.raises(SliSourceError, match="too slow") as late:
                list(ExporterFetcher()(server.address))
            assert late.value.slow
        monkeypatch.setattr(http_session, "_MAX_BYTES", 20)
        with pytest.raises(SliSourceError, match="too large"):
            list(ExporterFetcher()(server.address))
