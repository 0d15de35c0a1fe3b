"""Prometheus's HTTP API as documented, and its errors."""

import json
import math
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

import pytest
from recording_server import Answer, RecordingServer, Request

from mm2slo_report.http_session import Server
from mm2slo_report.prometheus_api import PrometheusClient, QueriedPoint, QueriedSeries
from mm2slo_report.sli_source import SliSourceError

SECRET: Final = "s3cret-of-the-token"
AT: Final = 1_790_000_000_123


def success(kind: str, result: list[Any], **more: object) -> Answer:
    document = {"status": "success", "data": {"resultType": kind, "result": result}, **more}
    return Answer(body=json.dumps(document), content_type="application/json")


def failure(status: int, kind: str, text: str) -> Answer:
    document = {"status": "error", "errorType": kind, "error": text}
    return Answer(status, json.dumps(document), content_type="application/json")


class FakePrometheus:
    """Takes what the API documents and nothing else; answers as configured."""

    def __init__(self) -> None:
        self.answer = success("vector", [])
        self.requests: list[Request] = []
        self.forms: list[dict[str, str]] = []
        self._server = RecordingServer(self._answer)

    def _answer(self, request: Request) -> Answer:
        self.requests.append(request)
        documented = {
            "/api/v1/query": {"query", "time", "timeout"},
            "/api/v1/query_range": {"query", "start", "end", "step", "timeout"},
        }
        path = request.path.removeprefix("/prometheus")
        if path not in documented:
            return self.answer if request.method == "GET" else Answer(405, "")
        if request.method != "POST":
            return Answer(405, "")
        form = {name: value for name, [value] in parse_qs(request.body.decode()).items()}
        if (
            set(form) != documented[path]
            or request.headers["content-type"] != "application/x-www-form-urlencoded"
        ):
            return failure(400, "bad_data", f"invalid parameters {sorted(form)}")
        self.forms.append(form)
        return self.answer

    @property
    def url(self) -> str:
        return self._server.address


@pytest.fixture
def fake() -> Iterator[FakePrometheus]:
    served = FakePrometheus()
    with served._server:
        yield served


def client(fake: FakePrometheus, **given: Any) -> PrometheusClient:
    return PrometheusClient(Server(url=fake.url, **given), timeout=5.0)


def problem(ask: Callable[[], object]) -> SliSourceError:
    with pytest.raises(SliSourceError) as caught:
        ask()
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_query_is_posted_with_its_instant(fake: FakePrometheus) -> None:
    fake.answer = success("vector", [{"metric": {"flow": "us->eu"}, "value": [AT / 1000, "42.5"]}])
    assert client(fake).query("x", AT) == [
        QueriedSeries({"flow": "us->eu"}, (QueriedPoint(AT, 42.5),))
    ]
    assert fake.forms == [{"query": "x", "time": "1790000000.123", "timeout": "5000ms"}]


def test_a_range_of_samples_and_a_range_of_instants(fake: FakePrometheus) -> None:
    fake.answer = success("matrix", [{"metric": {}, "values": [[1.5, "1"], [61.5, "2"]]}])
    expected = [QueriedSeries({}, [QueriedPoint(1500, 1.0), QueriedPoint(61500, 2.0)])]
    assert client(fake).query("x[2m]", 61_500) == expected
    assert client(fake).query_range("x", 1500, 61_500, 60_000) == expected
    assert fake.forms[1] == {
        "query": "x",
        "start": "1.500",
        "end": "61.500",
        "step": "60.000",
        "timeout": "5000ms",
    }


def test_values_that_are_not_finite_are_kept(fake: FakePrometheus) -> None:
    said = [{"metric": {}, "value": [1, text]} for text in ("NaN", "+Inf", "-Inf")]
    fake.answer = success("vector", said)
    nan, above, below = (each.points[0].value for each in client(fake).query("x", 1000))
    assert math.isnan(nan)
    assert (above, below) == (math.inf, -math.inf)


def test_address_may_have_a_path(fake: FakePrometheus) -> None:
    client_ = PrometheusClient(Server(url=f"{fake.url}/prometheus/"))
    assert client_.query("x", AT) == []
    assert fake.requests[0].path == "/prometheus/api/v1/query"


def test_token_file_is_read_for_each_request(fake: FakePrometheus, tmp_path: Path) -> None:
    file = tmp_path / "token"
    asked = client(fake, token_file=file)
    for token in (SECRET, "another"):
        file.write_text(f"{token}\n")
        asked.query("x", AT)
    said = [each.headers["authorization"] for each in fake.requests]
    assert said == [f"Bearer {SECRET}", "Bearer another"]


@pytest.mark.parametrize(
    ("answer", "said", "slow"),
    [
        (
            failure(400, "bad_data", "1:3: parse error:\n unclosed"),
            "refused (bad_data): 1:3: parse error: unclosed",
            False,
        ),
        (
            failure(422, "execution", "too many samples"),
            "refused (execution): too many samples",
            False,
        ),
        (failure(503, "timeout", "query timed out"), "refused (timeout): query timed out", True),
        (failure(503, "canceled", "query was canceled"), "(canceled)", True),
        (Answer(500, "oops"), "returned HTTP 500", False),
        (Answer(504, "<html>"), "returned HTTP 504", True),
        (Answer(401, "Unauthorized"), "returned HTTP 401: authentication required", False),
        (Answer(302, "", {"Location": "https://sso.example"}), "returned HTTP 302", False),
        (Answer(200, "<html>Prometheus</html>"), "returned an unexpected response", False),
        (Answer(200, "[]"), "unexpected response", False),
        (Answer(200, '{"status": "success"}'), "unexpected response", False),
        (success("scalar", []), "unexpected response", False),
        (success("vector", [{"metric": {}, "value": [1]}]), "unexpected response", False),
        (success("vector", [{"metric": {}, "value": [1, "x"]}]), "unexpected response", False),
        (success("vector", [{"value": [1, "1"]}]), "unexpected response", False),
        (
            success("vector", [], warnings=["store 10.0.0.1 was not reached"]),
            "returned a partial response: store 10.0.0.1 was not reached",
            False,
        ),
    ],
)
def test_unexpected_response_raises_source_error(
    fake: FakePrometheus,
    tmp_path: Path,
    answer: Answer,
    said: str,
    slow: bool,
) -> None:
    (tmp_path / "token").write_text(SECRET)
    fake.answer = answer
    found = problem(lambda: client(fake, token_file=tmp_path / "token").query("x", AT))
    assert said in str(found)
    assert str(found).startswith(f"Prometheus at {fake.url} ")
    assert found.slow == slow


def test_hints_alone_make_no_answer_partial(fake: FakePrometheus) -> None:
    fake.answer = success("vector", [], infos=["metric might not be a counter"])
    assert client(fake).query("x", AT) == []


def test_connection_refused_raises_source_error() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        url = f"http://report:{SECRET}@127.0.0.1:{port}"
        found = problem(lambda: PrometheusClient(Server(url=url)).query("x", AT))
    expected = f"Prometheus at http://127.0.0.1:{port} is unreachable: Connection refused"
    assert str(found) == expected
    assert not found.slow


def test_no_response_in_time_is_slow() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        asked = PrometheusClient(Server(url=url), timeout=0.05)
        found = problem(lambda: asked.query("x", AT))
    assert str(found) == f"Prometheus at {url} did not respond within 0.05 s"
    assert found.slow


def test_truncated_response_raises_source_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as cut:

        def serve() -> None:
            connection, _ = cut.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{")

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{cut.getsockname()[1]}"
        found = problem(lambda: PrometheusClient(Server(url=url)).query("x", AT))
        thread.join()
    assert "sent a truncated response" in str(found) or "is unreachable" in str(found)
    assert not found.slow


def test_missing_token_file_raises_source_error(fake: FakePrometheus, tmp_path: Path) -> None:
    missing = tmp_path / "token"
    found = problem(lambda: client(fake, token_file=missing).query("x", AT))
    assert f"cannot read a file: {missing}: No such file" in str(found)


def test_invalid_token_is_not_sent(fake: FakePrometheus, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\nX-Injected: yes")
    found = problem(lambda: client(fake, token_file=tmp_path / "token").query("x", AT))
    assert "forbidden characters" in str(found)
    assert not fake.requests


def test_rule_groups_are_listed(fake: FakePrometheus) -> None:
    groups = [{"name": "mm2-slo-steps", "rules": []}, {"name": "other", "rules": []}]
    document = {"status": "success", "data": {"groups": groups}}
    fake.answer = Answer(body=json.dumps(document))
    assert client(fake).rule_groups() == {"mm2-slo-steps", "other"}
    assert fake.requests[0].path == "/api/v1/rules"
    fake.answer = Answer(body='{"status": "success", "data": {"groups": [1]}}')
    assert "unexpected response" in str(problem(client(fake).rule_groups))


def test_rule_groups_of_another_namespace_are_not_listed(fake: FakePrometheus) -> None:
    groups = [
        {"name": name, "rules": [{"labels": {"namespace": namespace} if namespace else {}}]}
        for name, namespace in (("mm2-slo-steps", "a"), ("mm2-canary", "b"), ("other", ""))
    ]
    fake.answer = Answer(body=json.dumps({"status": "success", "data": {"groups": groups}}))
    assert client(fake).rule_groups("a") == {"mm2-slo-steps"}
    assert client(fake).rule_groups() == {"mm2-slo-steps", "mm2-canary", "other"}
