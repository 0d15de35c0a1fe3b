"""Log lines of requests, and the id that they share with the response."""

import io
import json
import logging
import re
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn
from report_service_fixture import sample_source, start_service
from starlette.types import Receive, Scope, Send

from mm2slo_core.log_redaction import JsonFormatter
from mm2slo_lab.managed_process import wait_for
from mm2slo_store.store import Store
from mm2slo_web.service_telemetry import RequestLog


@pytest.fixture
def lines() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """What the service's log has so far, at level debug."""
    output, root = io.StringIO(), logging.getLogger()
    handler, level = logging.StreamHandler(output), root.level
    handler.setFormatter(JsonFormatter("repl-api"))
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield lambda: [json.loads(line) for line in output.getvalue().splitlines()]
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.mark.parametrize(
    ("sent", "pattern"),
    [
        ("a-1.B_2", r"a-1\.B_2"),
        (None, "[0-9a-f]{32}"),
        ("", "[0-9a-f]{32}"),
        ("a b", "[0-9a-f]{32}"),
        ('"}\x7f', "[0-9a-f]{32}"),
        ("x" * 65, "[0-9a-f]{32}"),
    ],
)
@pytest.mark.parametrize(
    ("path", "logged", "status", "level"),
    [
        ("/slo?sort=name", "/slo", 422, "INFO"),
        ("/slo", "/slo", 200, "INFO"),
        ("/a%0A%1B", "/a%0A%1B", 404, "INFO"),
        ("/healthz", "/healthz", 200, "DEBUG"),
    ],
)
def test_request_has_one_line_with_the_id_of_its_response(
    store: Store,
    lines: Callable[[], list[dict[str, Any]]],
    *,
    sent: str | None,
    pattern: str,
    path: str,
    logged: str,
    status: int,
    level: str,
) -> None:
    headers = {} if sent is None else {"X-Request-ID": sent}
    client = start_service(store, sample_source()).client

    response = client.get(path, headers=headers)

    assert response.status_code == status
    request_id = response.headers["X-Request-ID"]
    assert re.fullmatch(pattern, request_id)
    (line,) = (each for each in lines() if each["logger"].endswith("service_telemetry"))
    assert (line["level"], line["message"]) == (level, f"GET {logged} {status}")
    assert line["request_id"] == request_id
    assert line["seconds"] >= 0.0


def test_rejected_request_has_an_id(
    store: Store, lines: Callable[[], list[dict[str, Any]]]
) -> None:
    client = start_service(store, sample_source()).client

    response = client.get("/slo", headers={"Host": "other.example", "X-Request-ID": "r-1"})

    assert (response.status_code, response.headers["X-Request-ID"]) == (421, "r-1")
    (line,) = (each for each in lines() if each.get("request_id") == "r-1")
    assert line["message"] == "GET /slo 421"


def test_traceback_of_the_server_has_the_id(
    lines: Callable[[], list[dict[str, Any]]],
) -> None:
    async def fail(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise RuntimeError("broken")

    config = uvicorn.Config(RequestLog(fail, frozenset()), log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/slo"
        try:
            with pytest.raises(urllib.error.HTTPError, match="500"):
                urllib.request.urlopen(
                    urllib.request.Request(url, headers={"X-Request-ID": "r-2"}), timeout=60
                )
        finally:
            server.should_exit = True
            thread.join()

    def found() -> list[dict[str, Any]]:
        return [each for each in lines() if each.get("request_id") == "r-2"]

    wait_for(lambda: len(found()) >= 2, "both lines")
    messages = {each["message"].splitlines()[0]: each for each in found()}
    assert messages["GET /slo 500"]["level"] == "WARNING"
    assert messages["Exception in ASGI application"]["error.type"] == "RuntimeError"
