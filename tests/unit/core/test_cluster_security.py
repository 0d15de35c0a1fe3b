"""The same security settings for librdkafka and for Java."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.config.client_security import (
    Security,
    jaas_quote,
    java_properties,
    librdkafka_properties,
)
from mm2slo_core.mm2_config.provider_references import parse_jaas

AWKWARD = 'p"\\;\n'
PACKAGE = "org.apache.kafka.common.security"
AWS = "software.amazon.msk.auth.iam"


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

SHORT_OAUTH = {"token_endpoint": "https://login/t", "client_id": "mm2slo", "client_secret": "s3"}

RENDERED: dict[str, tuple[Security, dict[str, str], dict[str, str]]] = {
    "nothing": (security(), {"security.protocol": "PLAINTEXT"}, {"security.protocol": "PLAINTEXT"}),
    "TLS with the system's certificates": (security(protocol="SSL"), {"security.protocol": "SSL"},
        {"security.protocol": "SSL"}),
    "TLS with a CA file and without host verification": (security(protocol="SSL",
        tls={"ca_file": "ca.pem", "verify_hostname": False}), {"security.protocol": "SSL",
        "ssl.ca.location": "ca.pem", "ssl.endpoint.identification.algorithm": "none"},
        {"security.protocol": "SSL", "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "ca.pem", "ssl.endpoint.identification.algorithm": ""}),
    "mutual TLS, chain and key in one file": (security(protocol="SSL", tls={"ca_file": "ca.pem",
        "certificate_file": "me.pem", "key_password": "k"}), {"security.protocol": "SSL",
        "ssl.ca.location": "ca.pem", "ssl.certificate.location": "me.pem",
        "ssl.key.location": "me.pem", "ssl.key.password": "k",
        "ssl.endpoint.identification.algorithm": "https"}, {"security.protocol": "SSL",
        "ssl.truststore.type": "PEM", "ssl.truststore.location": "ca.pem",
        "ssl.keystore.type": "PEM", "ssl.keystore.location": "me.pem", "ssl.key.password": "k",
        "ssl.endpoint.identification.algorithm": "https"}),
    "PLAIN": (sasl("PLAIN", username="app", password=AWKWARD), {"security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN", "sasl.username": "app", "sasl.password": AWKWARD},
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f"{PACKAGE}.plain.PlainLoginModule required "
        'username="app" password="p\\"\\\\;\\n";'}),
    "SCRAM": (sasl("SCRAM-SHA-512", username="app", password="pw"),
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "app", "sasl.password": "pw"}, {"security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f"{PACKAGE}.scram.ScramLoginModule required "
        'username="app" password="pw";'}),
    "OAUTHBEARER": (sasl("OAUTHBEARER", oauth=OAUTH), {"security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": "https://login/t",
        "sasl.oauthbearer.client.id": "mm2slo", "sasl.oauthbearer.client.secret": 's"3',
        "sasl.oauthbearer.scope": "kafka",
        "sasl.oauthbearer.extensions": "logicalCluster=lkc-1,identityPoolId=pool-2"},
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://login/t",
        "sasl.login.callback.handler.class": f"{PACKAGE}.oauthbearer"
        ".OAuthBearerLoginCallbackHandler",
        "sasl.jaas.config": f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule required "
        'clientId="mm2slo" clientSecret="s\\"3" scope="kafka" '
        'extension_logicalCluster="lkc-1" extension_identityPoolId="pool-2";'}),
    "TLS content": (security(protocol="SSL", tls={"ca": "CA", "certificate": "CHAIN", "key": "KEY",
        "key_password": "k"}), {"security.protocol": "SSL", "ssl.ca.pem": "CA",
        "ssl.certificate.pem": "CHAIN", "ssl.key.pem": "KEY", "ssl.key.password": "k",
        "ssl.endpoint.identification.algorithm": "https"}, {"security.protocol": "SSL",
        "ssl.truststore.type": "PEM", "ssl.truststore.certificates": "CA",
        "ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": "CHAIN",
        "ssl.keystore.key": "KEY", "ssl.key.password": "k",
        "ssl.endpoint.identification.algorithm": "https"}),
    "OAUTHBEARER with a CA of the token endpoint": (sasl("OAUTHBEARER", oauth={**SHORT_OAUTH,
        "ca_file": "idp.pem"}), {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": "https://login/t",
        "sasl.oauthbearer.client.id": "mm2slo", "sasl.oauthbearer.client.secret": "s3",
        "https.ca.location": "idp.pem"}, {"security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": "https://login/t",
        "sasl.login.callback.handler.class": f"{PACKAGE}.oauthbearer"
        ".OAuthBearerLoginCallbackHandler",
        "sasl.jaas.config": f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule required "
        'clientId="mm2slo" clientSecret="s3" ssl.truststore.type="PEM" '
        'ssl.truststore.location="idp.pem";'}),
    "AWS_MSK_IAM with a role": (sasl("AWS_MSK_IAM", aws_region="eu-west-1",
        aws_role_arn="arn:aws:iam::1:role/r"), {"security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.config": '{"region": "eu-west-1", '
        '"role_arn": "arn:aws:iam::1:role/r"}'}, {"security.protocol": "SASL_SSL",
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.client.callback.handler.class": f"{AWS}.IAMClientCallbackHandler",
        "sasl.jaas.config": f'{AWS}.IAMLoginModule required awsRoleArn="arn:aws:iam::1:role/r" '
        'awsStsRegion="eu-west-1";'}),
}  # fmt: skip


@pytest.mark.parametrize(("described", "native", "java"), RENDERED.values(), ids=[*RENDERED])
def test_security_properties_for_both_clients(
    described: Security, native: dict[str, str], java: dict[str, str]
) -> None:
    assert librdkafka_properties(described) == native
    assert java_properties(described) == java


def test_java_properties_have_prefix() -> None:
    assert java_properties(security(), "us.") == {"us.security.protocol": "PLAINTEXT"}


@pytest.mark.parametrize(
    ("tls", "expected"),
    [
        (
            {"ca_file": "ca.pem", "certificate_file": "c.pem", "key_file": "k.pem"},
            {"ca": "<ca.pem>", "certificate": "<c.pem>", "key": "<k.pem>"},
        ),
        ({"certificate_file": "both.pem"}, {"certificate": "<both.pem>", "key": "<both.pem>"}),
        ({"ca": "CA", "certificate": "C", "key": "K", "key_password": "p"}, None),
        ({"verify_hostname": False}, None),
    ],
)
def test_inlined_replaces_files_by_their_content(
    tls: dict[str, Any], expected: dict[str, str] | None
) -> None:
    inlined = security(protocol="SSL", tls=tls).inlined("<{}>".format)
    assert inlined == security(protocol="SSL", tls=expected or tls)


def test_inlined_reads_ca_of_token_endpoint() -> None:
    inlined = sasl("OAUTHBEARER", oauth={**SHORT_OAUTH, "ca_file": "i.pem"}).inlined("<{}>".format)
    assert inlined == sasl("OAUTHBEARER", oauth={**SHORT_OAUTH, "ca": "<i.pem>"})
    assert librdkafka_properties(inlined)["https.ca.pem"] == "<i.pem>"


@pytest.mark.parametrize(
    ("described", "message"),
    [
        (
            security(protocol="SSL", tls={"certificate_file": "c.pem", "key_file": "k.pem"}),
            r"'c\.pem' has no private key; .* one file",
        ),
        (sasl("OAUTHBEARER", oauth={**SHORT_OAUTH, "audience": "kafka"}), r"sasl\.oauth\.audience"),
    ],
)
def test_java_properties_impossible_settings_raise_error(described: Security, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        java_properties(described)


@pytest.mark.parametrize(
    ("scope", "sent"), [(None, "&audience=a%26b%2Fc"), ("x y", "x y&audience=a%26b%2Fc")]
)
def test_librdkafka_audience_is_appended_to_scope(scope: str | None, sent: str) -> None:
    oauth = {**SHORT_OAUTH, "audience": "a&b/c", "scope": scope}
    properties = librdkafka_properties(sasl("OAUTHBEARER", oauth=oauth))
    assert properties["sasl.oauthbearer.scope"] == sent


@given(st.text(), st.text(alphabet='\\"nrt07;\n\r='))
def test_jaas_quote_round_trips(plain: str, hostile: str) -> None:
    for value in (plain, hostile, plain + hostile):
        assert parse_jaas(f"M required v={jaas_quote(value)};").options == {"v": value}


def test_security_repr_and_json_mask_secrets() -> None:
    shown = repr(sasl("OAUTHBEARER", oauth=OAUTH)) + repr(
        sasl("PLAIN", username="app", password="hunter2")
    )
    shown += repr(security(protocol="SSL", tls={"certificate": 's"3', "key": "hunter2"}))
    assert "hunter2" not in shown
    assert 's"3' not in shown
