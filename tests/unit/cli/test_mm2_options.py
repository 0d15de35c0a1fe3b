"""The options for MirrorMaker 2's own files: what they read, and that all commands have them."""

import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import NoReturn

import pytest
import trustme
from cli_process import run_main

from mm2slo_cli import exporter as exporter_command
from mm2slo_cli import settings_process
from mm2slo_cli.config_files import load_source, read_config
from mm2slo_cli.config_options import ConfigSource
from mm2slo_core.config.config_document import ConfigError
from mm2slo_core.config.config_model import Config
from mm2slo_core.config.exporter_settings import RootSettings
from mm2slo_core.user_errors import UserError

PROPERTIES = """\
clusters = us, eu
us.bootstrap.servers = us:9092
eu.bootstrap.servers = eu:9093
eu.security.protocol = SASL_SSL
eu.sasl.mechanism = PLAIN
eu.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required \\
  username="mm2" password="${file:/opt/mm2/secrets.properties:eu}";
config.providers = file
config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider
us->eu.enabled = true
"""
STRIMZI = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata: {name: mirror}
spec:
  replicas: 1
  target:
    alias: eu
    bootstrapServers: eu:9093
    groupId: mirror
    configStorageTopic: mirror-configs
    offsetStorageTopic: mirror-offsets
    statusStorageTopic: mirror-status
    authentication:
      type: scram-sha-512
      username: mm2
      passwordSecret: {secretName: mm2-user, password: password}
    tls: {trustedCertificates: [{secretName: eu-ca, pattern: "*.crt"}]}
  mirrors:
    - source: {alias: us, bootstrapServers: "us:9092"}
      topicsPattern: orders.*
      sourceConnector: {tasksMax: 2}
      checkpointConnector: {}
"""
CONNECTOR = {
    "name": "orders",
    "config": {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "us",
        "target.cluster.alias": "eu",
        "source.cluster.bootstrap.servers": "us:9092",
        "target.cluster.bootstrap.servers": "eu:9092",
        "topics": "orders.*",
    },
}
WORKER = """\
group.id = connect
offset.storage.topic = offsets
status.storage.topic = status
config.storage.topic = configs
"""


@pytest.fixture
def properties(tmp_path: Path) -> ConfigSource:
    (tmp_path / "mm2.properties").write_text(PROPERTIES, encoding="utf-8")
    (tmp_path / "secrets.properties").write_text("eu = hunter2\n", encoding="utf-8")
    return ConfigSource(mm2=[tmp_path / "mm2.properties"], path=[f"/opt/mm2={tmp_path}"])


def password(config: Config) -> str:
    sasl = config.clusters["eu"].security.sasl
    assert sasl is not None
    assert sasl.password is not None
    return sasl.password.reveal()


def test_read_config_of_properties_prints_one_warning(
    properties: ConfigSource, capsys: pytest.CaptureFixture[str]
) -> None:
    config = read_config(properties)
    assert ([flow.label for flow in config.flows], password(config)) == (["us->eu"], "hunter2")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        f"{properties.mm2[0]}:3: warning: mm2slo uses MirrorMaker 2's principal on eu (set "
        "clusters.<alias>.security to an own principal with the permissions of "
        "docs/permissions.md) [own-principal]\n"
    )


@pytest.mark.parametrize("start", ["/opt/mm2", "/opt/mm2/", "/opt/mm2/secrets.properties"])
def test_path_maps_the_longest_file_or_folder(properties: ConfigSource, start: str) -> None:
    folder = properties.mm2[0].parent
    here = folder / "secrets.properties" if start.endswith("s") else folder
    source = ConfigSource(mm2=properties.mm2, path=["/opt=/nowhere", f"{start}={here}"])
    assert password(load_source(source)[0]) == "hunter2"


@pytest.mark.parametrize("text", ["/opt", "=x", "/opt="])
def test_path_without_two_parts_is_refused(properties: ConfigSource, text: str) -> None:
    with pytest.raises(UserError, match=r"--path .* is not FROM=TO; write for example"):
        load_source(ConfigSource(mm2=properties.mm2, path=[text]))


def test_load_strimzi_reads_mounted_secrets(tmp_path: Path) -> None:
    (tmp_path / "mirror.yaml").write_text(STRIMZI, encoding="utf-8")
    certificate = trustme.CA().cert_pem.bytes().decode()
    files = {
        "mm2-user/password": "hunter2", "eu-ca/b.crt": certificate, "eu-ca/a.crt": certificate,
        "eu-ca/..data/c.crt": "an older version", "eu-ca/key.txt": "no certificate",
    }  # fmt: skip
    for name, content in files.items():
        (tmp_path / "secrets" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "secrets" / name).write_text(content, encoding="utf-8")
    source = ConfigSource(strimzi=[tmp_path / "mirror.yaml"], secrets=tmp_path / "secrets")
    config, _ = load_source(source)
    tls = config.clusters["eu"].security.tls
    assert tls is not None
    assert tls.ca is not None
    assert tls.ca.count("-----BEGIN CERTIFICATE") == 2
    assert (password(config), config.flows[0].topics) == ("hunter2", ("orders.*",))


def test_load_connect_takes_the_names_of_the_worker(tmp_path: Path) -> None:
    (tmp_path / "connectors.json").write_text(json.dumps(CONNECTOR), encoding="utf-8")
    (tmp_path / "worker.properties").write_text(WORKER, encoding="utf-8")
    connectors, worker = tmp_path / "connectors.json", tmp_path / "worker.properties"
    (flow,) = load_source(ConfigSource(connect_json=[connectors], worker=worker))[0].flows
    assert (flow.label, flow.connect.offsets_topic) == ("us->eu", "offsets")
    assert flow.connect.source_connector == "orders"
    with pytest.raises(ConfigError, match="add --worker FILE"):
        load_source(ConfigSource(connect_json=[connectors]))


def test_load_section_mm2_starts_at_the_folder_of_the_file(
    properties: ConfigSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = {"properties": ["mm2.properties"], "paths": {"/opt/mm2": "."}}
    text = json.dumps({"mm2": section, "flows": [{"flow": "us->eu", "topics": ["a"]}]})
    (tmp_path / "mm2slo.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    config, _ = load_source(ConfigSource(Path("../mm2slo.yaml")))
    assert (config.flows[0].topics, password(config)) == (("a",), "hunter2")
    (tmp_path / "elsewhere" / "link.yaml").symlink_to(tmp_path / "mm2slo.yaml")
    assert load_source(ConfigSource(Path("link.yaml")))[0] == config


def test_load_files_that_cannot_be_read_are_reported_together(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff")
    source = ConfigSource(mm2=[tmp_path / "gone"], strimzi=[tmp_path / "binary.yaml"])
    with pytest.raises(ConfigError) as refused:
        load_source(source)
    assert str(refused.value).replace(str(tmp_path), "") == (
        "/gone, /binary.yaml: 2 problems\n"
        "/binary.yaml: the file has no KafkaMirrorMaker2; no other kind has flows\n"
        "  next step: pass the output of: kubectl get kafkamirrormaker2 -o yaml\n"
        "/gone: cannot be read: No such file or directory"
    )


def test_load_reads_all_files_again(properties: ConfigSource, tmp_path: Path) -> None:
    before, _ = load_source(properties)
    (tmp_path / "secrets.properties").write_text("eu = changed\n", encoding="utf-8")
    text = PROPERTIES + "us->eu.topics = orders\n"
    (tmp_path / "mm2.properties").write_text(text, encoding="utf-8")
    after, _ = load_source(properties)
    assert [(password(each), each.flows[0].topics) for each in (before, after)] == [
        ("hunter2", (".*",)),
        ("changed", ("orders",)),
    ]


class Captured(Exception):  # noqa: N818 - ends the command under test
    pass


def test_exporter_reloads_files_and_logs_each_finding_once(
    properties: ConfigSource,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def run_exporter(
        load: Callable[[], RootSettings], _flows: tuple[str, ...], _version: str
    ) -> NoReturn:
        load()
        (tmp_path / "mm2.properties").write_text(f"nonsense\n{PROPERTIES}", encoding="utf-8")
        load()
        raise Captured

    monkeypatch.setattr(exporter_command, "run_exporter", run_exporter)
    monkeypatch.setattr("mm2slo_exporter.log_output.configure_logging", lambda _: None)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with caplog.at_level(logging.INFO), pytest.raises(Captured):
        settings_process.run(properties, [])
    logged = [record.getMessage().partition("mm2.properties:")[2] for record in caplog.records]
    assert [text.split(": ")[0] for text in logged] == ["3", "1", "4"]


def test_check_prints_findings(
    properties: ConfigSource, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["check", *properties.arguments()]
    assert run_main(monkeypatch, *arguments) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{properties.mm2[0]}: valid; 1 flow, 2 clusters\n")
    assert out.endswith("docs/permissions.md) [own-principal]\n")
    assert run_main(monkeypatch, *arguments, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert [finding.split("[")[-1] for finding in printed["findings"]] == ["own-principal]"]
    assert "hunter2" not in out + json.dumps(printed)


def test_config_source_arguments_lead_to_the_same_source() -> None:
    source = ConfigSource(
        Path("c.yaml"), [Path("a"), Path("b")], connect_json=[Path("j")], path=["/x=y"]
    )
    assert source.arguments() == [
        "--config", "c.yaml", "--mm2", "a", "--mm2", "b", "--connect-json", "j", "--path", "/x=y",
    ]  # fmt: skip
    assert [bool(each) for each in (source, ConfigSource(), ConfigSource(worker=Path("w")))] == [
        True, False, False,
    ]  # fmt: skip


PROPERTIES_FILE = ("MirrorMaker 2's properties file", "--mm2")
JSON_FILE = ("connectors of Kafka Connect as JSON", "--connect-json")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("clusters = us, eu\nus->eu.enabled = true\n", PROPERTIES_FILE),
        ("! not YAML\nclusters=us, eu\na.b=c: d\n", PROPERTIES_FILE),
        (
            "group.id=mirror\noffset.storage.topic=mm2-offsets\n",
            ("the properties file of Connect workers", "--worker"),
        ),
        (
            "apiVersion: kafka.strimzi.io/v1\nkind: KafkaMirrorMaker2\nspec: {}\n",
            ("a Kubernetes resource", "--strimzi"),
        ),
        ('[{"name": "mirror", "config": {"tasks.max": "3"}}]', JSON_FILE),
        ('{"name": "mirror", "config": {"tasks.max": "3"}}', JSON_FILE),
    ],
)
def test_load_mirrormaker_file_as_own_configuration_names_its_option(
    text: str, found: tuple[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load_source(ConfigSource(file))
    assert [str(each) for each in refused.value.problems] == [
        f"the file: looks like {found[0]}\n  expected: a mapping with clusters and flows\n"
        f"  next step: give this file with {found[1]}"
    ]


# These read settings that MirrorMaker 2's files do not have.
OPTIONS = {each.name.replace("_", "-") for each in fields(ConfigSource)} - {"config"}
ONLY_OURS = {("alerts", "preview"), ("audit", "prepare")}


def helps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *command: str
) -> Iterator[tuple[tuple[str, ...], str]]:
    """The help of *command* and of all commands below it."""
    assert run_main(monkeypatch, *command, "--help") == 0
    text = capsys.readouterr().out
    yield command, text
    _, _, commands = text.partition("─ Commands ─")
    for name in re.findall(r"^│ ([a-z][\w-]*) ", commands, re.MULTILINE):
        yield from helps(monkeypatch, capsys, *command, name)


def test_every_command_that_takes_a_configuration_takes_mirrormaker_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    found = {
        command: {name for name in OPTIONS if f"--{name} " in text}
        for command, text in helps(monkeypatch, capsys)
        if re.search(r"Path of mm2slo\.yaml", text) and command not in ONLY_OURS
    }
    assert found == {
        tuple(command.split()): OPTIONS
        for command in (
            "check", "exporter", "health", "audit", "audit probe", "alerts generate",
            "alerts check", "cutover check", "cutover plan", "dashboards generate",
            "dashboards check", "drill", "failback record", "failback plan", "perf run", "plan",
            "exclude add", "exclude list", "exclude remove", "exclude write", "slo export",
            "report serve", "report slack", "logship run", "logship check", "logship tail",
            "logship offsets", "logship dead-letter list", "logship dead-letter replay",
        )
    }  # fmt: skip


def test_no_help_text_is_cut_at_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    cut = [
        (command, line)
        for command, text in helps(monkeypatch, capsys)
        for line in text.splitlines()
        if "…" in line
    ]
    assert cut == []
