"""The stand-in against its sources, and against senders that others wrote."""

import json
import logging
import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from fake_hec import FakeHec, HecToken
from splunk_handler import SplunkHandler
from splunk_hec_handler import SplunkHecHandler

_AUTHORIZATION = {"Authorization": "Splunk token-1"}


@pytest.fixture
def fake() -> Iterator[FakeHec]:
    with FakeHec() as server:
        yield server


def _post(
    fake: FakeHec, body: str | bytes, path: str = "event", **headers: str
) -> tuple[int, dict[str, Any]]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with urllib3.PoolManager() as pool:
        response = pool.request(
            "POST", f"{fake.url}/services/collector/{path}", body=body,
            headers=_AUTHORIZATION | named, retries=False,
        )  # fmt: skip
        return response.status, response.json()


def _events(fake: FakeHec) -> list[Any]:
    return fake.events


@pytest.mark.parametrize(
    ("bad", "code"),
    [("{", 6), ("7", 6), ('{"time": 1}', 12), ('{"event": ""}', 13),
     ('{"event": "x", "time": 1.79E9}', 15), ('{"event": "x", "fields": {"a": {}}}', 15)],
)  # fmt: skip
def test_fake_invalid_event_keeps_those_before_it(fake: FakeHec, bad: str, code: int) -> None:
    answer = _post(fake, '{"event": "a"}{"event": "b"}' + bad + '\n{"event": "c"}')

    assert answer[0] == 400
    assert (answer[1]["code"], answer[1]["invalid-event-number"]) == (code, 2)
    assert _events(fake) == ["a", "b"]


def test_fake_unknown_key_is_a_success_that_loses_the_rest(fake: FakeHec) -> None:
    assert _post(fake, '{"event": "a"}{"event": "b", "x": 1}{"event": "c"}')[1]["code"] == 0
    assert _events(fake) == ["a"]
    assert _post(fake, '{"event": "b", "x": 1}')[1]["code"] == 5


def test_fake_wrong_index_has_a_number_that_is_one_too_high() -> None:
    with FakeHec({"token-1": HecToken(indexes=("logs",))}) as fake:
        body = '{"event": "a"}{"event": "b", "index": "other"}{"event": "c"}'
        assert _post(fake, body)[1] == {
            "text": "Incorrect index", "code": 7, "invalid-event-number": 2
        }  # fmt: skip
        assert _events(fake) == ["a"]


def test_fake_large_body_is_an_invalid_format_at_event_0() -> None:
    with FakeHec(max_bytes=20) as fake:
        status, answer = _post(fake, '{"event": "a"}{"event": "b"}')

    assert (status, answer["code"], answer["invalid-event-number"]) == (400, 6, 0)


def test_fake_acknowledgement_is_per_channel_and_reported_once() -> None:
    with FakeHec({"token-1": HecToken(has_ack=True)}) as fake:
        assert _post(fake, '{"event": "a"}')[1]["code"] == 10
        assert _post(fake, '{"event": "a"}', X_Splunk_Request_Channel="x")[1]["code"] == 11
        mine, other = str(uuid.uuid4()), str(uuid.uuid4())
        ids = [
            _post(fake, '{"event": "a"}', X_Splunk_Request_Channel=mine)[1]["ackId"]
            for _ in range(2)
        ]
        assert ids == [0, 1]
        asked = json.dumps({"acks": [0, 1]})
        answers = [
            _post(fake, asked, "ack", X_Splunk_Request_Channel=channel)[1]["acks"]
            for channel in (other, mine, mine)
        ]

    no, yes = {"0": False, "1": False}, {"0": True, "1": True}
    assert answers == [no, yes, no]


def test_fake_acknowledgement_of_a_token_without_it_is_disabled(fake: FakeHec) -> None:
    assert _post(fake, '{"acks": [0]}', "ack")[1]["code"] == 14


@pytest.mark.parametrize(
    ("header", "code"), [("Bearer token-1", 3), ("Splunk other", 4), ("Splunk off", 1)]
)
def test_fake_wrong_token_is_rejected(fake: FakeHec, header: str, code: int) -> None:
    fake.index.tokens["off"] = HecToken(is_disabled=True)

    assert _post(fake, '{"event": "a"}', Authorization=header)[1]["code"] == code


def test_fake_serves_splunk_handler(fake: FakeHec) -> None:
    handler = SplunkHandler(
        host="127.0.0.1", port=fake.port, token="token-1", index="logs", protocol="http",
        sourcetype="s", flush_interval=0.0, force_keep_ahead=True,
    )  # fmt: skip
    logger = logging.Logger("third-party")  # noqa: LOG001 - of this test alone
    logger.addHandler(handler)

    logger.warning("flow us->eu stopped")
    handler.close()

    fake.index.wait_for(lambda events: len(events) == 1, 30)
    assert _events(fake) == ["flow us->eu stopped"]
    assert fake.index.events[0]["index"] == "logs"


def test_fake_serves_splunk_hec_handler(fake: FakeHec) -> None:
    handler = SplunkHecHandler(
        "127.0.0.1", "token-1", port=fake.port, proto="http", index="logs", sourcetype="s"
    )
    logger = logging.Logger("third-party")  # noqa: LOG001 - of this test alone
    logger.addHandler(handler)

    logger.warning("flow us->eu stopped")

    assert [each["message"] for each in _events(fake)] == ["flow us->eu stopped"]


@pytest.mark.long
def test_fake_serves_splunk_logging(fake: FakeHec) -> None:
    """Splunk's own sender for JavaScript: a batch with the time as text, and a rejected token."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    modules = cache / "mm2slo/splunk-logging/node_modules"
    if not modules.is_dir():
        pytest.skip("no splunk-logging: run make splunk-logging")
    program = """
        const { Logger } = require("splunk-logging");
        for (const token of ["token-1", "other"]) {
          const logger = new Logger({ url: process.argv[1], token, maxBatchCount: 2 });
          logger.error = (error, context) => console.log(`error ${error.message}`);
          const metadata = { index: "logs", sourcetype: "s", time: 1795367438.5 };
          logger.send({ message: "flow us->eu stopped", metadata });
          logger.send({ message: { n: 2 }, severity: "warn", metadata }, (error, response, body) =>
            console.log(JSON.stringify(body)));
        }
    """
    done = subprocess.run(
        ["node", "-e", program, fake.url],
        env={**os.environ, "NODE_PATH": str(modules)},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    answers = [json.loads(line) for line in done.stdout.splitlines() if line[0] == "{"]
    assert sorted(each["code"] for each in answers) == [0, 4], done.stdout
    assert _events(fake) == [
        {"message": "flow us->eu stopped", "severity": "info"},
        {"message": {"n": 2}, "severity": "warn"},
    ]
    assert {each["time"] for each in fake.index.events} == {"1795367438.500"}
    assert {each["index"] for each in fake.index.events} == {"logs"}
