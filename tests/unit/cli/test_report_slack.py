"""`mm2slo report slack`: output, posts and errors."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from digest_samples import NOW
from fake_slack import FakeSlackWebhook

from mm2slo_cli import report_slack, report_sources
from mm2slo_cli.main import main
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.reporting.step_counts import MINUTE_MS, Indicator, Tally
from mm2slo_core.topology import Flow
from mm2slo_store.store import Store

CONFIG = """
clusters:
  us: {bootstrap_servers: "127.0.0.1:1"}
  eu: {bootstrap_servers: "127.0.0.1:2"}
flows:
  - flow: us->eu
alerting:
  links: {report: "https://slo.example"}
  slack:
    - {name: ops, webhook_url_file: hook}
report: {zone: Europe/Berlin}
"""
HOUR = 60
AVAILABILITY = Indicator(Flow("us", "eu"), SliKey(Sli.AVAILABILITY))
NAME = "1d to 2026-07-20"


class Command:
    """The command line in its own folder, with a fixed clock."""

    def __init__(self, patch: pytest.MonkeyPatch, capture: Any) -> None:
        self._patch, self._capture = patch, capture
        self.out = self.err = ""
        self.at(NOW)

    def at(self, now: int) -> None:
        for module in (report_slack, report_sources):
            self._patch.setattr(module, "now_ms", lambda: now)

    def __call__(self, *options: str) -> int:
        line = ["mm2slo", "report", "slack", "--config", "mm2slo.yaml", "--period", "1d", *options]
        self._patch.setattr(sys, "argv", line)
        try:
            code = main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
        captured = self._capture.readouterr()
        self.out, self.err = captured.out, captured.err
        return code


@pytest.fixture
def receiver() -> Iterator[FakeSlackWebhook]:
    with FakeSlackWebhook() as found:
        yield found


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with an hour of which 10 minutes were bad."""
    path = tmp_path_factory.mktemp("history") / "mm2slo.db"
    with Store.open(path) as store:
        for minute in range(5, HOUR + 1, 5):
            tally = Tally(300.0 * (not 20 < minute <= 30), 300.0)
            store.record_step(NOW - (HOUR - minute) * MINUTE_MS, {AVAILABILITY: tally})
    return path


@pytest.fixture
def folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receiver: FakeSlackWebhook, history: Path
) -> Path:
    """A configuration, a webhook, and a history."""
    (tmp_path / "mm2slo.yaml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "hook").write_text(receiver.url + "\n", encoding="utf-8")
    shutil.copy(history, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def slack(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Command:
    assert folder.is_dir()
    return Command(monkeypatch, capsys)


def test_dry_run_prints_the_digest_and_posts_nothing(
    slack: Command, receiver: FakeSlackWebhook
) -> None:
    assert slack("--dry-run") == 0
    # 600 bad; 0.1 % of a day of 86,400 events is spent 6.944 times.
    assert "░░░░░░░░░░ availability 83.333 %, objective 99.9 %; budget -594.5 %" in slack.out
    assert (
        "• us->eu 2026-07-20 08:20 to 08:30 CEST (10 min): 600 bad, 694.5 % of the error\n"
        "  budget of availability" in slack.out
    )
    assert "https://slo.example/slo/report?format=html&at=2026-07-20T07%3A00%3A00Z" in slack.out
    assert receiver.messages == []
    assert max(len(line) for line in slack.out.splitlines() if "https://" not in line) <= 80


def test_dry_run_json_prints_the_payload_that_is_posted(
    slack: Command, receiver: FakeSlackWebhook
) -> None:
    assert slack("--dry-run", "--json") == 0
    printed = json.loads(slack.out)
    assert slack("--channel", "ops") == 0
    assert receiver.refusals == []
    [taken] = receiver.messages
    assert {key: taken.payload[key] for key in ("text", "blocks")} == printed


def test_second_run_posts_nothing_and_exits_with_0(
    slack: Command, receiver: FakeSlackWebhook
) -> None:
    assert slack("--channel", "ops") == 0
    assert slack.out == f"the digest '{NAME}' posted to ops\n"
    assert slack("--channel", "ops") == 0
    assert slack.out == (f"the digest '{NAME}' was already posted to ops at 2026-07-20T07:00Z\n")
    assert len(receiver.messages) == 1
    assert slack("--channel", "ops", "--again") == 0
    assert len(receiver.messages) == 2


def test_configurations_of_other_namespaces_post_their_own_digest(
    slack: Command, receiver: FakeSlackWebhook, folder: Path
) -> None:
    assert slack("--channel", "ops") == 0
    config = folder / "mm2slo.yaml"
    config.write_text(CONFIG.replace("alerting:", "alerting:\n  namespace: orders"))
    for _ in range(2):
        assert slack("--channel", "ops") == 0
    assert (
        slack.out == f"the digest 'orders {NAME}' was already posted to ops at 2026-07-20T07:00Z\n"
    )
    assert len(receiver.messages) == 2


def test_refused_post_prints_one_line_and_can_be_repeated(
    slack: Command, receiver: FakeSlackWebhook
) -> None:
    receiver.fail(status=404, body="no_service")
    assert slack("--channel", "ops") == 2
    assert slack.err == (
        "Slack refused the digest: no_service: create a new incoming webhook in Slack and write "
        "its URL to the webhook file\n"
    )
    assert slack("--channel", "ops") == 0
    assert len(receiver.messages) == 1


def test_unconfirmed_claim_is_an_error_after_five_minutes(slack: Command, folder: Path) -> None:
    with Store.open(folder / "mm2slo.db", clock=lambda: NOW) as store:
        assert store.claim_digest(NAME, "ops")
    slack.at(NOW + 60_000)
    assert slack("--channel", "ops") == 0
    assert "is being posted to ops, since 2026-07-20T07:00Z" in slack.out
    slack.at(NOW + 600_000)
    assert slack("--channel", "ops") == 2
    assert "check the channel, and post it with --again if it is missing" in slack.err
    assert slack("--channel", "ops", "--again") == 0


def test_claim_released_meanwhile_is_not_reported_as_posted(
    slack: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(folder / "mm2slo.db", clock=lambda: NOW) as store:
        assert store.claim_digest(NAME, "ops")
    monkeypatch.setattr(Store, "digest_claim", lambda *_: None)
    assert slack("--channel", "ops") == 2
    assert "was not posted to ops: a concurrent run tried to" in slack.err


def test_two_concurrent_processes_post_once(folder: Path, receiver: FakeSlackWebhook) -> None:
    # The first response delays the first process by a second, in which the other one runs.
    receiver.fail(status=503)
    line = [sys.executable, "-m", "mm2slo_cli", "report", "slack", "--config", "mm2slo.yaml"]
    line += ["--period", "last-year", "--channel", "ops"]
    started = [
        subprocess.Popen(line, cwd=folder, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    outputs = sorted(process.communicate(timeout=60)[0] for process in started)
    assert [process.returncode for process in started] == [0, 0]
    assert len(receiver.messages) == 1
    assert [" posted to ops\n" in each for each in outputs].count(True) == 1
    assert [
        " being posted to ops, since" in each or " already posted to ops at" in each
        for each in outputs
    ].count(True) == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], "--channel is missing: give a channel, or print the message with --dry-run"),
        (["--channel", "op"], "unknown --channel 'op' in alerting.slack (did you mean 'ops'"),
        (["--channel", "ops", "--json"], "--json prints the message instead of posting it"),
        (["--channel", "ops", "--period", "soon"], "unknown period 'soon'; expected yesterday"),
        (["--channel", "#a", "--token-file", "hook"], "'hook' does not hold a bot token"),
        (["--channel", "ops", "--webhook-file", "none"], "cannot read 'none': No such file"),
        (
            ["--channel", "ops", "--webhook-file", "a", "--token-file", "b"],
            "--webhook-file and --token-file exclude each other",
        ),
    ],
)
def test_invalid_option_prints_one_line_and_posts_nothing(
    slack: Command, receiver: FakeSlackWebhook, options: list[str], expected: str
) -> None:
    assert slack(*options) == 2
    assert expected in slack.err
    assert slack.err.count("\n") == 1
    assert "services" not in slack.err
    assert receiver.messages == []
