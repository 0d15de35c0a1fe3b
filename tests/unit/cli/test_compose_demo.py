"""The secret files and the Slack page of docker-compose.yml's demo."""

import hashlib
import json
import ssl
import stat
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from mm2slo_cli.compose_demo import create_secret_files, slack_page
from mm2slo_lab.receiver_stubs import SlackStub, hec_stub
from mm2slo_logship.hec_client import Connection, HecClient, HecTokenFile
from mm2slo_logship.hec_protocol import envelope, envelope_start

GOLDEN = Path(__file__).parents[2] / "integration" / "golden" / "slack" / "page-firing.json"
PAGE: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))


def create(folder: Path) -> list[str]:
    return create_secret_files(folder, "us", "splunk", "http://slack:8080/services/demo")


def texts(folder: Path) -> dict[str, str]:
    return {each.name: each.read_text(encoding="ascii") for each in folder.iterdir()}


def test_secret_files_are_readable_by_owner_and_group_and_two_by_their_owner(
    tmp_path: Path,
) -> None:
    create(tmp_path)
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}
    assert [modes.pop(name) for name in ("pgpass", "splunk-hec-token")] == [0o400, 0o400]
    assert set(modes.values()) == {0o440}


def test_secret_files_belong_together(tmp_path: Path) -> None:
    create(tmp_path)
    found = texts(tmp_path)
    digest = hashlib.sha256(found["report-token"].encode()).hexdigest()
    assert found["report-tokens"] == f"{digest} read demo\n"
    assert found["pgpass"] == f"postgres:*:*:*:{found['postgres-password']}\n"
    for host, issued, authority in (
        ("us", "us-broker.pem", "us-ca.pem"), ("splunk", "splunk.pem", "splunk-ca.pem"),
    ):  # fmt: skip
        own, ca = (
            x509.load_pem_x509_certificate(found[each].encode()) for each in (issued, authority)
        )
        own.verify_directly_issued_by(ca)
        names = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert names.get_values_for_type(x509.DNSName) == [host]


def test_secret_files_that_exist_are_kept_and_a_missing_one_is_renewed_with_its_pair(
    tmp_path: Path,
) -> None:
    create(tmp_path)
    before = texts(tmp_path)
    assert create(tmp_path) == []
    (tmp_path / "us-ca.pem").unlink()
    assert create(tmp_path) == ["us-broker.pem", "us-ca.pem"]
    after = texts(tmp_path)
    assert {name for name in after if after[name] != before[name]} == {"us-broker.pem", "us-ca.pem"}


def test_slack_page_shows_newest_message_first_and_escapes_markup() -> None:
    [attachment] = PAGE["attachments"]
    older = {"attachments": [{**attachment, "title": "&lt;script&gt;alert(1)"}]}
    page = slack_page([older, PAGE])
    assert 0 < page.index("FIRING page") < page.index("&lt;script&gt;alert(1)")
    assert "<script" not in page
    assert "no messages yet" in slack_page([])


@pytest.mark.parametrize("body", [b"no JSON", b'{"blocks": []}', b'{"attachments": []}'])
def test_slack_stub_rejects_other_payloads_and_keeps_none_of_them(body: bytes) -> None:
    with SlackStub(page=slack_page, on_message=lambda each: slack_page([each])) as stub:
        with pytest.raises(urllib.error.HTTPError) as refusal:
            urllib.request.urlopen(stub.url, body, timeout=60)
        refusal.value.close()
        urllib.request.urlopen(stub.url, json.dumps(PAGE).encode(), timeout=60).close()
        assert stub.messages == [PAGE]
    assert refusal.value.code == 400


def test_hec_stub_passes_on_events_of_its_token_only(tmp_path: Path) -> None:
    create(tmp_path)
    tls = ssl.create_default_context(cafile=str(tmp_path / "splunk-ca.pem"))
    connection = Connection(tls=tls, server_hostname="splunk")
    (tmp_path / "other-token").write_text("other")
    start = envelope_start(host="h", source="s", sourcetype="t", index=None)
    body = b"".join(envelope(start, 1.0, {"n": n, "x": "y" * 2_000}) for n in (1, 2))
    events: list[dict[str, Any]] = []
    token = (tmp_path / "splunk-hec-token").read_text()
    certificate = tmp_path / "splunk.pem"
    with hec_stub(("127.0.0.1", 0), token, events.append, certificate=certificate) as port:
        answers = [
            HecClient(f"https://127.0.0.1:{port}", HecTokenFile(path), connection, "1").send(body)
            for path in (tmp_path / "other-token", tmp_path / "splunk-hec-token")
        ]
    assert [str(each) for each in answers] == [
        "HTTP 403, code 4: Invalid token", "HTTP 200, code 0: Success",
    ]  # fmt: skip
    assert [each["event"]["n"] for each in events] == [1, 2]
