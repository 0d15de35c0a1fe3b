"""The token requests of librdkafka and of Kafka's Java client, to a local token endpoint."""

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs

import pytest
import trustme
from confluent_kafka import Producer
from kafka_jvm import running_jvm

from mm2slo_core.config.client_security import Security, java_properties, librdkafka_properties

CA = trustme.CA()
CA_PEM = CA.cert_pem.bytes().decode()


def token() -> str:
    """An unsigned token, as clients do not verify signatures."""
    parts = ({"alg": "none"}, {"sub": "mm2slo", "iat": 1_000_000_000, "exp": 4_000_000_000})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts]
    return b".".join([*encoded, b"c2ln"]).decode()


@contextmanager
def endpoint(*, tls: bool = False) -> Iterator[tuple[str, list[str]]]:
    """A token endpoint: its URL, and the bodies that it received."""
    bodies: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            answer = json.dumps({"access_token": token(), "token_type": "Bearer"}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            CA.issue_cert("127.0.0.1").configure_cert(context)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}/token", bodies
        finally:
            server.shutdown()
            thread.join()


def described(url: str, **more: str) -> Security:
    oauth = {"token_endpoint": url, "client_id": "mm2slo", "client_secret": "s3cret", **more}
    sasl = {"mechanism": "OAUTHBEARER", "oauth": oauth}
    return Security.model_validate({"protocol": "SASL_PLAINTEXT", "sasl": sasl})


def request_by_librdkafka(security: Security, bodies: list[str], attempts: int = 600) -> None:
    failures: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": "127.0.0.1:1",
            **librdkafka_properties(security),
            "error_cb": lambda error: failures.append(error.str()),
        }
    )
    for _attempt in range(attempts):
        producer.poll(0.05)
        if bodies or any("token" in str(each) for each in failures):
            break


@pytest.mark.parametrize(
    ("requested", "sent"),
    [
        ({}, {}),
        ({"scope": "a b"}, {"scope": ["a b"]}),
        ({"audience": "x&y"}, {"audience": ["x&y"]}),
        ({"scope": "a b", "audience": "x&y"}, {"scope": ["a b"], "audience": ["x&y"]}),
    ],
)
def test_librdkafka_requests_scope_and_audience(
    requested: dict[str, str], sent: dict[str, list[str]]
) -> None:
    with endpoint() as (url, bodies):
        request_by_librdkafka(described(url, **requested), bodies)
    assert parse_qs(bodies[0]) == {"grant_type": ["client_credentials"], **sent}


@pytest.mark.parametrize("trusted", [True, False])
def test_librdkafka_trusts_the_given_ca_of_the_endpoint(trusted: bool) -> None:
    with endpoint(tls=True) as (url, bodies):
        request_by_librdkafka(described(url, **({"ca": CA_PEM} if trusted else {})), bodies)
    assert bool(bodies) is trusted


@pytest.mark.spark
def test_java_client_trusts_the_given_ca_of_the_endpoint() -> None:
    with endpoint(tls=True) as (url, bodies), running_jvm() as jvm:
        jvm.java.lang.System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", url)
        common = jvm.org.apache.kafka.common
        configs = common.config.ConfigDef()
        common.config.SaslConfigs.addClientSaslSupport(configs)
        parsed = configs.parse(java_properties(described(url, scope="a b", ca=CA_PEM)))
        entries = common.security.JaasContext.loadClientContext(parsed).configurationEntries()
        handler = common.security.oauthbearer.OAuthBearerLoginCallbackHandler()
        handler.configure(parsed, "OAUTHBEARER", entries)
        callback = common.security.oauthbearer.OAuthBearerTokenCallback()
        kind = jvm.java.lang.Class.forName("javax.security.auth.callback.Callback")
        callbacks = jvm.java.lang.reflect.Array.newInstance(kind, 1)
        callbacks[0] = callback
        handler.handle(callbacks)
        assert callback.token().principalName() == "mm2slo"
    assert parse_qs(bodies[0]) == {"grant_type": ["client_credentials"], "scope": ["a b"]}
