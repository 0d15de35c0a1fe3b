"""The process that reads the configuration for the exporter, and what the exporter keeps of it."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from mm2slo_cli.config_files import load_source
from mm2slo_cli.config_options import ConfigSource
from mm2slo_cli.settings_process import Reading, read_again
from mm2slo_core.user_errors import UserError

CONFIG = """\
clusters:
  us: {bootstrap_servers: "127.0.0.1:1"}
  eu:
    bootstrap_servers: "127.0.0.1:2"
    security:
      protocol: SASL_PLAINTEXT
      sasl: {mechanism: PLAIN, username: app, password: "${env:EU_PASSWORD}"}
flows: [{flow: us->eu, freshness: [{name: orders, topics: [".*"]}]}]
exporter: {listen: "127.0.0.1:0", log: {format: text}}
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ConfigSource:
    monkeypatch.setenv("EU_PASSWORD", "hunter2")
    (tmp_path / "mm2slo.yaml").write_text(CONFIG, encoding="utf-8")
    return ConfigSource(tmp_path / "mm2slo.yaml")


def first_reading(source: ConfigSource) -> Reading:
    config, _ = load_source(source)
    return Reading(pickle.dumps(source), (), "1.0", config.as_settings(), ())


def test_settings_have_the_values_of_their_models(source: ConfigSource) -> None:
    config, _ = load_source(source)
    settings = pickle.loads(pickle.dumps(config.as_settings()))  # noqa: S301
    assert settings == config.as_settings()
    assert settings.exporter.listen == config.exporter.listen
    (flow,), (model,) = settings.flows, config.flows
    assert (flow.label, flow.topics_exclude) == ("us->eu", model.topics_exclude)
    assert (flow.freshness[0].name, flow.canary.tiers) == ("orders", model.canary.tiers)
    clusters = {alias: each.librdkafka_properties() for alias, each in settings.clusters.items()}
    assert clusters == {a: each.librdkafka_properties() for a, each in config.clusters.items()}
    assert clusters["eu"]["sasl.password"] == "hunter2"
    assert "hunter2" not in repr(vars(settings.clusters["eu"]))


def test_settings_are_immutable_and_compare_by_value(source: ConfigSource) -> None:
    flow = load_source(source)[0].as_settings().flows[0]
    with pytest.raises(AttributeError, match=r"FlowSettings.slice is read-only"):
        flow.slice = 1.0
    other = flow.changed({"slice": 1.0})
    assert (flow.slice, other.slice, flow == other) == (15.0, 1.0, False)


def test_read_again_returns_changed_files(source: ConfigSource) -> None:
    assert source.config is not None
    first = first_reading(source)
    assert read_again(first).settings == first.settings
    source.config.write_text(CONFIG.replace("orders", "payments"), encoding="utf-8")
    newest = read_again(first).settings
    assert newest.flows != first.settings.flows
    assert newest.clusters == first.settings.clusters


def test_read_again_raises_the_error_of_the_configuration(source: ConfigSource) -> None:
    assert source.config is not None
    first = first_reading(source)
    source.config.write_text(CONFIG.replace("us->eu", "us->ap"), encoding="utf-8")
    with pytest.raises(UserError) as expected:
        load_source(source)
    with pytest.raises(UserError) as raised:
        read_again(first)
    assert str(raised.value) == str(expected.value)


def test_read_again_names_the_exit_code_of_a_process_that_fails(source: ConfigSource) -> None:
    first = Reading(b"no pickle", (), "1.0", first_reading(source).settings, ())
    with pytest.raises(UserError, match=r"reads the configuration ended with 1; expected 0"):
        read_again(first)


def run_exporter(*arguments: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "mm2slo_cli", "exporter", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


def test_exporter_exits_as_the_command_line_does(source: ConfigSource, tmp_path: Path) -> None:
    code, out, err = run_exporter("--help")
    assert (code, err) == (0, "")
    assert "Run the Prometheus exporter for the configured flows." in out
    code, out, err = run_exporter("--nonsense")
    assert (code, out) == (2, "")
    assert "No such option: --nonsense" in err
    missing = tmp_path / "missing.yaml"
    code, out, err = run_exporter("--config", str(missing))
    assert (code, out) == (2, "")
    assert err.startswith(f"cannot read '{missing}': No such file or directory; expected")
    code, out, err = run_exporter("--config", str(source.config), "--flow", "us->ue")
    assert (code, out, err) == (
        2,
        "",
        "'us->ue' is not a configured flow: expected one of us->eu; did you mean 'us->eu'?\n",
    )


# Runs the exporter; SIGHUP reloads, and then prints what was imported.
OBSERVED = """
import json, logging, os, signal, sys
from mm2slo_cli import __main__ as command

class Watch(logging.Handler):
    def emit(self, record):
        text = record.getMessage()
        if text.startswith("serving "):
            os.kill(os.getpid(), signal.SIGHUP)
        elif text.startswith("reloaded"):
            print(json.dumps([*sys.modules]), file=sys.stderr)
            os.kill(os.getpid(), signal.SIGTERM)

from mm2slo_exporter import log_output
configure = log_output.configure_logging

def watched(*given):
    configure(*given)
    logging.getLogger().addHandler(Watch())

log_output.configure_logging = watched
sys.exit(command.main())
"""


def test_running_exporter_has_no_command_line_and_no_models(source: ConfigSource) -> None:
    command = [sys.executable, "-c", OBSERVED, "exporter", "--config", str(source.config)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "reloaded; 0 flow(s) restarted" in done.stdout
    modules = json.loads(done.stderr.splitlines()[0])
    assert "mm2slo_exporter.service.exporter_service" in modules
    unwanted = {
        "pydantic", "pydantic_core", "yaml", "typer", "rich", "cryptography", "prometheus_client",
        "importlib.metadata", "mm2slo_core.config.config_model", "mm2slo_cli.main",
    }  # fmt: skip
    assert unwanted.intersection(modules) == set()
