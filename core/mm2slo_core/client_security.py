"""Security settings as properties of Kafka clients: librdkafka and Java.

Names: librdkafka's CONFIGURATION.md; Kafka's `SslConfigs`, `SaslConfigs` and
`DefaultSslEngineFactory` (PEM, KIP-651); OAUTHBEARER with OIDC, KIP-768, whose TLS settings are
JAAS options in Java; aws-msk-iam-auth. The properties contain secrets in plain text: pass them to
a client, never print them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final
from urllib.parse import quote_plus

from mm2slo_core.cluster_security import Mechanism

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.cluster_security import OAuth, Sasl, Security, Tls
    from mm2slo_core.secret import Secret

_SECURITY_PACKAGE: Final = "org.apache.kafka.common.security"
_SCRAM_MODULE: Final = f"{_SECURITY_PACKAGE}.scram.ScramLoginModule"
LOGIN_MODULES: Final = {
    Mechanism.PLAIN: f"{_SECURITY_PACKAGE}.plain.PlainLoginModule",
    Mechanism.SCRAM_SHA_256: _SCRAM_MODULE,
    Mechanism.SCRAM_SHA_512: _SCRAM_MODULE,
    Mechanism.OAUTHBEARER: f"{_SECURITY_PACKAGE}.oauthbearer.OAuthBearerLoginModule",
    Mechanism.AWS_MSK_IAM: "software.amazon.msk.auth.iam.IAMLoginModule",
}
OAUTH_HANDLER: Final = f"{_SECURITY_PACKAGE}.oauthbearer.OAuthBearerLoginCallbackHandler"
AWS_HANDLER: Final = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
# Characters that java.io.StreamTokenizer, which parses JAAS lines, needs escaped inside quotes.
_JAAS_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})


def librdkafka_properties(security: Security) -> dict[str, str]:
    """Return properties for librdkafka (confluent-kafka), with secrets in plain text."""
    properties = {"security.protocol": security.protocol.value}
    if security.protocol.has_sasl and security.sasl is not None:
        properties |= _librdkafka_sasl(security.sasl)
    if security.protocol.has_tls and security.tls is not None:
        properties |= _librdkafka_tls(security.tls)
    return properties


def java_properties(security: Security, prefix: str = "") -> dict[str, str]:
    """Return properties for Kafka's Java clients, with *prefix* and secrets in plain text.

    Values are raw: escape them in a properties file. Raises ValueError for what Java clients cannot
    do. With OAUTHBEARER, Java clients from Kafka 4.0 on also need
    `-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=<endpoint>`.
    """
    properties = {"security.protocol": security.protocol.value}
    if security.protocol.has_sasl and security.sasl is not None:
        properties |= _java_sasl(security.sasl)
    if security.protocol.has_tls and security.tls is not None:
        properties |= _java_tls(security.tls)
    return {prefix + name: value for name, value in properties.items()}


def jaas_quote(value: str) -> str:
    """Quote *value* for a JAAS line, which `java.io.StreamTokenizer` parses."""
    return f'"{value.translate(_JAAS_ESCAPES)}"'


def _librdkafka_sasl(sasl: Sasl) -> dict[str, str]:
    if sasl.mechanism is Mechanism.AWS_MSK_IAM:
        # librdkafka has no such mechanism: `mm2slo_kafka.msk_iam` makes tokens from this.
        config = json.dumps(_given({"region": sasl.aws_region, "role_arn": sasl.aws_role_arn}))
        return {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.config": config}
    user = {"sasl.username": sasl.username, "sasl.password": sasl.password}
    properties = {"sasl.mechanism": sasl.mechanism.value, **_given(user)}
    if sasl.oauth is None:
        return properties
    oauth, scope = sasl.oauth, sasl.oauth.scope
    if oauth.audience is not None:
        # librdkafka 2.16 has no such property, but sends the scope unencoded in the form.
        scope = f"{scope or ''}&audience={quote_plus(oauth.audience)}"
    extensions = ",".join(f"{name}={value}" for name, value in oauth.extensions.items())
    return properties | _given(
        {
            "sasl.oauthbearer.method": oauth.method,
            "sasl.oauthbearer.token.endpoint.url": oauth.token_endpoint,
            "sasl.oauthbearer.client.id": oauth.client_id,
            "sasl.oauthbearer.client.secret": oauth.client_secret,
            "sasl.oauthbearer.scope": scope,
            "sasl.oauthbearer.extensions": extensions or None,
            "https.ca.location": oauth.ca_file,
            "https.ca.pem": oauth.ca,
        }
    )


def _librdkafka_tls(tls: Tls) -> dict[str, str]:
    return _given(
        {
            "ssl.endpoint.identification.algorithm": "https" if tls.verify_hostname else "none",
            "ssl.ca.location": tls.ca_file,
            "ssl.ca.pem": tls.ca,
            "ssl.certificate.location": tls.certificate_file,
            "ssl.certificate.pem": tls.certificate,
            "ssl.key.location": tls.key_file or tls.certificate_file,
            "ssl.key.pem": tls.key,
            "ssl.key.password": tls.key_password,
        }
    )


def _java_sasl(sasl: Sasl) -> dict[str, str]:
    options = _given({"username": sasl.username, "password": sasl.password})
    properties = {"sasl.mechanism": sasl.mechanism.value}
    if sasl.oauth is not None:
        options |= _java_oauth(sasl.oauth)
        properties |= {
            "sasl.login.callback.handler.class": OAUTH_HANDLER,
            "sasl.oauthbearer.token.endpoint.url": sasl.oauth.token_endpoint,
        }
    if sasl.mechanism is Mechanism.AWS_MSK_IAM:
        options |= _given({"awsRoleArn": sasl.aws_role_arn, "awsStsRegion": sasl.aws_region})
        properties["sasl.client.callback.handler.class"] = AWS_HANDLER
    pairs = (f"{name}={jaas_quote(value)}" for name, value in options.items())
    line = " ".join([LOGIN_MODULES[sasl.mechanism], "required", *pairs])
    return properties | {"sasl.jaas.config": f"{line};"}


def _java_oauth(oauth: OAuth) -> dict[str, str]:
    if oauth.audience is not None:
        raise ValueError(
            "Kafka's Java client cannot request the audience of sasl.oauth.audience; use a scope or"
            " the identity provider's default audience"
        )
    options = _given(
        {"clientId": oauth.client_id, "clientSecret": oauth.client_secret, "scope": oauth.scope}
    )
    extensions = {f"extension_{name}": value for name, value in oauth.extensions.items()}
    return options | extensions | _java_trust(oauth)


def _java_tls(tls: Tls) -> dict[str, str]:
    if tls.key_file not in {None, tls.certificate_file}:
        raise ValueError(
            f"{tls.certificate_file!r} has no private key; a Java PEM key store is one file with "
            "chain and key: concatenate the two files or use Security.inlined"
        )
    properties: dict[str, str | Secret | None] = {
        "ssl.endpoint.identification.algorithm": "https" if tls.verify_hostname else "",
        "ssl.keystore.type": "PEM" if tls.certificate_file or tls.certificate else None,
        "ssl.keystore.location": tls.certificate_file,
        "ssl.keystore.certificate.chain": tls.certificate,
        "ssl.keystore.key": tls.key,
        "ssl.key.password": tls.key_password,
    }
    return _given(properties) | _java_trust(tls)


def _java_trust(section: Tls | OAuth) -> dict[str, str]:
    properties = _given(
        {"ssl.truststore.location": section.ca_file, "ssl.truststore.certificates": section.ca}
    )
    return {"ssl.truststore.type": "PEM", **properties} if properties else {}


def _given(properties: Mapping[str, str | Secret | None]) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else value.reveal()
        for name, value in properties.items()
        if value is not None
    }
