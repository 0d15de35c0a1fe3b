"""Config provider references resolve as Kafka resolves them, and no message shows a value."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.config.config_document import UnresolvedError
from mm2slo_core.mm2_config.mirror_setup import (
    Finding,
    FindingSeverity,
    Origin,
    ProviderKind,
    Setting,
)
from mm2slo_core.mm2_config.provider_references import MirrorFiles, read_providers, resolve_settings

KAFKA_PATTERN: Final = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")
ORIGIN: Final = Origin("mm2.properties", 7)
PROVIDERS: Final[Mapping[str, ProviderKind | None]] = {
    "env": ProviderKind.ENV,
    "file": ProviderKind.FILE,
    "dir": ProviderKind.DIRECTORY,
    "secrets": ProviderKind.SECRET,
    "own": None,
}
CREDENTIALS: Final = """\
# accounts of the mirror
mirror.password = gr\u00fcn=\\u20ac:\\
    tail
empty=
latest=1
latest=2
"""


def lookup(entries: Mapping[Any, Any]) -> Any:
    def get(*name: str) -> Any:
        try:
            return entries[name[0] if len(name) == 1 else name]
        except KeyError:
            raise UnresolvedError("it does not exist") from None

    return get


FILES: Final = MirrorFiles(
    environment=lookup({"US_PW": "sesame", "EMPTY": "", "NESTED": "${env:US_PW}", "EOL": "x\r\n"}),
    content=lookup(
        {
            "/opt/mm2/accounts.properties": CREDENTIALS.encode(),
            "/opt/mm2/broken.properties": b"pw=hunter2\\u12",
            "/mnt/us/password": b" lead \xc3\xa9",
            "/mnt/us/newline": b"sesame\n",
            "/mnt/us/ca.crt": b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
            "/mnt/us/latin": b"\xe9",
        }
    ),
    secret=lookup({("eu-user", "password"): b"open", ("eu-user", "newline"): b"open\n"}),
)


def resolve(value: str) -> tuple[str, tuple[Finding, ...]]:
    setting = Setting("us.sasl.jaas.config", value, ORIGIN)
    settings, findings = resolve_settings({"sasl.jaas.config": setting}, PROVIDERS, FILES)
    resolved = settings["sasl.jaas.config"]
    assert (resolved.key, resolved.origin) == (setting.key, setting.origin)
    return resolved.value, findings


@pytest.mark.parametrize(
    ("value", "resolved"),
    [
        ("plain", "plain"),
        ("${env:US_PW}", "sesame"),
        ('u="${env:US_PW}" p="${env:US_PW}";', 'u="sesame" p="sesame";'),
        ("${env:EMPTY}", ""),
        ("${env:NESTED}", "${env:US_PW}"),
        ("$${env:US_PW}", "$sesame"),
        ("${US_PW} ${env:US_PW}", "${US_PW} sesame"),
        ("${env:US_PW", "${env:US_PW"),
        ("${file:/opt/mm2/accounts.properties:mirror.password}", "gr\u00fcn=\u20ac:tail"),
        ("${file:/opt/mm2/accounts.properties:empty}", ""),
        ("${file:/opt/mm2/accounts.properties:latest}", "2"),
        ("${dir:/mnt/us:password}", " lead \u00e9"),
        ("${dir:/mnt/us/:password}", " lead \u00e9"),
        ("${dir:/mnt/us:latin}", "\ufffd"),
        (
            "${dir:/mnt/us:ca.crt}",
            "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
        ),
        ("${secrets:eu-user:password}", "open"),
        ("${secrets:kafka/eu-user:password}", "open"),
    ],
)
def test_resolve_settings_with_known_references_returns_values_of_kafka(
    value: str, resolved: str
) -> None:
    assert resolve(value) == (resolved, ())


@pytest.mark.parametrize(
    ("value", "resolved"),
    [
        ("${dir:/mnt/us:newline}", "sesame\n"),
        ("${secrets:eu-user:newline}", "open\n"),
        ("${env:EOL}", "x\r\n"),
    ],
)
def test_resolve_settings_with_trailing_newline_keeps_it_and_warns(
    value: str, resolved: str
) -> None:
    found, (finding,) = resolve(value)

    assert found == resolved
    assert (finding.check, finding.severity) == ("trailing-newline", FindingSeverity.WARNING)
    assert finding.what == f"the value of {value} in us.sasl.jaas.config ends with a line break"


@pytest.mark.parametrize(
    ("value", "reason", "action"),
    [
        ("${env:EU_PW}", "it does not exist", "export EU_PW=... before starting mm2slo"),
        (
            "${env:/x:EU_PW}",
            "an environment variable has no path",
            "export EU_PW=... before starting mm2slo",
        ),
        (
            "${file:/opt/mm2/accounts.properties:other}",
            "the file has no such key",
            "copy /opt/mm2/accounts.properties here"
            " and add --path /opt/mm2/accounts.properties=COPY",
        ),
        (
            "${file:/opt/mm2/broken.properties:pw}",
            "the file has \\u without four hexadecimal digits after it",
            "copy /opt/mm2/broken.properties here and add --path /opt/mm2/broken.properties=COPY",
        ),
        (
            "${dir:/mnt/eu:password}",
            "it does not exist",
            "copy /mnt/eu here and add --path /mnt/eu=COPY",
        ),
        (
            "${dir:/mnt/us:../us/password}",
            "its key is not a file name",
            "copy /mnt/us here and add --path /mnt/us=COPY",
        ),
        (
            "${secrets:eu-user:user.p12}",
            "it does not exist",
            "add --secrets DIR, with this value in DIR/<secret>/user.p12",
        ),
        (
            "${own:eu:password}",
            "mm2slo cannot read its config provider",
            "set in mm2slo.yaml what it is for, such as clusters.<alias>.security",
        ),
        (
            "${secrets:a/b/eu-user:password}",
            "its path is not [NAMESPACE/]SECRET",
            "add --secrets DIR, with this value in DIR/<secret>/password",
        ),
    ],
)
def test_resolve_settings_with_missing_value_keeps_reference_and_names_next_step(
    value: str, reason: str, action: str
) -> None:
    found, (finding,) = resolve(f"a {value} b")

    assert found == f"a {value} b"
    assert (finding.check, finding.severity, finding.origin, finding.action) == (
        "unresolved-reference", FindingSeverity.ERROR, ORIGIN, action,
    )  # fmt: skip
    assert finding.what == f"{value} in us.sasl.jaas.config cannot be resolved: {reason}"
    assert "hunter2" not in str(finding) + repr(finding)


@pytest.mark.parametrize(
    ("value", "which"),
    [
        ("a${vault:kv/us:hunter2}b", "the config provider 'vault'"),
        ("${PASSWORD:-hunter2}", "the config provider 'PASSWORD'"),
        ("hunter2${hunter2 ${env:x}", "a config provider"),
    ],
)
def test_resolve_settings_with_undeclared_provider_keeps_text_and_names_config_providers(
    value: str, which: str
) -> None:
    found, (finding,) = resolve(value)

    assert found == value
    assert (finding.check, finding.severity) == ("undeclared-provider", FindingSeverity.ERROR)
    refers = f"us.sasl.jaas.config refers to {which}, which"
    assert finding.what == f"{refers} config.providers does not list"
    assert "hunter2" not in str(finding) + repr(finding)


@pytest.mark.parametrize(
    "value", ["${file:key}", "${file::key}", "${dir:key}", "${secrets:password}"]
)
def test_resolve_settings_without_path_reports_missing_path(value: str) -> None:
    found, (finding,) = resolve(value)

    assert found == value
    assert finding.what.endswith("it has no path")


@pytest.mark.property
@given(st.text("${}:ab\n", max_size=24))
def test_resolve_settings_any_text_finds_the_references_of_kafkas_pattern(text: str) -> None:
    providers = dict.fromkeys(("", "a", "b", "ab", "$", "${a", "a${b"), ProviderKind.FILE)
    looked_up: list[str] = []

    def content(path: str) -> bytes:
        looked_up.append(path)
        raise UnresolvedError("it does not exist")

    files = replace(FILES, content=content)
    setting = Setting("topics", text, ORIGIN)

    _, findings = resolve_settings({"topics": setting}, providers, files)

    expected = [m for m in KAFKA_PATTERN.finditer(text) if m[1] in providers]
    assert looked_up == [m[3] for m in expected if m[3]]
    unresolved = [f for f in findings if f.check == "unresolved-reference"]
    assert [f.what.partition(" in topics")[0] for f in unresolved] == [m[0] for m in expected]
    assert len(findings) == len([*KAFKA_PATTERN.finditer(text)])


@pytest.mark.parametrize(
    ("class_name", "kind"),
    [
        ("org.apache.kafka.common.config.provider.EnvVarConfigProvider", ProviderKind.ENV),
        ("org.apache.kafka.common.config.provider.FileConfigProvider ", ProviderKind.FILE),
        (
            "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
            ProviderKind.DIRECTORY,
        ),
        ("io.strimzi.kafka.EnvVarConfigProvider", ProviderKind.ENV),
        ("io.strimzi.kafka.KubernetesSecretConfigProvider", ProviderKind.SECRET),
        ("io.strimzi.kafka.KubernetesConfigMapConfigProvider", None),
        ("com.example.VaultConfigProvider", None),
    ],
)
def test_read_providers_with_class_returns_what_it_reads(
    class_name: str, kind: ProviderKind | None
) -> None:
    settings = {"config.providers": "x", "config.providers.x.class": class_name}
    providers, _ = read_providers({k: Setting(k, v, ORIGIN) for k, v in settings.items()})
    assert providers.get("x") is kind


def test_read_providers_with_unknown_classes_returns_known_ones_and_warnings() -> None:
    package = "org.apache.kafka.common.config.provider"
    values = {
        "config.providers": "env, vault,,bare",
        "config.providers.env.class": f"{package}.EnvVarConfigProvider",
        "config.providers.vault.class": "com.example.VaultConfigProvider",
        "config.providers.unlisted.class": f"{package}.FileConfigProvider",
    }
    settings = {
        key: Setting(key, value, Origin("worker.properties", line))
        for line, (key, value) in enumerate(values.items(), start=1)
    }

    providers, findings = read_providers(settings)

    assert providers == {"env": ProviderKind.ENV, "vault": None, "bare": None}
    assert [(f.check, f.severity, f.origin.line, f.what) for f in findings] == [
        ("unknown-config-provider", FindingSeverity.WARNING, 3,
         "config provider 'vault' has the class 'com.example.VaultConfigProvider',"
         " which mm2slo cannot read"),
        ("unknown-config-provider", FindingSeverity.WARNING, 1,
         "config provider 'bare' has no class"),
    ]  # fmt: skip
    assert read_providers({}) == ({}, ())


def test_read_providers_of_a_cluster_and_a_connector_are_declared() -> None:
    parts = ({"eu.config.providers": "env"}, {"config.providers": "vault"})
    parts[0]["eu.config.providers.env.class"] = "io.strimzi.kafka.EnvVarConfigProvider"
    settings = ({key: Setting(key, each[key], ORIGIN) for key in each} for each in parts)
    assert read_providers(*settings)[0] == {"env": ProviderKind.ENV, "vault": None}
