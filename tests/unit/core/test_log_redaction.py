"""Log lines without secrets."""

import json
import re
import time
from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.log_redaction import PATTERNS, REDACTED, Redactor, SecretPattern

SECRET = "hun7er2-Sw0rdf1sh"
TOKEN = "0a1b2c3d-1111-2222-3333-444455556666"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJtbTIifQ.c2lnbmF0dXJl"
PEM = "-----BEGIN {0}PRIVATE KEY-----\nMIISecretKey0\nAoIBSecretKey1\n-----END {0}PRIVATE KEY-----"
AWS = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
KEYS = (
    "password",
    "ssl.keystore.password",
    "ssl.key.password",
    "source.cluster.ssl.truststore.password",
    "producer.override.sasl.password",
    "db.passwd",
    "key.passphrase",
    "client.secret",
    "clientSecret",
    "sasl.oauthbearer.client.credentials.client.secret",
    "access_token",
    "refresh_token",
    "schema.registry.api.key",
    "s3.access.key",
    "my.private.key",
    "aws_secret_access_key",
    "basic.auth.user.info",
    "javax.net.ssl.keyStorePassword",
    "unsecuredLoginStringClaim_sub",
    "stored_key",
    "server_key",
    "hmac",
)
ENCODINGS = ("plain", "properties", "java map", "escaped JSON")
TEXTS = (  # a line, and the secret in it
    (
        "us.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="admin" password="{SECRET};x";',
        SECRET,
    ),
    (f'ScramLoginModule required\n  username="admin"\n  password="{SECRET}";', SECRET),
    (f"com.example.LoginModule sufficient secretPath={SECRET}", SECRET),
    (PEM.format(""), "SecretKey"),
    (PEM.format("RSA "), "SecretKey"),
    (PEM.format("EC ").replace("\n", "\\n"), "SecretKey"),
    (PEM.format("").partition("-----END")[0], "SecretKey"),
    ("ssl.keystore.key=" + PEM.format(""), "SecretKey"),
    ("ssl.keystore.certificate.chain = -----BEGIN CERTIFICATE-----\nMIISecretCert", "SecretCert"),
    (f"no token in {JWT}", "c2lnbmF0dXJl"),
    ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    (f"{{Authorization=Splunk {TOKEN}, Host=a}}", TOKEN),
    ('Proxy-Authorization: Digest username="a", response="9d377"', "9d377"),
    ("got Bearer 2YotnFZFEjr1zCsicMWpAA", "2YotnFZFEjr1zCsicMWpAA"),
    ("Set-Cookie: session=4f3a; Path=/", "4f3a"),
    (f"X-Vault-Token: {SECRET}", SECRET),
    (f"GET http://registry:{SECRET}@host:8081/subjects", SECRET),
    (f"jdbc:postgresql://mm2:p@{SECRET}@db/audit", SECRET),
    ("https://host/container?sv=1&sig=aBc%3D&se=2", "aBc%3D"),
    (f"https://host/path?key={SECRET}", SECRET),
    (f"credentials AKIAIOSFODNN7EXAMPLE {AWS}", AWS),
    ("Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey=q1w2e3=;EntityPath=t", "q1w2e3"),
    ("salt=c2FsdA==,stored_key=c3Q=,server_key=c2s=,iterations=4096", "c2FsdA"),
    (f"java -Djavax.net.ssl.keyStorePassword={SECRET} -cp a", SECRET),
    (f"started with --ssl-key-password {SECRET} --verbose", SECRET),
    (f"grant_type=jwt&assertion={SECRET}", SECRET),
    ("where source record is = SourceRecord{value=Struct{card=4111}}", "4111"),
    (f'bad config {{"password": "{SECRET} with \\" quote {SECRET}"}}', SECRET),
    (f"pass\x1b[31mword={SECRET}", SECRET),
    (f"POST https://hooks.slack.com/services/T0000/B0000/{SECRET} failed", SECRET),
    (f"as xoxb-1234-{SECRET}", SECRET),
    (f"GET https://me@corp:{SECRET}@host/x", SECRET),
    (f"GET https://u:a/{SECRET}@host/x", SECRET),
    (f"GET https://u:p@{SECRET}@host/x,http://other/x", SECRET),
    (f"http://a:8083,http://u:it's{SECRET}@host", SECRET),
    (f"git clone https://{SECRET}@host/x", SECRET),
    (f"pwd={SECRET}", SECRET),
    (f"export KAFKA_PASS={SECRET}", SECRET),
    (f"PASS={SECRET}", SECRET),
    (f"keytool -list -storepass {SECRET} -v", SECRET),
    (f"[keytool, -keypass, {SECRET}]", SECRET),
    (f"['openssl', '-passin', 'pass:{SECRET}']", SECRET),
    (f"curl -u me:{SECRET} https://host", SECRET),
    (f"curl -sku 'me:my {SECRET}' -x http://proxy --proxy-user me:{SECRET} https://host", SECRET),
    (f'{{"password":{{"value":"{SECRET}"}},"a":1}}', SECRET),
    (f'{{"password":{{"value":"}}\\"{SECRET}"}},"a":1}}', SECRET),
    (f'{{\\"password\\":{{\\"value\\":\\"{SECRET}\\"}}}}', SECRET),
    (f'{{"passwords": ["a", "{SECRET}"]}}', SECRET),
    (f"passwords=[a, {SECRET}], topics=.*", SECRET),
    (f"password={{cipher}}{SECRET}", SECRET),
    (f"<password>{SECRET}</password>", SECRET),
    (f'<db:password type="text"><![CDATA[{SECRET}]]></db:password>', SECRET),
    (f"<name>ssl.key.password</name><value>my {SECRET}</value>", SECRET),
    (f'<property name="password" value="{SECRET}"/>', SECRET),
    (f'<property name="password">{SECRET}</property>', SECRET),
    (f"- name: KAFKA_PASSWORD\n  value: {SECRET}", SECRET),
    (f"password=b'my {SECRET}'", SECRET),
    (f"{{'password': b'{SECRET}', 'a': 1}}", SECRET),
    (f"{{a=b, password=my {SECRET} here, topics=.*}}", SECRET),
    (f"{{a=b, password=my, {SECRET}}}", SECRET),
    (f"Config(user=a, password=my x(old {SECRET})", SECRET),
    *((f"pwd=a{mark}{SECRET}", SECRET) for mark in "!#$%&'()*+-./:;<=>?@[]^_`{|}~"),
)
UNTOUCHED = (
    "ssl.key.password = [hidden]",
    "sasl.jaas.config = null",
    "\tsasl.oauthbearer.token.endpoint.url = null",
    "sasl.oauthbearer.token.endpoint.url = https://idp/oauth2",
    "token ring",
    "unknown option --token --verbose",
    "Polled 5 records from [user-tokens-v1-0]",
    "offsets {user-tokens-v1-0=OffsetAndMetadata{offset=5}}",
    "Unable to sync offsets for consumer group secret-santa. This is likely caused by consumers",
    "secret-santa: lag 5",
    "password=${file:/etc/mm2/secrets.properties:us.password}",
    "RequestHeader(apiKey=FETCH, apiVersion=12, clientId=us->eu)",
    "password.encoder.iterations=4096",
    "http://connect:8083/connectors/a@b",
    "java.lang.AssertionError: expected 5",
    'password="" and password=',
    "SharedAccessKeyName=Root",
    "delegation.token.max.lifetime.ms = 604800000",
    "App info kafka.producer for us->eu|MirrorSourceConnector-0|replication-consumer unregistered",
    "PWD=/opt/kafka",
    "a second pass: 5 records",
    "token_file: /run/secrets/token",
    "http://[::1]:8083/connectors/a@b",
    "abfss://container@account.dfs.core.windows.net/audit",
    "postgresql://mm2slo:***@db/audit",
    "usage: curl -s https://host, --password <password> to log in",
    "ConfigEntry(name=ssl.key.password, value=null, source=DEFAULT_CONFIG)",
)


def encoded(key: str, encoding: str) -> str:
    match encoding:
        case "properties":
            return f"clusters = us, eu\nus->eu.{key} = {SECRET}, {SECRET} {SECRET}\ntopics = .*"
        case "java map":
            return f"{{group.id=a, {key}={SECRET}, topics=.*}}"
        case "escaped JSON":
            return orjson.dumps(orjson.dumps({"a": 1, key: f'x "{SECRET}'}).decode()).decode()
    return f"failed with {key}: {SECRET}, next"


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("key", KEYS)
def test_redact_value_of_secret_key_is_replaced(key: str, encoding: str) -> None:
    redactor = Redactor()
    if encoding == "properties" and ("_" in key or key == "hmac"):
        pytest.skip("no name of a property")
    text = encoded(key, encoding)
    assert redactor.suspects(text.encode().split(b"\n"))

    redacted = redactor.redact(text)

    assert SECRET not in redacted
    assert REDACTED in redacted
    assert key in redacted
    assert redactor.redact(redacted) == redacted
    assert sum(redactor.counts.values()) == 1


@pytest.mark.parametrize(("text", "secret"), TEXTS)
def test_redact_secret_in_text_is_replaced_once(text: str, secret: str) -> None:
    redactor = Redactor()
    assert 0 in redactor.suspects(text.encode().split(b"\n"))

    redacted = redactor.redact(text)

    assert secret not in redacted
    assert redactor.redact(redacted) == redacted


@pytest.mark.parametrize("text", UNTOUCHED)
def test_redact_other_text_is_unchanged(text: str) -> None:
    redactor = Redactor()

    assert redactor.redact(text) == text
    assert not redactor.counts


def test_redact_document_replaces_secrets_in_names_values_and_nested_fields() -> None:
    redactor = Redactor(exact=[TOKEN])

    redacted = redactor.redact_document(
        {
            "message": f"password={SECRET}",
            "client": {"secret": SECRET, "list": [f"token: {SECRET}", 5, None]},
            "pin_secret": 1234,
            "password": "[hidden]",
            "use_token": True,
            TOKEN: f"x{TOKEN}",
            "env": [{"name": "KAFKA_PASS", "value": SECRET}, {"name": "HOME", "value": "/"}],
        }
    )

    assert redacted == {
        "message": f"password={REDACTED}",
        "client": {"secret": REDACTED, "list": [f"token: {REDACTED}", 5, None]},
        "pin_secret": REDACTED,
        "password": "[hidden]",
        "use_token": True,
        REDACTED: f"x{REDACTED}",
        "env": [{"name": "KAFKA_PASS", "value": REDACTED}, {"name": "HOME", "value": "/"}],
    }
    assert redactor.counts == {"key_value": 2, "field": 3, "exact": 2}


def test_extra_pattern_is_applied_and_counted() -> None:
    card = SecretPattern("card", ("card",), re.compile(r"(?<=card )\d{4}-\d{4}"))
    everywhere = SecretPattern("iban", (), re.compile(r"\bDE\d{4}\b"))
    redactor = Redactor([card, everywhere])
    texts = ["card 1234-5678", "DE1234"]

    assert redactor.suspects([text.encode() for text in texts]) == {0, 1}
    assert [redactor.redact(text) for text in texts] == [f"card {REDACTED}", REDACTED]
    assert redactor.counts == {"card": 1, "iban": 1}


@pytest.mark.parametrize("secret", ["p/ä\"ss\\w0rd'x", "ünïcödé", "a.b-c_d", "ab#cd"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_exact_secret_is_found_however_json_writes_it(secret: str, ascii_only: bool) -> None:
    redactor = Redactor(exact=[secret])
    line = json.dumps({"message": f"<{secret}>"}, ensure_ascii=ascii_only).encode()

    assert redactor.suspects([b"other", line]) >= {1}
    assert redactor.redact_document(orjson.loads(line)) == {"message": f"<{REDACTED}>"}


UNITS = (
    "--password ",
    "--",
    "password=",
    'password="',
    'password="\\',
    "password=a,",
    "token",
    "secret.",
    "access",
    'sasl.jaas.config=\\"',
    'LoginModule required "a',
    "LoginModule required \\",
    "eyJ",
    "eyJaaaaa.",
    "://a:",
    "a.",
    '"',
    "-----BEGIN PRIVATE KEY-----",
    "ssl.keystore.key=-----BEGIN ",
    "bearer ",
    "Authorization: ",
    'hmac=\\\\\\"',
    "AKIAIOSFODNN7EXAMPLE ",
    "cookie=",
    "\x1b[",
    "curl ",
    "curl -u a:",
    "<password>",
    "<password",
    "name=password ",
    "name=",
    "password={",
    "password=[\n",
    'password=["',
    "password={{{{'",
    "password=a b",
    "password=a)",
    "-pass ",
    "://a@",
    "https://",
    "hooks.slack.com/services/",
)


@pytest.mark.parametrize("unit", UNITS)
def test_redact_time_grows_with_length_not_faster(unit: str) -> None:
    """CPU time of 8 times the text: 8 times if linear, 64 times if quadratic; best of three."""

    def seconds(size: int) -> float:
        text = (unit * (size // len(unit) + 1))[:size] + " pass token jaas login eyj :// bearer key"
        times = []
        for _ in range(3):
            start = time.thread_time()
            Redactor().redact(text)
            times.append(time.thread_time() - start)
        return min(times)

    assert seconds(128_000) < 24 * seconds(16_000) + 0.01


REDACTOR = Redactor()
EVERY_REGEX = Redactor(replace(pattern, literals=()) for pattern in PATTERNS)
PARTS = (
    "password",
    "PASSword",
    "sasl.jaas.config",
    "LoginModule required",
    "token",
    "secret",
    "api_key",
    "-----BEGIN PRIVATE KEY-----",
    "eyJhbGciOiJ.eyJzdWIiOiJ",
    "Authorization",
    "Bearer ",
    "://u:p@h",
    "?sig=a",
    "&key=b",
    "user.info",
    "AKIAIOSFODNN7EXAMPLE",
    "stored_key",
    "source record is = v",
    "unsecuredLoginX",
    "=",
    ": ",
    '"',
    "\\",
    "/",
    "\n",
    "\t",
    "\b",
    "\r",
    "\x1b[1m",
    "\u017f",
    "\u212a",
    "x",
    "ä",
    "ssl.truststore.certificates",
    "cookie",
    "assertion",
    "access-key",
    "pwd",
    "KAFKA_PASS",
    "-storepass ",
    "curl -u a:b",
    "<password>p</password>",
    "name: password, value: p",
    "https://t@h",
    "hooks.slack.com/services/T00000000",
    "xoxb-12345678",
    "{",
    "}",
    "[",
    "b'",
    ", a",
    "-",
    ".",
    "_",
)
texts = st.lists(st.sampled_from(PARTS) | st.text(max_size=4), max_size=8).map("".join)


def escaped_everywhere(text: str) -> bytes:
    """JSON with each character as an escape."""
    units = text.encode("utf-16-be")
    escapes = "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
    return f'{{"message":"{escapes}"}}'.encode()


def lines(text: str) -> list[bytes]:
    document = {"message": text}
    return [
        json.dumps(document).encode(),
        orjson.dumps(document),
        orjson.dumps(document).replace(b"/", b"\\/"),
        escaped_everywhere(text),
        orjson.dumps({"message": orjson.dumps(document).decode()}),
    ]


@given(text=texts, before=texts)
def test_suspects_contain_every_json_line_that_redaction_changes(text: str, before: str) -> None:
    first = orjson.dumps({"message": before})
    for line in lines(text):
        document = orjson.loads(line)
        if REDACTOR.redact_document(document) != document:
            assert 1 in REDACTOR.suspects([first, line])


@given(text=texts)
def test_suspects_contain_every_text_line_that_redaction_changes(text: str) -> None:
    whole = text.replace("\n", " ")
    if REDACTOR.redact(whole) != whole:
        assert REDACTOR.suspects([b"first", whole.encode()]) == {1}


@given(text=texts)
def test_redaction_with_literals_equals_redaction_by_all_regexes(text: str) -> None:
    assert REDACTOR.redact(text) == EVERY_REGEX.redact(text)


@given(text=texts)
def test_suspects_contain_every_line_that_a_regex_matches(text: str) -> None:
    whole = text.replace("\n", " ")
    if any(pattern.regex.search(whole) for pattern in PATTERNS):
        assert REDACTOR.suspects([b"first", whole.encode()]) == {1}


@given(text=texts)
def test_redaction_of_redacted_text_changes_nothing(text: str) -> None:
    redacted = REDACTOR.redact(text)

    assert REDACTOR.redact(redacted) == redacted
