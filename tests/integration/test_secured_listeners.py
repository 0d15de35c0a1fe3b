"""Every supported security, on real listeners: settings of a Java client, read for librdkafka.

Each is used by a Java client as written, by a Java client with the properties that mm2slo renders
(as the audit does), and by librdkafka.
"""

import base64
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from kafka_jvm import running_jvm
from recording_server import Answer, RecordingServer, Request
from secured_listeners import (
    STORE_PASSWORD,
    Certificates,
    Listener,
    add_scram_user,
    running_broker,
    tls_properties,
)

from mm2slo_core.config.client_security import OAUTH_HANDLER, java_properties, librdkafka_properties
from mm2slo_core.mm2_config.config_overlay import read_security
from mm2slo_core.mm2_config.mirror_setup import Origin, Setting
from mm2slo_core.mm2_config.provider_references import MirrorFiles
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.lab_topology import APP, LabSecurity

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.spark,
    pytest.mark.xdist_group("secured-lab"),
]

TOPIC, TOKEN_USER, TOKEN, PATIENCE = "orders", "token", "a;b=c", 90.0
CLIENT_ID, CLIENT_SECRET = "mirror-client", "c1ient s3cret"
PACKAGE = "org.apache.kafka.common.security"
PLAIN = f"{PACKAGE}.plain.PlainLoginModule required"
SCRAM = f"{PACKAGE}.scram.ScramLoginModule required"
OAUTH = f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule required"
ISSUER = "https://tokens.example"
ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


class TokenEndpoint:
    """Issues signed tokens for client credentials, and shows the key that verifies them."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.issued = 0

    def answer(self, request: Request) -> Answer:
        if request.path == "/keys":
            numbers = self._key.public_key().public_numbers()
            key = {"n": encoded_number(numbers.n), "e": encoded_number(numbers.e)}
            return json_answer({"keys": [{"kty": "RSA", "kid": "1", "alg": "RS256", **key}]})
        expected = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {expected}":
            return Answer(401, '{"error":"invalid_client"}', content_type="application/json")
        self.issued += 1
        token = {"access_token": self._token(), "token_type": "bearer", "expires_in": 3600}
        return json_answer(token)

    def _token(self) -> str:
        now = round(time.time())
        claims: dict[str, Any] = {"iss": ISSUER, "sub": APP.name, "aud": "kafka", "scope": "kafka"}
        claims |= {"iat": now, "exp": now + 3600}
        parts = ({"alg": "RS256", "kid": "1", "typ": "JWT"}, claims)
        signed = ".".join(encoded(json.dumps(part).encode()) for part in parts)
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{encoded(signature)}"


def json_answer(content: Mapping[str, Any]) -> Answer:
    return Answer(body=json.dumps(content), content_type="application/json")


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def encoded_number(number: int) -> str:
    return encoded(number.to_bytes((number.bit_length() + 7) // 8, "big"))


@dataclass(frozen=True)
class Secured:
    """A JVM with Kafka's clients, a Java client's settings of each case, and the token endpoint."""

    jvm: Any
    cases: Mapping[str, Mapping[str, str]]
    endpoint: TokenEndpoint


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    root = tmp_path_factory.mktemp("listeners")
    certificates, endpoint = Certificates(), TokenEndpoint()
    stores = {
        "ca.pem": certificates.ca_pem.encode(),
        "trust.p12": certificates.trust_store,
        "client.pem": certificates.key_pem(APP.name).encode(),
        "client.p12": certificates.key_store(APP.name),
    }
    for name, content in stores.items():
        (root / name).write_bytes(content)
    with ExitStack() as running:
        server = running.enter_context(RecordingServer(endpoint.answer))
        listeners = make_listeners(
            tls_properties(certificates, root / "tls", "none"), server.address
        )
        with pytest.MonkeyPatch.context() as patch:
            # The broker reads the keys of tokens only from allowed URLs.
            patch.setenv("JDK_JAVA_OPTIONS", f"-D{ALLOWED_URLS}={server.address}/keys")
            broker = running.enter_context(
                running_broker("us", root, LabSecurity.SASL_SSL, listeners.values())
            )
        broker.admin.create_topic(TOPIC, 1)
        for user in (APP.name, TOKEN_USER):
            broker.admin.grant(user, "TOPIC", TOPIC, "READ")
        produce(broker.librdkafka(), TOPIC, Load(1))
        add_scram_user(broker, APP.name, APP.password, 256)
        jvm = running.enter_context(running_jvm())
        jvm.java.lang.System.setProperty(ALLOWED_URLS, f"{server.address}/token")
        cases = make_cases(str(root), f"{server.address}/token")
        addressed = {
            name: {"bootstrap.servers": listeners[listener].bootstrap_servers, **properties}
            for name, (listener, properties) in cases.items()
        }
        yield Secured(jvm, addressed, endpoint)


def make_listeners(tls: Mapping[str, str], url: str) -> dict[str, Listener]:
    users = f'user_{APP.name}="{APP.password}" user_{TOKEN_USER}="{TOKEN}"'
    plain = {"sasl.enabled.mechanisms": "PLAIN", "plain.sasl.jaas.config": f"{PLAIN} {users};"}
    scram = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        **{f"scram-sha-{bits}.sasl.jaas.config": f"{SCRAM};" for bits in (256, 512)},
    }
    handler = f"{PACKAGE}.oauthbearer.OAuthBearerValidatorCallbackHandler"
    oauth = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "oauthbearer.sasl.jaas.config": f"{OAUTH};",
        "oauthbearer.sasl.server.callback.handler.class": handler,
        "sasl.oauthbearer.jwks.endpoint.url": f"{url}/keys",
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": ISSUER,  # required since 4.4
    }
    found = (
        Listener("TLS", "SSL", tls),
        Listener("MUTUAL", "SSL", {**tls, "ssl.client.auth": "required"}),
        Listener("PLAIN", "SASL_PLAINTEXT", plain),
        Listener("TLSPLAIN", "SASL_SSL", {**tls, **plain}),
        Listener("SCRAM", "SASL_SSL", {**tls, **scram}),
        Listener("OAUTH", "SASL_SSL", {**tls, **oauth}),
    )
    return {each.name: each for each in found}


def make_cases(root: str, endpoint: str) -> dict[str, tuple[str, dict[str, str]]]:
    """The listener and a Java client's security of each case."""
    pem = {"ssl.truststore.type": "PEM", "ssl.truststore.location": f"{root}/ca.pem"}
    p12 = {
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": f"{root}/trust.p12",
        "ssl.truststore.password": STORE_PASSWORD,
    }
    own_pem = {"ssl.keystore.type": "PEM", "ssl.keystore.location": f"{root}/client.pem"}
    own_p12 = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": f"{root}/client.p12",
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": STORE_PASSWORD,
    }
    tls = {"security.protocol": "SSL"}

    def sasl(protocol: str, mechanism: str, jaas: str) -> dict[str, str]:
        named = {"security.protocol": protocol, "sasl.mechanism": mechanism}
        return {**named, "sasl.jaas.config": f"{jaas};"}

    app = f'username="{APP.name}" password="{APP.password}"'
    token = f'username="{TOKEN_USER}" password="{TOKEN}"'
    client = f'clientId="{CLIENT_ID}" clientSecret="{CLIENT_SECRET}" scope="kafka"'
    return {
        "TLS, PEM": ("TLS", {**tls, **pem}),
        "TLS, PKCS12": ("TLS", {**tls, **p12}),
        "mutual TLS, PEM": ("MUTUAL", {**tls, **pem, **own_pem}),
        "mutual TLS, PKCS12": ("MUTUAL", {**tls, **p12, **own_p12}),
        "PLAIN": ("PLAIN", sasl("SASL_PLAINTEXT", "PLAIN", f"{PLAIN} {app}")),
        "PLAIN over TLS": ("TLSPLAIN", {**sasl("SASL_SSL", "PLAIN", f"{PLAIN} {token}"), **p12}),
        "SCRAM-SHA-256": ("SCRAM", {**sasl("SASL_SSL", "SCRAM-SHA-256", f"{SCRAM} {app}"), **p12}),
        "SCRAM-SHA-512": ("SCRAM", {**sasl("SASL_SSL", "SCRAM-SHA-512", f"{SCRAM} {app}"), **pem}),
        "OAUTHBEARER": (
            "OAUTH",
            {
                **sasl("SASL_SSL", "OAUTHBEARER", f"{OAUTH} {client}"),
                **p12,
                "sasl.login.callback.handler.class": OAUTH_HANDLER,
                "sasl.oauthbearer.token.endpoint.url": endpoint,
            },
        ),
    }


def unused(*_arguments: str) -> Any:
    raise AssertionError


def content(path: str) -> bytes:
    return Path(path).read_bytes()


def read_by_librdkafka(properties: Mapping[str, str]) -> int:
    """Offset of the topic's record."""
    settings: dict[str, Any] = {**properties, "group.id": "unused", "enable.auto.commit": False}
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            record = consumer.poll(1.0)
            if record is not None and record.error() is None:
                return record.offset() or 0
        raise AssertionError(f"no record in {PATIENCE:.0f} s")
    finally:
        consumer.close()


def read_by_java(jvm: Any, properties: Mapping[str, str]) -> int:
    """Number of the topic's records."""
    plain = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
    settings = {
        **properties,
        "key.deserializer": plain,
        "value.deserializer": plain,
        "auto.offset.reset": "earliest",
    }
    consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings)
    try:
        consumer.assign([jvm.org.apache.kafka.common.TopicPartition(TOPIC, 0)])
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if found := consumer.poll(jvm.java.time.Duration.ofSeconds(1)).count():
                return int(found)
        raise AssertionError(f"no record in {PATIENCE:.0f} s")
    finally:
        consumer.close()


@pytest.mark.parametrize("case", make_cases("", ""))
def test_security_of_java_client_connects_both_libraries(secured: Secured, case: str) -> None:
    written = secured.cases[case]
    origin = Origin("mm2.properties")
    client = {key: Setting(key, value, origin) for key, value in written.items()}
    security, findings = read_security(client, MirrorFiles(unused, content, unused))
    assert findings == ()
    assert security is not None
    server = {"bootstrap.servers": written["bootstrap.servers"]}
    before = secured.endpoint.issued

    assert read_by_java(secured.jvm, written) == 1
    assert read_by_java(secured.jvm, server | java_properties(security)) == 1
    assert read_by_librdkafka(server | librdkafka_properties(security)) == 0

    assert (secured.endpoint.issued - before >= 3) == (case == "OAUTHBEARER")
