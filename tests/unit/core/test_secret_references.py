"""Secrets in plain text become references to secrets that the user creates."""

import pytest

from mm2slo_core.mm2_config.mirror_setup import Origin, ProviderKind, Setting
from mm2slo_core.mm2_config.provider_references import SecretReferences

KINDS = {"env": ProviderKind.ENV, "k8s": ProviderKind.SECRET}
JAAS = "sasl.jaas.config"
HIDDEN = "${secretdir:/run/mm2-us:%s}"


def hide(key: str, value: str, *, every: bool = False) -> tuple[str, dict[str, tuple[str, str]]]:
    references = SecretReferences({*KINDS, "vault"}, KINDS, "/run", every)
    found = references.hide("mm2-us", key, Setting(f"us.{key}", value, Origin("mm2", 3)))
    return found.value, {names[1]: each for names, each in references.created.items()}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ssl.key.password", "pw"),
        ("ssl.keystore.key", "-----BEGIN PRIVATE KEY-----"),
        ("sasl.oauthbearer.client.credentials.client.secret", "pw"),
        ("transforms.x.api-key", "pw"),
        ("metric.reporters.token", "pw"),
        ("metric.reporters.dbPwd", "pw"),
        ("metric.reporters.pass", "pw"),
        ("metric.reporters.webhook", "https://hooks.slack.com/services/T0/B0/x"),
        ("metric.reporters.url", "https://token@host/x"),
        ("metric.reporters.endpoint", "https://me@corp:p/w@host"),
        ("value.converter.basic.auth.user.info", "user:pw"),
        ("value.converter.schema.registry.url", "https://user:pw@sr:8081"),
        ("sasl.jass.config", 'X required password="pw";'),
        ("ssl.key.password", "${pw:-pw}"),
        ("ssl.key.password", "a${env:X}"),
        (JAAS, "not a login module with pw"),
        (JAAS, 'X required username="${" password="pw";'),
        ("transforms.x.my\npassword", "pw"),
    ],
)
def test_secret_in_plain_text_becomes_reference(key: str, value: str) -> None:
    text, secrets = hide(key, value)
    name = key.replace("\n", "_")
    assert text == HIDDEN % name
    assert secrets == {name: (f"us.{key} (mm2:3)", value)}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("topics", "orders.*"),
        ("ssl.keystore.location", "/opt/us.p12"),
        ("ssl.truststore.certificates", "-----BEGIN CERTIFICATE-----"),
        ("key.converter", "org.apache.kafka.connect.json.JsonConverter"),
        ("sasl.oauthbearer.client.credentials.client.id", "mm2"),
        ("sasl.oauthbearer.assertion.private.key.file", "/opt/key.pem"),
        ("sasl.oauthbearer.token.endpoint.url", "https://id.example.com/token"),
        ("ssl.key.password", "${env:X}"),
        ("ssl.key.password", "${vault:secret/us:pw}"),
        ("ssl.key.password", ""),
        (JAAS, "${env:JAAS}"),
        (JAAS, 'X required username="a" password=${env:PW};'),
        (JAAS, 'X required oauth.client.id="a" oauth.token.endpoint.uri="https://i/t";'),
        (JAAS, 'X required awsRoleArn="arn:aws:iam::1:role/mm2" awsDebugCreds="true";'),
    ],
)
def test_setting_without_secret_is_kept(key: str, value: str) -> None:
    assert hide(key, value) == (value, {})


@pytest.mark.parametrize(
    ("option", "key", "content", "stored"),
    [
        ('password="pw"', "password", "password", "pw"),
        ("password=pw", "password", "password", "pw"),
        ('password="p\\"w"', "password", 'password, with a \\ before each " and \\', 'p\\"w'),
        ('clientSecret="pw"', "clientSecret", "clientSecret", "pw"),
        ('pasword="pw"', "pasword", "pasword", "pw"),
    ],
)
def test_option_of_jaas_becomes_reference(option: str, key: str, content: str, stored: str) -> None:
    text, secrets = hide(JAAS, f"org.X required username='a b' {option};")
    assert text == f'org.X required username="a b" {key}="{HIDDEN % key}";'
    place = f"{key} of us.{JAAS} (mm2:3)"
    assert secrets == {key: (content.replace(key, place, 1), stored)}


@pytest.mark.parametrize(
    ("value", "every", "expected", "created"),
    [
        ("${k8s:ns/db:pw}", False, "${secretdir:/run/db:pw}", {}),
        ("${k8s:db:*.crt}", True, "${secretdir:/run/db:*.crt}", {}),
        ("${k8s:db:*.crt}", False, HIDDEN % "all.crt", {"all.crt": "the value of ${k8s:db:*.crt}"}),
        ("${env:PW}", True, HIDDEN % "PW", {"PW": "the value of ${env:PW}"}),
        ("${env:PW}", False, "${env:PW}", {}),
        ("${vault:x:y}", True, "${vault:x:y}", {}),
    ],
)
def test_reference_is_kept_or_translated(
    value: str, every: bool, expected: str, created: dict[str, str]
) -> None:
    text, secrets = hide("ssl.key.password", value, every=every)
    assert text == expected
    assert {key: content for key, (content, _) in secrets.items()} == created


def test_other_value_of_same_name_gets_its_own_key() -> None:
    references = SecretReferences(KINDS, KINDS, "/run", every=False)
    made = [references.create("MM2 us", "key", "a\nb", value) for value in ("a", "b", "a")]
    assert made == ["${secretdir:/run/mm2-us:key}", "${secretdir:/run/mm2-us:key-2}", made[0]]
    assert references.note("mm2-us key") == ("# Create these secrets:\n#   mm2-us, key key: a b\n")
    assert references.note("nothing") == ""
    assert "created" not in repr(references)
