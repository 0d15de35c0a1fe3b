"""Prometheus's web configuration file: what is read, what is refused, and that nothing leaks."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from mm2slo_core.config.config_document import ConfigError
from mm2slo_core.user_errors import UserError
from mm2slo_web.access_files import web_config_file
from mm2slo_web.web_config import ClientAuthType, TlsVersion, parse_web_config

HASH = "$2b$04$RtNpsxVxzMTmZYGVTaSpcuFBg8f4zU9rIQuJuKcMKD9AnmrfbbDIi"
DIGEST = hashlib.sha256(b"token").hexdigest()


def test_every_key_of_the_format_is_read() -> None:
    config = parse_web_config(
        {
            "tls_server_config": {
                "cert_file": "c.pem",
                "key_file": "k.pem",
                "client_ca_file": "ca.pem",
                "client_auth_type": "RequireAndVerifyClientCert",
                "client_allowed_sans": ["prometheus.example"],
                "min_version": "TLS13",
                "max_version": "TLS13",
            },
            "http_server_config": {"http2": False, "headers": {"X-Frame-Options": "SAMEORIGIN"}},
            "basic_auth_users": {"prometheus": HASH},
            "bearer_tokens_sha256": [DIGEST.upper()],
        },
        "web.yml",
    )
    tls = config.tls_server_config
    assert tls is not None
    assert (tls.cert_file, tls.key_file, tls.client_ca_file) == ("c.pem", "k.pem", "ca.pem")
    assert tls.client_auth_type is ClientAuthType.REQUIRED
    assert tls.client_allowed_sans == ("prometheus.example",)
    assert (tls.min_version, tls.max_version) == (TlsVersion.TLS13, TlsVersion.TLS13)
    assert config.http_server_config.headers == {"X-Frame-Options": "SAMEORIGIN"}
    assert config.basic_auth_users["prometheus"].reveal() == HASH
    assert [token.reveal() for token in config.bearer_tokens_sha256] == [DIGEST]
    assert HASH not in repr(config)
    assert DIGEST not in repr(config)


@pytest.mark.parametrize("empty", [None, {}])
def test_an_empty_file_leaves_everything_open(empty: object) -> None:
    config = parse_web_config(empty, "web.yml")
    assert config.tls_server_config is None
    assert (dict(config.basic_auth_users), config.bearer_tokens_sha256) == ({}, ())


PAIR = {"cert_file": "c", "key_file": "k"}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([], "the file: has the wrong type\n  expected: a mapping with keys"),
        (
            {"basic_auth": {}},
            (
                "basic_auth: unknown key\n  expected: one of tls_server_config, http_server_config,"
                " basic_auth_users, bearer_tokens_sha256"
            ),
        ),
        (
            {"tls_server_config": {"cert_file": "c"}},
            "tls_server_config.key_file: is missing\n  expected: a value for this key",
        ),
        (
            {"tls_server_config": PAIR | {"cipher_suites": []}},
            (
                "tls_server_config.cipher_suites: is not supported\n  expected: one of cert_file,"
                " key_file, client_ca_file, client_auth_type, client_allowed_sans, min_version,"
                " max_version\n  next step: OpenSSL's own choice is used"
            ),
        ),
        (
            {"tls_server_config": PAIR | {"client_auth_type": "RequireAnyClientCert"}},
            (
                "tls_server_config.client_auth_type: is not a valid value\n  expected:"
                " 'NoClientCert', 'VerifyClientCertIfGiven' or 'RequireAndVerifyClientCert'"
            ),
        ),
        (
            {"tls_server_config": PAIR | {"client_ca_file": "ca"}},
            (
                "tls_server_config: has one of client_ca_file and client_auth_type alone"
                "\n  expected: both, or neither"
            ),
        ),
        (
            {"tls_server_config": PAIR | {"client_allowed_sans": ["x"]}},
            (
                "tls_server_config: has client_allowed_sans for clients that need no certificate"
                "\n  expected: client_auth_type: RequireAndVerifyClientCert"
            ),
        ),
        (
            {"tls_server_config": PAIR | {"min_version": "TLS10"}},
            ("tls_server_config.min_version: is not a valid value\n  expected: 'TLS12' or 'TLS13'"),
        ),
        (
            {"tls_server_config": PAIR | {"min_version": "TLS13", "max_version": "TLS12"}},
            (
                "tls_server_config: has a min_version above its max_version"
                "\n  expected: TLS12 up to TLS13"
            ),
        ),
        (
            {"basic_auth_users": {"me": "hunter2"}},
            (
                "basic_auth_users.me: is not a bcrypt hash\n  expected: a hash such as $2b$12$..."
                " of 60 characters\n  next step: make one with: htpasswd -nBC 12 USER"
            ),
        ),
        (
            {"basic_auth_users": {"a:b": HASH}},
            "basic_auth_users['a:b']: is not a user name\n  expected: text without a colon",
        ),
        (
            {"bearer_tokens_sha256": ["token"]},
            (
                "bearer_tokens_sha256[0]: is not a SHA-256 digest\n  expected: the 64 hexadecimal"
                " digits of the token's SHA-256\n  next step: make one with: printf %s TOKEN"
                " | sha256sum"
            ),
        ),
        (
            {"http_server_config": {"http2": True}},
            (
                "http_server_config.http2: is not supported\n  expected: false"
                "\n  next step: remove it; HTTP/1.1 is served"
            ),
        ),
        (
            {"rate_limit": {"interval": "1s"}},
            (
                "rate_limit: is not supported\n  expected: one of tls_server_config,"
                " http_server_config, basic_auth_users, bearer_tokens_sha256"
                "\n  next step: the number of connections is limited"
            ),
        ),
        (
            {"http_server_config": {"headers": {"Content-Length": "0"}}},
            (
                "http_server_config.headers.Content-Length: is not a header that can be set"
                "\n  expected: an HTTP header name other than connection, content-encoding,"
                " content-length, content-type, date, transfer-encoding"
            ),
        ),
        (
            {"http_server_config": {"headers": {"X": "a\r\nSet-Cookie: b"}}},
            (
                "http_server_config.headers.X: is not a header value"
                "\n  expected: printable ASCII on one line"
            ),
        ),
    ],
)
def test_invalid_web_config_reports_problem_and_expected_value(value: object, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_web_config(value, "web.yml")
    assert str(refused.value) == f"web.yml: 1 problem\n{problem}"


def test_all_problems_come_in_one_report_with_lines_and_without_secrets(tmp_path: Path) -> None:
    file = tmp_path / "web.yml"
    file.write_text(
        "tls_server_config:\n"
        "  cert_file: c\n"
        "  kye_file: k\n"
        "basic_auth_users:\n"
        "  me: hunter2\n"
        "bearer_tokens_sha256: [s3cret]\n"
    )
    with pytest.raises(ConfigError) as refused:
        web_config_file(file)
    assert [(problem.path, problem.line) for problem in refused.value.problems] == [
        ("tls_server_config.key_file", 1),
        ("tls_server_config.kye_file", 3),
        ("basic_auth_users.me", 5),
        ("bearer_tokens_sha256[0]", 6),
    ]
    assert "hunter2" not in str(refused.value)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "is not YAML"),
        ("basic_auth_users: {}\nbasic_auth_users: {}", "is a duplicate key"),
    ],
)
def test_what_is_not_plain_yaml_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "web.yml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        web_config_file(file)


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read web configuration file '.*/none.yml'"):
        web_config_file(tmp_path / "none.yml")


@pytest.mark.parametrize("content", [None, "not a certificate"])
def test_a_certificate_that_cannot_be_used_is_one_line(tmp_path: Path, content: Any) -> None:
    file = tmp_path / "web.yml"
    file.write_text("tls_server_config: {cert_file: c.pem, key_file: k.pem}")
    if content:
        (tmp_path / "c.pem").write_text(content)
        (tmp_path / "k.pem").write_text(content)
    with pytest.raises(UserError, match=r"cannot use certificate '.*/c.pem' with key '.*/k.pem'"):
        web_config_file(file)
