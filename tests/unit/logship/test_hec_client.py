import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from fake_hec import FakeHec, Fault, HecToken

from mm2slo_core.user_errors import UserError
from mm2slo_logship.hec_client import Connection, HecClient, HecTokenFile
from mm2slo_logship.hec_protocol import AnswerAction

_BODY = b'{"event":"a"}\n'


@pytest.fixture
def token(tmp_path: Path) -> HecTokenFile:
    (tmp_path / "token").write_text("token-1\n")
    return HecTokenFile(tmp_path / "token")


@pytest.fixture
def fake() -> Iterator[FakeHec]:
    with FakeHec() as server:
        yield server


def _client(fake: FakeHec, token: HecTokenFile, connection: Connection | None = None) -> HecClient:
    return HecClient(fake.url, token, connection or Connection(), "0.1")


def test_client_large_body_is_compressed(fake: FakeHec, token: HecTokenFile) -> None:
    client = _client(fake, token)

    for body in (_BODY, _BODY * 100):
        assert client.send(body).action is AnswerAction.ACCEPTED

    assert fake.events == ["a"] * 101
    assert [each.get("Content-Encoding") for each in fake.requests] == [None, "gzip"]
    assert fake.requests[0]["Authorization"] == "Splunk token-1"


@pytest.mark.parametrize(
    ("fault", "is_ambiguous", "text"),
    [
        (Fault(), True, "connection lost"),
        (Fault(status=200, body=b'{"code":0}', is_cut=True), True, "connection lost"),
        (Fault.html(200), True, "not an answer of HEC"),
        (Fault.html(502), False, "HTTP 502, without a HEC code"),
        (Fault.code(9), False, "HTTP 503, code 9: Server is busy"),
    ],
)
def test_client_failure_is_retried_and_says_what_happened(
    fake: FakeHec, token: HecTokenFile, fault: Fault, is_ambiguous: bool, text: str
) -> None:
    fake.faults.append(fault)

    answer = _client(fake, token).send(_BODY)

    assert answer.action is AnswerAction.RETRY
    assert answer.is_ambiguous is is_ambiguous
    assert text in str(answer)


def test_client_redirect_is_not_followed(fake: FakeHec, token: HecTokenFile) -> None:
    fake.faults.append(Fault.html(303, Location=f"{fake.url}/services/collector/event"))

    assert _client(fake, token).send(_BODY).action is AnswerAction.HOLD
    assert fake.events == []


def test_client_refused_connection_is_no_duplicate(fake: FakeHec, token: HecTokenFile) -> None:
    client = _client(fake, token)
    fake.stop()

    answer = client.send(_BODY)

    assert (answer.action, answer.is_ambiguous) == (AnswerAction.RETRY, False)
    assert (
        str(answer)
        == "cannot connect: Failed to establish a new connection: [Errno 111] Connection refused"
    )


def test_client_refused_connection_of_the_proxy_is_no_duplicate(
    fake: FakeHec, token: HecTokenFile
) -> None:
    url = fake.url
    fake.stop()

    answer = _client(fake, token, Connection(proxy=url)).send(_BODY)

    assert (answer.action, answer.is_ambiguous) == (AnswerAction.RETRY, False)
    assert answer.text.startswith("cannot connect: ")


def test_client_netrc_does_not_replace_the_token(
    fake: FakeHec, token: HecTokenFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login a password b\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))

    assert _client(fake, token).send(_BODY).action is AnswerAction.ACCEPTED


def test_client_acknowledged_ids_are_those_that_are_indexed(token: HecTokenFile) -> None:
    with FakeHec({"token-1": HecToken(has_ack=True)}) as fake:
        client = _client(fake, token)
        ids = [client.send(_BODY).ack_id for _ in range(2)]
        first = client.acknowledged([0, 1, 2], client.channel)
        second = client.acknowledged([0, 1, 2], client.channel)

    assert ids == [0, 1]
    assert (first[0], second[0]) == (frozenset({0, 1}), frozenset())


def test_client_verifies_the_certificate_and_its_name(token: HecTokenFile, tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("splunk.example").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    trusting = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    with FakeHec(tls=context) as fake:
        unknown = _client(fake, token, Connection(tls=ssl.create_default_context())).send(_BODY)
        wrong = _client(fake, token, Connection(tls=trusting)).send(_BODY)
        named = Connection(tls=trusting, server_hostname="splunk.example")
        right = _client(fake, token, named).send(_BODY)

    assert unknown.text.startswith("TLS failed")
    assert "CERTIFICATE_VERIFY_FAILED" in unknown.text
    assert "127.0.0.1" in wrong.text
    assert right.action is AnswerAction.ACCEPTED


def test_token_is_read_again_when_it_was_rotated(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")
    token = HecTokenFile(path)
    assert token.read_again() == "old"
    path.write_text("new\n")

    assert token.read_again() == "new"
    assert token.reveal() == "new"
    path.write_text("")
    assert token.read_again() == "new"
    assert token.reveal() == "new"


@pytest.mark.parametrize("content", [None, "", "two tokens", "a\nb"])
def test_token_file_without_a_token_is_a_user_error(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)

    with pytest.raises(UserError, match=r"cannot read logship.token_file '.*token': ") as error:
        HecTokenFile(path)

    assert "two tokens" not in str(error.value)


def test_token_file_that_others_can_read_is_reported_on_hosts_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "token"
    path.write_text("token-1")
    path.chmod(0o440)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert "has mode 0440" in (HecTokenFile(path).advice() or "")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert HecTokenFile(path).advice() is None
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    path.chmod(0o600)
    assert HecTokenFile(path).advice() is None
