"""`mm2slo init` writes an mm2slo.yaml for MirrorMaker 2's own files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mm2slo_cli.config_files import load_source
from mm2slo_cli.config_options import ConfigSource
from mm2slo_core.mm2_config.mirror_setup import FileForm, file_form

if TYPE_CHECKING:
    Run = Callable[[str], tuple[int, str, str]]

WROTE = "wrote mm2slo.yaml; next: mm2slo check --config mm2slo.yaml\n"
PROPERTIES = """\
clusters = us, eu
us.bootstrap.servers = us-1:9092, us-2:9092
eu.bootstrap.servers = eu-1:9093
eu.security.protocol = SASL_SSL
eu.sasl.mechanism = SCRAM-SHA-512
eu.sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule required \\
  username="mm2" password="hunter2";
us->eu.enabled = true
us->eu.topics = orders.*, \\u0085payments
"""
PROVIDERS = """\
config.providers = env
config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider
"""
WRITTEN = """\
# The flows of MirrorMaker 2's own configuration. docs/configuration.md lists every key.
# Clusters:
#   us: us-1:9092, us-2:9092
#   eu: eu-1:9093
# Flows:
#   us->eu: topics orders.*, payments (conf/mm2.properties:8)

mm2:
  properties:
    - conf/mm2.properties

# A principal that can only read is safer than MirrorMaker 2's: docs/permissions.md.
#clusters:
#  "us":
#    security:
#      protocol: SASL_SSL
#      sasl: {mechanism: SCRAM-SHA-512, username: mm2slo, password: "${env:US_PASSWORD}"}
#  "eu":
#    security:
#      protocol: SASL_SSL
#      sasl: {mechanism: SCRAM-SHA-512, username: mm2slo, password: "${env:EU_PASSWORD}"}

# Objectives; those that are not set here have the defaults of docs/alerts.md.
#slo:
#  objectives:
#    - {flows: ["us->eu"], sli: availability, target: 99.9%}

# Alerts in Slack.
#alerting:
#  slack:
#    - {name: mm2-alerts, webhook_url_file: /run/secrets/slack-webhook-url}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "mm2.properties").write_text(PROPERTIES, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_init_writes_commented_file_that_passes_the_check(folder: Path, mm2slo: Run) -> None:
    assert mm2slo("init --from conf/mm2.properties")[:2] == (0, WROTE)
    assert (folder / "mm2slo.yaml").read_text(encoding="utf-8") == WRITTEN
    config, _ = load_source(ConfigSource(Path("mm2slo.yaml")))
    assert [flow.label for flow in config.flows] == ["us->eu"]


def test_init_suggestions_are_valid_once_uncommented(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = re.sub(r"^#(?=\S|  )", "", WRITTEN.split("\n\n", 1)[1], flags=re.MULTILINE)
    (folder / "mm2slo.yaml").write_text(text, encoding="utf-8")
    for name in ("US_PASSWORD", "EU_PASSWORD"):
        monkeypatch.setenv(name, "own")
    config, findings = load_source(ConfigSource(Path("mm2slo.yaml")))
    sasl = config.clusters["eu"].security.sasl
    assert sasl is not None
    assert (sasl.username, config.alerting.slack[0].name, findings) == ("mm2slo", "mm2-alerts", ())


def test_init_does_not_overwrite_without_force(folder: Path, mm2slo: Run) -> None:
    (folder / "mine.yaml").write_text("precious", encoding="utf-8")
    command = "init --from conf/mm2.properties --output mine.yaml"
    message = "mine.yaml exists; replace it with --force, or choose another --output\n"
    assert mm2slo(command) == (2, "", message)
    assert (folder / "mine.yaml").read_text(encoding="utf-8") == "precious"
    assert mm2slo(f"{command} --force")[0] == 0
    assert (folder / "mine.yaml").read_text(encoding="utf-8") == WRITTEN


def test_init_paths_start_at_the_folder_of_the_output(
    folder: Path, mm2slo: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = folder / "other" / "mm2slo.yaml"
    assert mm2slo(f"init --from conf/mm2.properties --output {output}")[0] == 0
    written = output.read_text(encoding="utf-8")
    assert "\nmm2:\n  properties:\n    - ../conf/mm2.properties\n" in written
    assert "hunter2" not in written
    monkeypatch.chdir("/")
    assert len(load_source(ConfigSource(output))[0].flows) == 1


def test_init_unresolved_reference_is_reported_after_writing(folder: Path, mm2slo: Run) -> None:
    text = PROPERTIES.replace('"hunter2"', '"${env:MM2SLO_TEST_GONE}"')
    text += PROVIDERS
    (folder / "conf" / "mm2.properties").write_text(text, encoding="utf-8")
    code, out, err = mm2slo("init --from conf/mm2.properties")
    assert (code, out, err.splitlines()[0]) == (2, WROTE, "mm2slo.yaml: 1 problem")
    assert (folder / "mm2slo.yaml").exists()


REFUSED = {
    "a missing file": (None, "cannot read 'x': No such file or directory\n"),
    "another file": (
        "hello",
        "'x' is not a configuration of MirrorMaker 2; expected ",
    ),
    "a file without flows": ("clusters = us, eu\n", "x: 3 problems\n"),
    "only workers": ("group.id = a\n", "x: 1 problem\nflows: are not found\n"),
}


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=[*REFUSED])
def test_init_without_flows_writes_nothing(
    folder: Path, mm2slo: Run, content: str | None, message: str
) -> None:
    if content is not None:
        (folder / "x").write_text(content, encoding="utf-8")
    code, out, err = mm2slo("init --from x")
    assert (code, out) == (2, "")
    assert err.startswith(message)
    assert not (folder / "mm2slo.yaml").exists()


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (PROPERTIES, FileForm.PROPERTIES),
        ("# x\r\n  clusters:us\n", FileForm.PROPERTIES),
        (
            "# a comment\nkind: KafkaMirrorMaker2\napiVersion: a/v1\n",
            FileForm.STRIMZI,
        ),
        ('{"apiVersion": "v1", "kind": "List", "items": []}', FileForm.STRIMZI),
        ('\n[{"name": "a", "config": {}}]', FileForm.CONNECT),
        ('{"a": {"info": {}}}', FileForm.CONNECT),
        ("group.id=connect\n", FileForm.WORKER),
        ("offset.storage.topic: offsets", FileForm.WORKER),
        ("\ufeffclusters = us", FileForm.PROPERTIES),
        ("", None),
        ("clusters\n", None),
        ("flows: [{flow: us->eu}]\n", None),
    ],
)
def test_file_form_is_recognised_by_content(content: str, form: FileForm | None) -> None:
    assert file_form(content.encode()) is form
