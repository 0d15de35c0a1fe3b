"""The search for literals in blocks never hides what a regex would find."""

import json
from dataclasses import replace

import orjson
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.log_redaction import PATTERNS, Redactor

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
