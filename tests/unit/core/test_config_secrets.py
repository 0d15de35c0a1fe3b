"""Secrets never appear in repr, dumps, JSON or errors."""

import copy
import json
import pickle

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mm2slo_core.config.config_document import ConfigError, Resolvers, UnresolvedError
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.config.config_model import Config
from mm2slo_core.config.secret import Secret

TEMPLATE = """\
clusters:
  us:
    bootstrap_servers: "us:9092"
    security:
      protocol: SASL_SSL
      sasl: {mechanism: PLAIN, username: app, password: %(password)s}
      tls: {certificate_file: c.pem, key_password: %(password)s}
    client: {ssl.crl.location: %(password)s}
  eu:
    bootstrap_servers: "eu:9092"
    security:
      protocol: SASL_SSL
      sasl:
        mechanism: OAUTHBEARER
        oauth: {token_endpoint: "https://x/t", client_id: i, client_secret: %(password)s}
flows:
  - flow: us->eu
%(more)s
"""
# Long and with a unique mark, so that it is not found in a text by chance.
secrets = st.text(min_size=1).map(lambda text: f"Zq9{text}9qZ")


def resolvers(**known: str) -> Resolvers:
    def look_up(name: str) -> str:
        if name not in known:
            raise UnresolvedError("is not set")
        return known[name]

    return Resolvers(env=look_up, file=look_up)


def load(password: str, more: str = "", **known: str) -> Config:
    text = TEMPLATE % {"password": password, "more": more}
    return load_config(text, resolvers=resolvers(**known))


def shown_forms(config: Config) -> str:
    dumped = config.model_dump()
    return "\n".join(
        [repr(config), str(config), config.model_dump_json(), repr(dumped), str(dumped),
         json.dumps(config.model_dump(mode="json")), repr(copy.deepcopy(config)),
         repr(config.model_copy()), f"{config.clusters['us'].client['ssl.crl.location']}"]
    )  # fmt: skip


@given(secrets)
def test_config_representations_contain_no_secret(secret: str) -> None:
    config = load('"${env:P}"', P=secret)
    sasl = config.clusters["us"].security.sasl
    assert sasl is not None
    assert sasl.password is not None
    assert sasl.password.reveal() == secret
    assert config.clusters["us"].librdkafka_properties()["ssl.crl.location"] == secret
    shown = shown_forms(config)
    assert "Zq9" not in shown
    assert "***" in shown


@given(secrets, st.sampled_from(["quoted", "plain", "reference"]))
def test_config_error_contains_no_secret(secret: str, how: str) -> None:
    written = {"quoted": json.dumps(secret), "plain": secret, "reference": '"${env:P}"'}[how]
    wrong = "    slice: never\n    canary: {interval: soon}\n    polizy: 1"
    with pytest.raises(ConfigError) as refused:
        load(written, wrong, P=secret)
    assert "Zq9" not in str(refused.value)
    assert "Zq9" not in repr(refused.value.problems)


PLACES = {
    "an unknown key beside the right one": "sasl: {pasword: hunter2}",
    "a text where a section belongs": "sasl: hunter2",
    "a list where a text belongs": "sasl: {mechanism: PLAIN, username: u, password: [hunter2]}",
    "an unknown mapping": "credentials: {user: u, password: hunter2}",
    "a key written twice": "sasl: {mechanism: PLAIN, password: a, password: hunter2}",
    "a reference of an unknown kind": 'sasl: {mechanism: PLAIN, password: "${vault:hunter2}"}',
    "a failed reference with text around": 'tls: {key_password: "hunter2${env:X}"}',
    "an alias by accident": "sasl: {password: *hunter2}",
    "a tag by accident": "sasl: {password: !hunter2 x}",
    "a directive by accident": "sasl: {password: %hunter2}",
}


@pytest.mark.parametrize("security", PLACES.values(), ids=[*PLACES])
def test_misplaced_password_is_not_shown(security: str) -> None:
    text = f"clusters: {{us: {{security: {{{security}}}}}}}\n"
    with pytest.raises(ConfigError) as refused:
        load_config(text)
    assert "hunter2" not in str(refused.value)


def test_unresolved_references_are_reported_with_other_problems() -> None:
    with pytest.raises(ConfigError) as refused:
        load('"${env:GONE}"', "    slice: never")
    assert [problem.path for problem in refused.value.problems] == [
        "clusters.us.security.sasl.password",
        "clusters.us.security.tls.key_password",
        "clusters.us.client['ssl.crl.location']",
        "clusters.eu.security.sasl.oauth.client_secret",
        "flows[0].slice",
    ]
    assert str(refused.value.problems[0]) == (
        "clusters.us.security.sasl.password (line 6): ${env:GONE} is not set\n"
        "  expected: ${env:NAME} of a set variable, or ${file:/path} of a readable file\n"
        "  next step: export GONE=... before starting"
    )


def test_unresolved_reference_is_not_also_reported_as_invalid_value() -> None:
    text = 'clusters: {us: {bootstrap_servers: "${env:A}:1"}, eu: {bootstrap_servers: "e:1"}}\n'
    with pytest.raises(ConfigError) as refused:
        load_config(text + "flows: [{flow: us->eu}]", resolvers=resolvers())
    assert [problem.what for problem in refused.value.problems] == ["${env:A} is not set"]


def test_empty_secret_is_reported() -> None:
    with pytest.raises(ConfigError, match=r"\$\{env:P\} is empty"):
        load('"${env:P}"', P="")


@pytest.mark.parametrize(
    ("content", "value"), [("x\n", "x"), ("x\r\n", "x"), ("x\n\n", "x\n"), (" x ", " x ")]
)
def test_one_trailing_newline_of_a_secret_file_is_removed(content: str, value: str) -> None:
    config = load('"${file:P}"', P=content)
    assert config.clusters["us"].client["ssl.crl.location"].reveal() == value


def test_references_are_replaced_in_any_text_and_double_dollar_is_literal() -> None:
    text = """\
clusters: {us: {bootstrap_servers: "${env:HOST}:9092"}, eu: {bootstrap_servers: "e:1",
  client: {a: "$${env:HOST}", b: "a${b}", c: 5, d: true}}}
flows: [{flow: us->eu}]
"""
    config = load_config(text, resolvers=resolvers(HOST="broker"))
    assert config.clusters["us"].bootstrap_servers == "broker:9092"
    client = {name: value.reveal() for name, value in config.clusters["eu"].client.items()}
    assert client == {"a": "${env:HOST}", "b": "a${b}", "c": "5", "d": "true"}


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("postgresql://u:${env:P}@db/x", "postgresql://u:a%40b%2F%3A%25@db/x"),
        ("postgresql://${env:PAIR}@db/x", "postgresql://u:a%40b@db/x"),
        ("postgresql://u:p@${env:HOST}/x", "postgresql://u:p@db:5432/x"),
        ("postgresql://db/x?password=${env:P}", "postgresql://db/x?password=a%40b%2F%3A%25"),
        ("${env:URL}", "postgresql://u:p@db/x"),
        ("/var/${env:P}", "/var/a@b/:%"),
    ],
)
def test_references_in_credentials_of_a_url_are_percent_encoded(
    address: str, expected: str
) -> None:
    config = load(
        "x", f'audit: {{store: "{address}"}}',
        P="a@b/:%", PAIR="u:a@b", HOST="db:5432", URL="postgresql://u:p@db/x",
    )  # fmt: skip
    assert config.audit.store.reveal() == expected


@given(st.text(), st.text())
def test_secrets_are_equal_if_their_values_are(left: str, right: str) -> None:
    assert (Secret(left) == Secret(right)) == (left == right)
    assert Secret(left) != left
    assert hash(Secret(left)) == hash(Secret(left))


@given(secrets)
def test_printed_secret_is_masked(value: str) -> None:
    secret = Secret(value)
    assume("***" not in value)
    assert [str(secret), repr(secret), f"{secret}", f"{secret!r}", f"{secret:>5}"] == [
        "***", "Secret('***')", "***", "Secret('***')", "  ***"
    ]  # fmt: skip
    assert pickle.loads(pickle.dumps(secret)) == secret  # noqa: S301 - our own bytes
