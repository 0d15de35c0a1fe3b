"""Security settings of Kafka's Java clients, read for librdkafka."""

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from kafka_jvm import running_jvm

from mm2slo_core.config.client_security import Security, java_properties
from mm2slo_core.config.config_document import UnresolvedError
from mm2slo_core.config.config_section import CHECK_SECTIONS
from mm2slo_core.mm2_config.config_overlay import read_security
from mm2slo_core.mm2_config.mirror_setup import Finding, Origin, Setting
from mm2slo_core.mm2_config.provider_references import MirrorFiles

PACKAGE = "org.apache.kafka.common.security"
OAUTH_MODULE = f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule"
HANDLER = f"{PACKAGE}.oauthbearer.OAuthBearerLoginCallbackHandler"
SECURED_HANDLER = f"{PACKAGE}.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
STRIMZI_HANDLER = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
AWS = "software.amazon.msk.auth.iam"
PASSWORD = "hunter2"

ROOT = trustme.CA()
INTERMEDIATE = ROOT.create_child_ca()
CLIENT = INTERMEDIATE.issue_cert("mm2@example.com")
OTHER_PEM = trustme.CA().cert_pem.bytes().decode()
ROOT_PEM = ROOT.cert_pem.bytes().decode()
INTERMEDIATE_PEM = INTERMEDIATE.cert_pem.bytes().decode()
LEAF_PEM = CLIENT.cert_chain_pems[0].bytes().decode()
KEY = load_pem_private_key(CLIENT.private_key_pem.bytes(), None)
KEY_PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
OLD_KEY_PEM = KEY.private_bytes(
    Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()
).decode()
LOCKED_PEM = KEY.private_bytes(
    Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(PASSWORD.encode())
).decode()
LEAF, INTERMEDIATE_CA, ROOT_CA = (
    x509.load_pem_x509_certificate(pem.encode()) for pem in (LEAF_PEM, INTERMEDIATE_PEM, ROOT_PEM)
)


def one_line(pem: str) -> str:
    return " ".join(pem.split("\n"))


def p12(*cas: x509.Certificate, own: bool = False) -> bytes:
    locked = BestAvailableEncryption(PASSWORD.encode())
    if own:
        return pkcs12.serialize_key_and_certificates(b"mm2", KEY, LEAF, cas, locked)  # type: ignore[arg-type]
    entries = [pkcs12.PKCS12Certificate(each, b"ca%d" % at) for at, each in enumerate(cas)]
    return pkcs12.serialize_java_truststore(entries, locked)


FILES = {
    "client.jks": p12(ROOT_CA, INTERMEDIATE_CA, own=True),
    "shared.p12": p12(x509.load_pem_x509_certificate(OTHER_PEM.encode()), ROOT_CA, INTERMEDIATE_CA,
        own=True),
    "trust.jks": p12(ROOT_CA, INTERMEDIATE_CA),
    "middle.p12": p12(INTERMEDIATE_CA),
    "old.jks": b"\xfe\xed\xfe\xed" + bytes(60),
    "empty.pem": b"-----BEGIN NOTHING-----\n",
    "damaged.pem": b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    "notes.txt": b"not a store",
    "root.pem": ROOT_PEM.encode(),
    "both.pem": ("Bag Attributes\n" + LEAF_PEM + INTERMEDIATE_PEM + KEY_PEM).encode(),
    "locked.pem": (LOCKED_PEM + LEAF_PEM).encode(),
    "leaf.pem": (LEAF_PEM + INTERMEDIATE_PEM).encode(),
    "key.pem": KEY_PEM.encode(),
    "mismatch.pem": (KEY_PEM + ROOT_PEM).encode(),
}  # fmt: skip


def content(path: str) -> bytes:
    if path not in FILES:
        raise UnresolvedError(f"{path} does not exist")
    return FILES[path]


def unused(*_arguments: str) -> Any:
    raise AssertionError


def read(
    properties: Mapping[str, str], files: Any = content
) -> tuple[Security | None, tuple[Finding, ...]]:
    """Read *properties*, written on lines 1, 2, ... of mm2.properties."""
    client = {
        key: Setting(key, value, Origin("mm2.properties", line))
        for line, (key, value) in enumerate(properties.items(), start=1)
    }
    return read_security(client, MirrorFiles(unused, files, unused))


def sasl(mechanism: str, jaas: str, **more: str) -> dict[str, str]:
    named = {key.replace("_", "."): value for key, value in more.items()}
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas,
        **named,
    }


def oauth(handler: str, options: str, **more: str) -> dict[str, str]:
    jaas = f"{OAUTH_MODULE} required {options};"
    return {**sasl("OAUTHBEARER", jaas, **more), "sasl.login.callback.handler.class": handler}


def ssl(**more: str) -> dict[str, str]:
    named = {f"ssl.{key.replace('_', '.')}": value for key, value in more.items()}
    return {"security.protocol": "SSL", **named}


URL = "https://login.example/token"
ID_SECRET = {"token_endpoint": URL, "client_id": "mm2", "client_secret": "s3cret"}
STRIMZI_OPTIONS = (
    f'oauth.token.endpoint.uri="{URL}" oauth.client.id="mm2" oauth.client.secret="s3cret"'
)
AWS_SERVERS = "b-1.x.c2.kafka.eu-west-1.amazonaws.com:9098"
ACCEPTED: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "nothing": ({}, {}),
    "lower case": ({"security.protocol": " ssl "}, {"protocol": "SSL", "tls": {}}),
    "PLAIN, as Event Streams has it": ({**sasl("PLAIN",
        f'{PACKAGE}.plain.PlainLoginModule required username="token" password="a;b";'),
        "security.protocol": "SASL_SSL", "ssl.endpoint.identification.algorithm": ""},
        {"protocol": "SASL_SSL", "sasl": {"mechanism": "PLAIN", "username": "token",
        "password": "a;b"}, "tls": {"verify_hostname": False}}),
    "SCRAM, unquoted": (sasl("SCRAM-SHA-256",
        f"{PACKAGE}.scram.ScramLoginModule required username=mm2 password=s3cret;"),
        {"sasl": {"mechanism": "SCRAM-SHA-256", "username": "mm2", "password": "s3cret"}}),
    "OAuth of Apache": (oauth(HANDLER,
        'clientId="mm2" clientSecret="s3cret" scope="kafka" extension_pool="p"',
        sasl_oauthbearer_token_endpoint_url=URL), {"sasl": {"oauth": {**ID_SECRET,
        "scope": "kafka", "extensions": {"pool": "p"}}}}),
    "OAuth of Apache before 3.4, with a CA": (oauth(SECURED_HANDLER,
        'clientId="mm2" clientSecret="s3cret" ssl.truststore.location="root.pem"',
        sasl_oauthbearer_token_endpoint_url=URL), {"sasl": {"oauth": {**ID_SECRET,
        "ca": ROOT_PEM}}}),
    "OAUTHBEARER with CAs beside the JAAS options, as read from Strimzi": (oauth(STRIMZI_HANDLER,
        STRIMZI_OPTIONS, sasl_oauthbearer_ssl_truststore_certificates=ROOT_PEM),
        {"sasl": {"oauth": {**ID_SECRET, "ca": ROOT_PEM}}}),
    "OAuth of Apache from 4.1": (oauth(HANDLER, 'scope="overridden"',
        client_id="of the Kafka client", sasl_oauthbearer_token_endpoint_url=f"{URL} ",
        sasl_oauthbearer_client_credentials_client_id="mm2",
        sasl_oauthbearer_client_credentials_client_secret="s3cret", sasl_oauthbearer_scope="kafka",
        sasl_oauthbearer_jwt_retriever_class=f"{PACKAGE}.oauthbearer.DefaultJwtRetriever"),
        {"sasl": {"oauth": {**ID_SECRET, "scope": "kafka"}}}),
    "OAuth of Strimzi": (oauth(STRIMZI_HANDLER,
        STRIMZI_OPTIONS + ' oauth.scope="kafka" oauth.audience="brokers"'
        ' oauth.ssl.truststore.location="trust.jks" oauth.ssl.truststore.password="hunter2"'
        ' oauth.sasl.extension.pool="p"'), {"sasl": {"oauth": {**ID_SECRET, "scope": "kafka",
        "audience": "brokers", "ca": ROOT_PEM + INTERMEDIATE_PEM, "extensions": {"pool": "p"}}}}),
    "MSK with IAM": (sasl("AWS_MSK_IAM",
        f'{AWS}.IAMLoginModule required awsRoleArn="arn:aws:iam::1:role/mm2";',
        sasl_client_callback_handler_class=f"{AWS}.IAMClientCallbackHandler",
        bootstrap_servers=AWS_SERVERS), {"sasl": {"aws_region": "eu-west-1",
        "aws_role_arn": "arn:aws:iam::1:role/mm2"}}),
    "PKCS12 named .jks": (ssl(truststore_location="trust.jks", truststore_type="JKS",
        truststore_password=PASSWORD, keystore_location="client.jks", keystore_password=PASSWORD,
        key_password=PASSWORD), {"tls": {"ca": ROOT_PEM + INTERMEDIATE_PEM,
        "certificate": LEAF_PEM + INTERMEDIATE_PEM + ROOT_PEM, "key": KEY_PEM}}),
    "one store for trust and client": (ssl(truststore_location="shared.p12",
        truststore_password=PASSWORD, keystore_location="shared.p12", keystore_password=PASSWORD),
        {"tls": {"ca": LEAF_PEM + OTHER_PEM + ROOT_PEM + INTERMEDIATE_PEM,
        "certificate": LEAF_PEM + INTERMEDIATE_PEM + ROOT_PEM, "key": KEY_PEM}}),
    "PEM files": (ssl(truststore_location="root.pem", keystore_location="both.pem"),
        {"tls": {"ca": ROOT_PEM, "certificate": LEAF_PEM + INTERMEDIATE_PEM, "key": KEY_PEM}}),
    "PEM on one line": (ssl(truststore_certificates=one_line(ROOT_PEM),
        keystore_certificate_chain=one_line(LEAF_PEM), keystore_key=one_line(KEY_PEM)),
        {"tls": {"ca": ROOT_PEM, "certificate": LEAF_PEM, "key": KEY_PEM}}),
    "an encrypted key keeps its password": (ssl(keystore_location="locked.pem",
        key_password=PASSWORD), {"tls": {"certificate": LEAF_PEM, "key": LOCKED_PEM,
        "key_password": PASSWORD}}),
    "a key that is not PKCS#8": (ssl(keystore_certificate_chain=LEAF_PEM,
        keystore_key=OLD_KEY_PEM), {"tls": {"certificate": LEAF_PEM, "key": KEY_PEM}}),
}  # fmt: skip


@pytest.mark.parametrize(("properties", "expected"), ACCEPTED.values(), ids=[*ACCEPTED])
def test_read_security_returns_settings_with_content(
    properties: dict[str, str], expected: dict[str, Any]
) -> None:
    security, findings = read(properties)
    assert findings == ()
    defaults: dict[str, Any] = {
        "protocol": properties.get("security.protocol", "PLAINTEXT").strip().upper()
    }
    if "sasl" in expected:
        mechanism = {"mechanism": properties["sasl.mechanism"]}
        defaults["sasl"] = mechanism | expected["sasl"]
    assert security == Security.model_validate(expected | defaults, context=CHECK_SECTIONS)
    assert security is not None
    if "audience" not in repr(expected):
        # What is rendered for Java is read again as the same, but AWS's region is in host names.
        rendered = java_properties(security)
        rendered["bootstrap.servers"] = AWS_SERVERS
        assert read(rendered) == (security, ())


PLAIN_MODULE = f"{PACKAGE}.plain.PlainLoginModule"
REFUSED: dict[str, tuple[dict[str, str], str, int, str]] = {
    "an unknown protocol": ({"security.protocol": "TLS"}, "security-protocol", 1, "TLS"),
    "Kerberos": (sasl("GSSAPI", "x"), "unsupported-mechanism", 2, "GSSAPI"),
    "Kerberos by default": (
        {"security.protocol": "SASL_SSL"}, "unsupported-mechanism", 1, "GSSAPI"),
    "no JAAS line": ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
        "sasl-jaas-config", 2, "does not start with"),
    "another login module": (sasl("PLAIN", "com.example.Vault required;"), "unsupported-class", 3,
        "com.example.Vault"),
    "no password": (sasl("PLAIN", f'{PLAIN_MODULE} required username="u";'), "sasl-jaas-config", 3,
        "no password"),
    "a delegation token": (sasl("SCRAM-SHA-512",
        f"{PACKAGE}.scram.ScramLoginModule required username=u password=p tokenauth=true;"),
        "unsupported-option", 3, "tokenauth"),
    "a callback handler": (sasl("PLAIN", f"{PLAIN_MODULE} required;",
        sasl_login_callback_handler_class="com.example.H"),
        "unsupported-class", 4, "com.example.H"),
    "unsecured tokens": (oauth("", 'unsecuredLoginStringClaim_sub="mm2"'), "class", 4,
        "unsecured tokens"),
    "a token of a file": (oauth(HANDLER, 'clientId="mm2" clientSecret="s3cret"',
        sasl_oauthbearer_token_endpoint_url="file:///token"), "oauth-option", 3, "token endpoint"),
    "no client secret": (oauth(HANDLER, 'clientId="mm2"', sasl_oauthbearer_token_endpoint_url=URL),
        "oauth-option", 3, "client secret"),
    "an assertion of Apache": (oauth(HANDLER, "",
        sasl_oauthbearer_jwt_retriever_class=f"{PACKAGE}.oauthbearer.JwtBearerJwtRetriever"),
        "unsupported-class", 4, "JwtBearerJwtRetriever"),
    **{f"Strimzi's {option}": (oauth(STRIMZI_HANDLER,
        f'{STRIMZI_OPTIONS} oauth.{option}="hunter2"'), "unsupported-option", 3,
        f"mm2slo cannot use oauth.{option}") for option in ("refresh.token", "access.token",
        "access.token.location", "client.assertion", "password.grant.username")},
    "MSK without a region": (sasl("AWS_MSK_IAM", f"{AWS}.IAMLoginModule required;",
        bootstrap_servers="msk:9098"), "unsupported-region", 4, "no AWS region"),
    "an engine factory": (ssl(engine_factory_class="com.example.F"),
        "unsupported-class", 2, "com.example.F"),
    "a missing file": (ssl(truststore_location="gone.jks"), "store-missing", 2,
        "gone.jks does not exist"),
    "a JKS store": (ssl(keystore_location="old.jks"),
        "unsupported-store", 2, "old.jks is a JKS store"),
    "a wrong store password": (ssl(truststore_location="trust.jks", truststore_password="hunter3"),
        "store-unreadable", 2, "trust.jks cannot be read as PKCS12 with its password"),
    "no store password": (ssl(truststore_location="trust.jks"), "store-unreadable", 2,
        "without a password"),
    "no store": (ssl(truststore_location="notes.txt"), "store-unreadable", 2, "not PEM"),
    "no certificate": (ssl(truststore_location="empty.pem"), "store-without-certificate", 2,
        "no certificate"),
    "a damaged certificate": (ssl(truststore_location="damaged.pem"), "store-unreadable", 2,
        "damaged"),
    "a CA where a client key belongs": (ssl(keystore_location="root.pem"), "key-store-without-key",
        2, "only CA certificates"),
    "a certificate without its key": (ssl(keystore_location="leaf.pem"), "key-store-without-key",
        2, "no private key"),
    "a key without its certificate": (ssl(keystore_location="key.pem"),
        "store-without-certificate", 2, "key.pem has a private key"),
    "another key's certificate": (ssl(keystore_location="mismatch.pem"),
        "store-without-certificate", 2, "mismatch.pem"),
    "a wrong key password": (ssl(keystore_location="locked.pem", key_password="hunter3"),
        "store-unreadable", 2, "read with password"),
    "no key password": (ssl(keystore_location="locked.pem"), "store-unreadable", 2,
        "read without password"),
    "a password for a plain key": (ssl(keystore_location="both.pem", key_password=PASSWORD),
        "store-unreadable", 2, "read with password"),
}  # fmt: skip


@pytest.mark.parametrize(("properties", "check", "line", "what"), REFUSED.values(), ids=[*REFUSED])
def test_read_security_unsupported_settings_are_errors_with_line(
    properties: dict[str, str], check: str, line: int, what: str
) -> None:
    security, (finding,) = read(properties)
    assert security is None
    assert (finding.check, finding.severity) == (check, "error")
    assert finding.origin == Origin("mm2.properties", line)
    assert what in finding.what
    # What only Java can do is no mistake in MirrorMaker 2's file.
    of_ours = finding.what.startswith("mm2slo") or "only Java" in finding.what
    assert check.startswith("unsupported-") == of_ours
    assert "remove" not in finding.action


def test_read_security_reports_all_parts() -> None:
    properties = {
        **sasl("GSSAPI", "x"),
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": "gone.p12",
        "ssl.keystore.location": "root.pem",
        "ssl.engine.factory.class": "com.example.F",
    }
    assert [(each.check, each.origin.line) for each in read(properties)[1]] == [
        ("unsupported-mechanism", 2),
        ("unsupported-class", 6),
        ("store-missing", 4),
        ("key-store-without-key", 5),
    ]


def test_jks_store_finding_has_keytool_command() -> None:
    _, (finding,) = read(ssl(keystore_location="/etc/my stores/c.jks"), lambda _: FILES["old.jks"])
    assert finding.action == (
        "convert it: keytool -importkeystore -srckeystore '/etc/my stores/c.jks' -srcstoretype JKS"
        " -destkeystore '/etc/my stores/c.p12' -deststoretype PKCS12"
    )


def test_trust_store_without_root_is_a_warning() -> None:
    properties = ssl(truststore_location="middle.p12", truststore_password=PASSWORD)
    security, (finding,) = read(properties)
    assert security is not None
    assert security.tls is not None
    assert security.tls.ca == INTERMEDIATE_PEM
    assert (finding.check, finding.severity, finding.origin.line) == (
        "trust-store-without-root",
        "warning",
        2,
    )


def test_no_finding_or_repr_shows_a_secret() -> None:
    cases = [case[0] for case in ACCEPTED.values()] + [case[0] for case in REFUSED.values()]
    shown = repr([read(properties) for properties in cases])
    jaas = f'{PLAIN_MODULE} required username="u" password="hunter2'
    for cut in range(len(jaas)):
        shown += repr(read(sasl("PLAIN", jaas[:cut])))
        shown += repr(read(sasl("PLAIN", jaas[:cut] + ";")))
    for secret in ("hunter", "s3cret", "a;b", *KEY_PEM.split("\n")[1:-2], LOCKED_PEM[60:90]):
        assert secret not in shown


@pytest.fixture(scope="module")
def kafka() -> Iterator[Any]:
    with running_jvm() as jvm:
        yield jvm


def keytool(directory: Path, *arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        ["keytool", *arguments, "-storepass", PASSWORD],
        cwd=directory, input=stdin, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return done.stdout


@pytest.mark.spark
def test_read_security_reads_stores_of_keytool_as_kafka_does(tmp_path: Path, kafka: Any) -> None:
    (tmp_path / "root.pem").write_text(ROOT_PEM, encoding="ascii")
    own = ("-storetype", "PKCS12", "-alias", "mm2", "-keystore", "client.jks")
    ca = ("-storetype", "PKCS12", "-alias", "ca", "-keystore", "ca.p12")
    # As Java 8 encrypted it.
    legacy = ("-J-Dkeystore.pkcs12.legacy", "-importcert", "-noprompt", "-file", "root.pem")
    keytool(tmp_path, *legacy, "-storetype", "PKCS12", "-keystore", "trust.jks")
    keytool(tmp_path, "-genkeypair", "-keyalg", "EC", "-ext", "bc:c", "-dname", "CN=ca", *ca)
    keytool(tmp_path, "-genkeypair", "-keyalg", "EC", "-dname", "CN=mm2", *own)
    request = keytool(tmp_path, "-certreq", *own)
    signed = keytool(tmp_path, "-gencert", "-rfc", *ca, stdin=request)
    chain = signed + keytool(tmp_path, "-exportcert", "-rfc", *ca)
    keytool(tmp_path, "-importcert", "-noprompt", *own, stdin=chain)
    properties = ssl(
        truststore_location=str(tmp_path / "trust.jks"),
        truststore_password=PASSWORD,
        keystore_location=str(tmp_path / "client.jks"),
        keystore_password=PASSWORD,
    )
    security, findings = read(properties, lambda path: (tmp_path / path).read_bytes())
    assert findings == ()
    assert security is not None
    assert security.tls is not None
    assert security.tls.ca == ROOT_PEM
    assert (security.tls.certificate or "").split() == chain.split()

    # Kafka finds the same certificates and key in both forms.
    assert stores(kafka, java_properties(security)) == stores(kafka, properties)


def stores(jvm: Any, properties: dict[str, str]) -> list[Any]:
    """Certificates of Kafka's trust store, the chain of its key store, and whether it has a key."""
    ssl_config = jvm.org.apache.kafka.common.config.ConfigDef().withClientSslSupport()
    factory = jvm.org.apache.kafka.common.security.ssl.DefaultSslEngineFactory()
    factory.configure(ssl_config.parse(properties))
    trusted, own = factory.truststore(), factory.keystore()
    aliases = jvm.java.util.Collections.list(trusted.aliases())
    alias = own.aliases().nextElement()
    return [
        [trusted.getCertificate(each).getEncoded() for each in aliases],
        [each.getEncoded() for each in own.getCertificateChain(alias)],
        own.isKeyEntry(alias),
    ]
