"""JAAS lines, parsed as Kafka parses them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka_jvm import running_jvm
from py4j import java_gateway, protocol  # type: ignore[import-untyped]  # py4j ships no types

from mm2slo_core.mm2_config.provider_references import JaasError, parse_jaas

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
VALID = {
    f'{SCRAM} required username="app" password="p w;";': {"username": "app", "password": "p w;"},
    f"{SCRAM} required username='app' password='it\"s';": {"username": "app", "password": 'it"s'},
    f"{SCRAM} required username=app-1 password=p.w_$1;": {
        "username": "app-1",
        "password": "p.w_$1",
    },
    f"{SCRAM}\n  required\n  username = app\n  password\t=pw\n;\n": {
        "username": "app",
        "password": "pw",
    },
    'M Optional a="\\101\\n\\"\\\\\\q\\u\\8" ;': {"a": 'A\n"\\qu8'},
    'M required a="\\1234\\477";': {"a": "S4'7"},
    'M required /* a="b" */ c="d" // e\n;': {"c": "d"},
    "M required a=pass/rest of the line\n b=c;": {"a": "pass", "b": "c"},
    'M required "a b"="c" d="1" d="2";': {"a b": "c", "d": "2"},
    "M required a=pass/\n b=c;\n d=e;": {"a": "pass", "d": "e"},
    "M required a=pass//\n b=c;": {"a": "pass", "b": "c"},
    "M required a=Grüße€𝄞;": {"a": "Grüße€𝄞"},
    "M required;": {},
    'M required oauth.client.id="x" ssl.truststore.type="PEM";': {
        "oauth.client.id": "x",
        "ssl.truststore.type": "PEM",
    },
}
INVALID = {
    "": "does not start with the class",
    "hunter2": "has no control flag",
    "M needed;": "has no control flag",
    "1M required;": "does not start with the class",
    "M required password=12345;": "option 1",
    "M required username=u password=hunter@2 x=y;": "option 3",
    "M required username=u password=-hunter2;": "option 2",
    'M required password="hunter\n2";': "option 2",
    'M required password="hunter2"': "does not end with a semicolon",
    "M required password=hunter2 /* ;": "does not end with a semicolon",
    "M required password=hun ter2;": "option 2",
    "M required a=b; N required c=hunter2;": "has text after its first semicolon",
}
# What users type, with many marks that end, quote or comment.
ALPHABET = 'abM1 .-_$=;;""\'\\\\/*\n@é07n'
LINES = st.one_of(
    st.text(ALPHABET, max_size=25),
    st.text(ALPHABET, max_size=25).map(lambda text: f"M required a={text};"),
    st.text(ALPHABET, max_size=25).map(lambda text: f'M required a="{text}";'),
)


@pytest.mark.parametrize(("text", "options"), VALID.items())
def test_parse_jaas_returns_module_and_options(text: str, options: dict[str, str]) -> None:
    module = parse_jaas(text)
    assert module.options == options
    assert module.name in {SCRAM, "M"}
    assert module.flag in {"REQUIRED", "OPTIONAL"}


@pytest.mark.parametrize(("text", "message"), INVALID.items())
def test_parse_jaas_invalid_text_raises_error_without_it(text: str, message: str) -> None:
    with pytest.raises(JaasError, match=message) as refused:
        parse_jaas(text)
    assert "hun" not in str(refused.value)
    assert "12345" not in str(refused.value)


def test_login_module_repr_has_no_options() -> None:
    assert "hunter2" not in repr(parse_jaas("M required password=hunter2;"))


@pytest.fixture(scope="module")
def kafka() -> Any:
    with running_jvm() as jvm, pytest.MonkeyPatch.context() as patch:
        # Where a test of this process has started Spark, PySpark replaced this function by one that
        # looks up exceptions in Spark's JVM.
        patch.setattr(java_gateway, "get_return_value", protocol.get_return_value)
        yield jvm


def parse_in_kafka(jvm: Any, text: str) -> dict[str, str] | None:
    """The options as Kafka reads them; None if it refuses *text*, or allows an option null."""
    password = jvm.org.apache.kafka.common.config.types.Password(text)
    configs = {"sasl.jaas.config": password}
    try:
        context = jvm.org.apache.kafka.common.security.JaasContext.loadClientContext(configs)
    except protocol.Py4JJavaError as error:
        if "IllegalArgumentException" in str(error) or "NullPointerException" in str(error):
            return None
        raise
    options = dict(context.configurationEntries()[0].getOptions())
    return None if None in options else options


def parse_or_none(text: str) -> dict[str, str] | None:
    try:
        return dict(parse_jaas(text).options)
    except JaasError:
        return None


@pytest.mark.spark
def test_parse_jaas_of_examples_agrees_with_kafka(kafka: Any) -> None:
    for text in (*VALID, *INVALID):
        assert parse_or_none(text) == parse_in_kafka(kafka, text), text


@pytest.mark.spark
@pytest.mark.property
@given(LINES)
def test_parse_jaas_agrees_with_kafka(kafka: Any, text: str) -> None:
    assert parse_or_none(text) == parse_in_kafka(kafka, text)
