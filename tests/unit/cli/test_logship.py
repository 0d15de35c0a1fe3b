"""`mm2slo logship` against the stand-in for Splunk."""

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_hec import FakeHec, Fault, HecToken
from log_shipping import make_settings, make_source, running_shipper, value
from typer.testing import CliRunner, Result

from mm2slo_cli.logship import logship_app
from mm2slo_core.user_errors import UserError
from mm2slo_logship.ship_state import DeadLetters

_LINE = (
    "[2026-11-22 17:10:39,123] INFO [Worker clientId=us->eu, groupId=us-mm2] Rebalance started "
    "password=hunter2 (org.apache.kafka.connect.runtime.distributed.WorkerCoordinator:221)\n"
)


@pytest.fixture
def fake() -> Iterator[FakeHec]:
    with FakeHec({"token-1": HecToken(indexes=("repl_logs",))}) as server:
        yield server


@pytest.fixture
def config(fake: FakeHec, tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("token-1")
    (tmp_path / "token").chmod(0o600)
    (tmp_path / "mm2.log").write_text(_LINE)
    section = {
        "endpoints": [fake.url],
        "token_file": str(tmp_path / "token"),
        "sources": [{"paths": [str(tmp_path / "mm2.log")]}],
        "index": "repl_logs",
        "state_dir": str(tmp_path / "state"),
        "env": "prod",
    }
    path = tmp_path / "mm2slo.yaml"
    clusters = {alias: {"bootstrap_servers": "localhost:1"} for alias in ("us", "eu")}
    document = {"clusters": clusters, "flows": [{"flow": "us->eu"}], "logship": section}
    path.write_text(json.dumps(document))
    return path


def _run(*arguments: str, config: Path, code: int = 0) -> Result:
    result = CliRunner().invoke(logship_app, [*arguments, "--config", str(config)])
    if isinstance(result.exception, UserError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def test_check_accepted_event_reports_endpoint_and_files(config: Path, fake: FakeHec) -> None:
    output = _run("check", config=config).output

    assert f"{fake.url}, index repl_logs: HTTP 200, code 0: Success" in output
    assert "mm2.log: 1 files" in output
    assert [event["event_action"] for event in fake.events] == ["logship_check"]


def test_check_rejected_index_and_missing_files_exit_with_1(config: Path, fake: FakeHec) -> None:
    fake.index.tokens["token-1"] = HecToken(indexes=("other",))
    (config.parent / "mm2.log").unlink()

    result = _run("check", config=config, code=1)

    assert "does not accept events: HTTP 400, code 7: Incorrect index" in result.stderr
    assert "no file matches" in result.stderr
    assert "token-1" not in result.output


def test_tail_prints_redacted_envelopes_and_sends_nothing(config: Path, fake: FakeHec) -> None:
    (line,) = _run("tail", "--dry-run", config=config).output.splitlines()

    envelope = json.loads(line)
    assert (envelope["index"], envelope["time"]) == ("repl_logs", 1795367439.123)
    assert (envelope["event"]["flow"], envelope["event"]["env"]) == ("us->eu", "prod")
    assert "hunter2" not in line
    assert fake.requests == []


def test_tail_resolves_the_flow_by_the_name_of_a_connector(config: Path) -> None:
    document = json.loads(config.read_text())
    document["flows"][0]["connect"] = {"source_connector": "us-eu-source"}
    config.write_text(json.dumps(document))
    line = {
        "timestamp": "2026-11-22T17:57:19Z", "context": "[us-eu-source|task-0] ",
        "logger": "org.apache.kafka.connect.mirror.MirrorSourceTask", "message": "Failure",
    }  # fmt: skip
    (config.parent / "mm2.log").write_text(json.dumps(line) + "\n")

    (printed,) = _run("tail", "--dry-run", config=config).output.splitlines()

    assert json.loads(printed)["event"]["flow"] == "us->eu"


def test_tail_prints_a_file_whose_name_is_not_utf8(config: Path) -> None:
    config.write_text(config.read_text().replace("mm2.log", "*.log"))
    (config.parent / "mm2.log").rename(config.parent / os.fsdecode(b"\xff.log"))

    (line,) = _run("tail", "--dry-run", config=config).output.splitlines()

    assert json.loads(line)["source"] == str(config.parent / "\ufffd.log")


def test_tail_reports_what_it_cannot_read_and_prints_the_rest(config: Path) -> None:
    folder = config.parent
    config.write_text(config.read_text().replace("mm2.log", "*.log*"))
    (folder / "a.log").mkdir()
    (folder / "b.log.gz").write_bytes(gzip.compress(_LINE.encode() * 9)[:40])

    result = _run("tail", "--dry-run", config=config)

    assert len(result.stdout.splitlines()) == 1
    assert f"cannot read {folder / 'a.log'}: Is a directory" in result.stderr
    assert f"cannot read {folder / 'b.log.gz'}: " in result.stderr


def test_dead_letters_below_a_file_name_the_option(config: Path) -> None:
    (config.parent / "state").write_text("")

    for command in ("list", "replay"):
        with pytest.raises(UserError, match=r"cannot use logship.state_dir .*: Not a directory"):
            _run("dead-letter", command, config=config)


def test_tail_without_dry_run_names_the_option(config: Path) -> None:
    with pytest.raises(UserError, match="add --dry-run"):
        _run("tail", config=config)


def test_offsets_and_dead_letters_are_printed_and_replayed(config: Path, fake: FakeHec) -> None:
    folder = config.parent
    (folder / "mm2.log").write_text('{"n": 1}\n{"n": 2}\n')
    fake.faults.append(Fault(status=400, body=b'{"code":13,"text":"x","invalid-event-number":0}'))
    source = make_source(folder / "mm2.log", index="repl_logs")
    with running_shipper(make_settings(folder, [fake.url], source)) as metrics:
        fake.index.wait_for(lambda events: len(events) == 1, 60)
    assert value(metrics, "dead_letters_total", code="13") == 1

    assert _run("offsets", config=config).output == (
        f"{folder / 'mm2.log'}: offset 18, 0 bytes unsent\n"
    )
    (letter,) = _run("dead-letter", "list", config=config).output.splitlines()
    assert json.loads(letter)["reason"] == "HTTP 400, code 13: x"
    fake.faults.append(Fault.code(9))
    with pytest.raises(UserError, match="Splunk accepts no events: HTTP 503, code 9: "):
        _run("dead-letter", "replay", config=config)
    fake.faults.append(Fault.code(13))
    assert _run("dead-letter", "replay", config=config, code=1).output == (
        "0 events accepted, 1 kept\n"
    )
    assert _run("dead-letter", "list", config=config).output == f"{letter}\n"
    assert _run("dead-letter", "replay", config=config).output == "1 events accepted, 0 kept\n"
    assert [event["n"] for event in fake.events] == [2, 1]
    assert _run("dead-letter", "list", config=config).output == ""


def test_replay_uses_another_endpoint_when_one_fails(config: Path, fake: FakeHec) -> None:
    folder = config.parent
    config.write_text(
        config.read_text().replace(f'"{fake.url}"', f'"http://127.0.0.1:1", "{fake.url}"')
    )
    letters = DeadLetters(folder / "state" / "dead-letters", 8_000)
    for _ in range(2):
        letters.add(b'{"event":{"n":1},"index":"repl_logs"}\n', "first")

    assert _run("dead-letter", "replay", config=config).output == "2 events accepted, 0 kept\n"


def test_plain_http_to_another_host_is_refused(config: Path, fake: FakeHec) -> None:
    config.write_text(config.read_text().replace(fake.url, "http://splunk.example:8088"))

    with pytest.raises(UserError, match="would send the token in clear text"):
        _run("offsets", config=config)


def test_configuration_without_logship_names_the_section(config: Path) -> None:
    document = json.loads(config.read_text())
    del document["logship"]
    config.write_text(json.dumps(document))

    with pytest.raises(UserError, match="has no section logship"):
        _run("offsets", config=config)


def test_help_names_the_command_that_runs_by_default() -> None:
    output = CliRunner().invoke(logship_app, ["--help"]).output
    assert "mm2slo logship --config mm2slo.yaml" in output
