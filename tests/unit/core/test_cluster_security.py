"""The same security settings for librdkafka and for Java."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.cluster_security import Security, jaas_quote

AWKWARD = 'p"\\;\n'
PACKAGE = "org.apache.kafka.common.security"


def security(**fields: Any) -> Security:
    return Security.model_validate(fields)


def sasl(mechanism: str, **more: Any) -> Security:
    return security(protocol="SASL_SSL", sasl={"mechanism": mechanism, **more})


OAUTH = {
    "token_endpoint": "https://login/t",
    "client_id": "mm2slo",
    "client_secret": 's"3',
    "scope": "kafka",
    "extensions": {"logicalCluster": "lkc-1", "identityPoolId": "pool-2"},
}

RENDERED: dict[str, tuple[Security, dict[str, str], dict[str, str]]] = {
    "nothing": (
        security(),
        {"security.protocol": "PLAINTEXT"},
        {"security.protocol": "PLAINTEXT"},
    ),
    "TLS with the system's certificates": (
        security(protocol="SSL"),
        {"security.protocol": "SSL"},
        {"security.protocol": "SSL"},
    ),
    "TLS with a CA file and without host verification": (
        security(protocol="SSL", tls={"ca_file": "ca.pem", "verify_hostname": False}),
        {
            "security.protocol": "SSL",
            "ssl.ca.location": "ca.pem",
            "ssl.endpoint.identification.algorithm": "none",
        },
        {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "ca.pem",
            "ssl.endpoint.identification.algorithm": "",
        },
    ),
    "mutual TLS, chain and key in one file": (
        security(
            protocol="SSL",
            tls={"ca_file": "ca.pem", "certificate_file": "me.pem", "key_password": "k"},
        ),
        {
            "security.protocol": "SSL",
            "ssl.ca.location": "ca.pem",
            "ssl.certificate.location": "me.pem",
            "ssl.key.location": "me.pem",
            "ssl.key.password": "k",
            "ssl.endpoint.identification.algorithm": "https",
        },
        {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "ca.pem",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": "me.pem",
            "ssl.key.password": "k",
            "ssl.endpoint.identification.algorithm": "https",
        },
    ),
    "PLAIN": (
        sasl("PLAIN", username="app", password=AWKWARD),
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "app",
            "sasl.password": AWKWARD,
        },
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f"{PACKAGE}.plain.PlainLoginModule required "
            'username="app" password="p\\"\\\\;\\n";',
        },
    ),
    "SCRAM": (
        sasl("SCRAM-SHA-512", username="app", password="pw"),
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "app",
            "sasl.password": "pw",
        },
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f"{PACKAGE}.scram.ScramLoginModule required "
            'username="app" password="pw";',
        },
    ),
    "OAUTHBEARER": (
        sasl("OAUTHBEARER", oauth=OAUTH),
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": "https://login/t",
            "sasl.oauthbearer.client.id": "mm2slo",
            "sasl.oauthbearer.client.secret": 's"3',
            "sasl.oauthbearer.scope": "kafka",
            "sasl.oauthbearer.extensions": "logicalCluster=lkc-1,identityPoolId=pool-2",
        },
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": "https://login/t",
            "sasl.login.callback.handler.class": f"{PACKAGE}.oauthbearer"
            ".OAuthBearerLoginCallbackHandler",
            "sasl.jaas.config": f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule required "
            'clientId="mm2slo" clientSecret="s\\"3" scope="kafka" '
            'extension_logicalCluster="lkc-1" extension_identityPoolId="pool-2";',
        },
    ),
}


@pytest.mark.parametrize(("described", "native", "java"), RENDERED.values(), ids=[*RENDERED])
def test_security_properties_for_both_clients(
    described: Security, native: dict[str, str], java: dict[str, str]
) -> None:
    assert described.librdkafka_properties() == native
    assert described.java_properties() == java


def test_java_properties_have_prefix() -> None:
    assert security().java_properties("us.") == {"us.security.protocol": "PLAINTEXT"}


def test_java_properties_contain_separate_chain_and_key() -> None:
    apart = security(protocol="SSL", tls={"certificate_file": "c.pem", "key_file": "k.pem"})
    rendered = apart.java_properties(read_text={"c.pem": "CHAIN", "k.pem": "KEY"}.__getitem__)
    assert rendered == {
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "CHAIN",
        "ssl.keystore.key": "KEY",
        "ssl.endpoint.identification.algorithm": "https",
    }
    with pytest.raises(ValueError, match=r"'c\.pem' has no private key; .* one file"):
        apart.java_properties()


def stream_tokenizer_string(text: str) -> tuple[str, str]:
    """One quoted string as `java.io.StreamTokenizer.nextToken` reads it, and the rest.

    After OpenJDK's source: a string ends at its quote, at a line end or at the end of input; a
    backslash takes up to three octal digits, a control letter, or the next character itself.
    """
    assert text[0] == '"'
    letters = {"a": "\x07", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\x0b"}
    value, at = "", 1
    while at < len(text) and text[at] not in '"\n\r':
        if text[at] != "\\":
            value, at = value + text[at], at + 1
            continue
        at += 1
        if "0" <= text[at] <= "7":
            most = 3 if text[at] <= "3" else 2
            digits = ""
            while len(digits) < most and at < len(text) and "0" <= text[at] <= "7":
                digits, at = digits + text[at], at + 1
            value += chr(int(digits, 8))
        else:
            value, at = value + letters.get(text[at], text[at]), at + 1
    return value, text[at + 1 :]


@given(st.text(), st.text(alphabet='\\"nrt07;\n\r='))
def test_jaas_quote_round_trips(plain: str, hostile: str) -> None:
    for value in (plain, hostile, plain + hostile):
        assert stream_tokenizer_string(jaas_quote(value) + ";") == (value, ";")


def test_security_repr_and_json_mask_secrets() -> None:
    shown = repr(sasl("OAUTHBEARER", oauth=OAUTH)) + repr(
        sasl("PLAIN", username="app", password="hunter2")
    )
    assert "hunter2" not in shown
    assert 's"3' not in shown
