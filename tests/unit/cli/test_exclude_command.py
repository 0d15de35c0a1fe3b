"""`mm2slo exclude`: store, rule file, output and errors."""

import json
import stat
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from mm2slo_cli import exclude
from mm2slo_cli.main import main
from mm2slo_core.objectives.exclusion import Exclusion
from mm2slo_store.store import Store

CONFIG = """
clusters:
  us: {bootstrap_servers: "127.0.0.1:1"}
  eu: {bootstrap_servers: "127.0.0.1:2"}
  ap: {bootstrap_servers: "127.0.0.1:3"}
flows:
  - flow: us->eu
  - flow: eu->us
  - flow: ap->eu
"""
NOW = round(datetime(2026, 12, 1, 1, 0, 30, tzinfo=UTC).timestamp() * 1000)
RULES = "mm2slo-maintenance.rules.yml"
TWO = round(datetime(2026, 12, 1, 2, tzinfo=UTC).timestamp())


class Command:
    """The command line in its own folder, with a fixed clock."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, capture: Any) -> None:
        self.folder, self._patch, self._capture = folder, patch, capture
        self.out = self.err = ""
        self.at(NOW)

    def at(self, now: int) -> None:
        self._patch.setattr(exclude, "now_ms", lambda: now)

    def __call__(self, command: str, *arguments: str) -> int:
        # Options follow the command in any order.
        line = ["mm2slo", "exclude", command, "--config", "mm2slo.yaml", *arguments]
        self._patch.setattr(sys, "argv", line)
        try:
            code = main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
        printed = self._capture.readouterr()
        self.out, self.err = printed.out, printed.err
        return code

    def add(self, *more: str, flow: str = "us->eu", start: str = "2026-12-01T02:00Z") -> int:
        upgrade = ["--flow", flow, "--from", start, "--reason", "upgrade of eu", "--by", "ana"]
        return self("add", *upgrade, *(more or ("--for", "2h")))

    @property
    def kept(self) -> tuple[Exclusion, ...]:
        with Store.open(self.folder / "mm2slo.db") as store:
            return store.exclusions()

    @property
    def only_id(self) -> str:
        (one,) = self.kept
        return one.id

    @property
    def rules(self) -> dict[str, str]:
        """Flow -> expression."""
        document = yaml.safe_load((self.folder / RULES).read_text())
        return {
            rule["labels"]["flow"]: rule["expr"]
            for group in document["groups"]
            for rule in group["rules"]
        }


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    (tmp_path / "mm2slo.yaml").write_text(CONFIG, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return Command(tmp_path, monkeypatch, capsys)


def test_exclude_with_namespace_labels_rules_and_silences_its_alerts(command: Command) -> None:
    path = command.folder / "mm2slo.yaml"
    path.write_text(CONFIG + "alerting: {namespace: kafka}\n")
    assert command.add("--for", "30m", "--silence", "--alertmanager-url", "http://127.0.0.1:9") == 2
    assert command.err.rstrip().endswith(" 'flow=us->eu' namespace=kafka")
    [group] = yaml.safe_load((command.folder / RULES).read_text())["groups"]
    assert [rule["labels"]["namespace"] for rule in group["rules"]] == ["kafka"]


def test_exclude_add_writes_store_rule_file_and_prints_summary(command: Command) -> None:
    assert command.add() == 0
    (kept,) = command.kept
    assert (kept.flows, kept.start, kept.end) == (("us->eu",), TWO * 1000, (TWO + 7_200) * 1000)
    assert (kept.reason, kept.who, kept.added_at) == ("upgrade of eu", "ana", NOW)
    assert command.rules == {
        "us->eu": f"vector(1) and (\n  vector(time()) >= {TWO} < {TWO + 7_200}\n)"
    }
    assert command.out == (
        f"{kept.id}  planned  2026-12-01T02:00Z to 2026-12-01T04:00Z  2h\n"
        "                 us->eu: upgrade of eu (ana)\n"
        f"1 rule in {RULES}\n"
        "Prometheus loads it at its next reload: give --reload-url, or send it SIGHUP\n"
    )
    assert kept.id.startswith("20261201-")


@pytest.mark.parametrize(
    ("options", "start", "end"),
    [
        (["--from", "now", "--for", "90m"], NOW, NOW + 90 * 60_000),
        (
            ["--from", "2026-12-01T03:00+01:00", "--to", "2026-12-01 04:00 Europe/Berlin"],
            TWO * 1000,
            (TWO + 3_600) * 1000,
        ),
        (["--from", "now", "--to", "2026-12-01T01:01:30Z"], NOW, NOW + 60_000),
        (["--from", "2026-12-01T02:00Z", "--for", "7d"], TWO * 1000, (TWO + 7 * 86_400) * 1000),
    ],
)
def test_exclude_add_accepts_several_time_formats(
    command: Command, options: list[str], start: int, end: int
) -> None:
    assert command("add", "--flow", "us->eu", "--reason", "x", *options) == 0
    (kept,) = command.kept
    assert (kept.start, kept.end, kept.mark) == (start, end, None)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["--flow", "us->ue"],
            "'us->ue' is not a configured flow: expected one of ap->eu, eu->us,",
        ),
        (["--flow", "us->ue"], "did you mean 'us->eu'?"),
        (["--flow", "jp->*"], "--flow 'jp->*' matches no configured flow; configured: ap->eu"),
        (["--from", "2026-12-01T02:00"], "--from '2026-12-01T02:00' has no time zone"),
        (["--to", "2026-12-01T03:00"], "--to '2026-12-01T03:00' has no time zone"),
        (
            ["--to", "2026-12-01T01:59Z"],
            "ends at 2026-12-01T01:59Z, not after its start at 2026-12-01T02",
        ),
        (["--to", "2026-12-01T02:00Z"], "give a --to that is later than --from"),
        (["--for", "59s"], "lasts 59 s: rules are evaluated every 30 s, so exclude 60 s or more"),
        (["--for", "7d1h"], "--for '7d1h' is not a duration: write for example 2h or 90m"),
        (["--for", "8d"], "lasts 8d, more than 7d: an objective without a quarter of its 28 days"),
        (["--for", "0"], "--for '0' is not a duration"),
        (
            ["--for", "2h", "--to", "2026-12-01T03:00Z"],
            "give either --to or --for, for example --for 2h",
        ),
        ([], "give either --to or --for, for example --for 2h"),
        (["--for", "2h", "--reason", " "], "--reason is empty: give a short text"),
        (["--for", "2h", "--reason", "x" * 201], "--reason has 201 characters: expected up to 200"),
        (
            ["--for", "2h", "--reason", "a\x1b[31m"],
            "--reason 'a\\x1b[31m' has control characters",
        ),
        (["--for", "2h", "--by", "x" * 81], "--by has 81 characters: expected up to 80"),
        (["--for", "2h", "--silence"], "--silence needs Alertmanager's URL"),
        (
            ["--for", "2h", "--rules-file", "rules/mm2slo.yml"],
            "folder of rule file rules/mm2slo.yml does not exist: create rules, or give another",
        ),
        (["--for", "2h", "--rules-file", "."], "rule file . is a folder"),
        (
            ["--for", "2h", "--reload-url", "prometheus:9090"],
            "--reload-url is not an HTTP URL: use for example http://127.0.0.1:9093",
        ),
        (
            ["--for", "2h", "--silence", "--alertmanager-url", "ftp://ana:s3cr3t@am"],
            "--alertmanager-url is not an HTTP URL",
        ),
    ],
)
def test_exclude_add_with_invalid_option_prints_one_line_and_changes_nothing(
    command: Command, options: list[str], sentence: str
) -> None:
    # The last value of an option counts, except for the repeatable --flow.
    flow = [] if "--flow" in options else ["--flow", "us->eu"]
    given = ["--from", "2026-12-01T02:00Z", "--reason", "upgrade", *flow, *options]
    if "--flow" in options or "--from" in options:
        given += ["--for", "2h"]
    assert command("add", *given) == 2
    assert sentence in command.err
    assert len(command.err.splitlines()) == 1
    assert "s3cr3t" not in command.err
    assert command.out == ""
    assert not (command.folder / RULES).exists()
    assert command.kept == ()


def test_exclude_add_overlapping_maintenance_names_the_existing_one(command: Command) -> None:
    assert command.add() == 0
    former = command.only_id
    before = (command.folder / RULES).read_text()
    assert command.add("--for", "2h", flow="*->eu", start="2026-12-01T03:59Z") == 2
    assert command.err == (
        "us->eu is already excluded from 2026-12-01T02:00Z to 2026-12-01T04:00Z by "
        f"{former} (upgrade of eu): give other times, or first run "
        f"mm2slo exclude remove {former}\n"
    )
    assert (command.folder / RULES).read_text() == before
    # Adjacent times and other flows do not overlap.
    assert command.add("--for", "2h", start="2026-12-01T04:00Z") == 0
    assert command.add("--for", "2h", flow="eu->us", start="2026-12-01T02:00Z") == 0
    assert len(command.kept) == 3


def test_exclude_add_expands_wildcards_to_configured_flows(command: Command) -> None:
    assert command.add("--for", "2h", "--flow", "eu -> us", flow="*->eu") == 0
    (kept,) = command.kept
    assert kept.flows == ("*->eu", "eu->us")
    assert sorted(command.rules) == ["ap->eu", "eu->us", "us->eu"]


def test_exclude_add_after_start_is_marked_and_rules_cover_the_rest(command: Command) -> None:
    assert command.add("--for", "2h", start="2026-12-01T00:00:30Z") == 0
    assert "running" in command.out
    assert (
        "                 added late at 2026-12-01T01:00:30Z: reports exclude and mark\n"
        "                 it, burn rates keep the time before\n" in command.out
    )
    started = NOW // 1000
    assert f">= {started} < {started + 3_600}" in command.rules["us->eu"]


def test_exclude_add_after_end_changes_reports_only(command: Command) -> None:
    assert command.add("--for", "30m", start="2026-12-01T00:00Z") == 0
    assert "  past     " in command.out
    assert "added late at" in command.out
    assert command.rules == {}
    assert command.add("--for", "30m", "--silence", "--alertmanager-url", "http://127.0.0.1:9") == 2


def test_exclude_remove_planned_keeps_it_in_store(command: Command) -> None:
    command.add()
    one = command.only_id
    assert command("remove", one, "--by", "ben") == 0
    assert "removed at 2026-12-01T01:00:30Z by ben\n" in command.out
    assert command.rules == {}
    (kept,) = command.kept
    assert (kept.removed_at, kept.removed_by) == (NOW, "ben")
    assert command("remove", one) == 2
    assert command.err == f"the exclusion {one} was already removed by ben\n"
    assert command("remove", "nosuch") == 2
    assert "has no exclusion nosuch; `mm2slo exclude list --all` lists" in command.err
    # Its time can be excluded again.
    assert command.add() == 0


def test_exclude_remove_running_ends_it_now(command: Command) -> None:
    command.add()
    command.at((TWO + 600) * 1000)
    assert command("remove", command.only_id, "--by", "ben") == 0
    assert command.out.startswith(
        f"{command.only_id}  past     2026-12-01T02:00Z to 2026-12-01T02:10Z  10m\n"
    )
    assert "ended at 2026-12-01T02:10Z by ben, planned until" in command.out
    assert f">= {TWO} < {TWO + 600}\n" in command.rules["us->eu"]


def test_exclude_remove_past_changes_reports_only(command: Command) -> None:
    command.add()
    before = (command.folder / RULES).read_text()
    command.at((TWO + 7_200) * 1000)
    assert command("remove", command.only_id, "--by", "ben") == 0
    assert "removed late at 2026-12-01T04:00Z by ben: reports count it" in command.out
    assert f"1 rule in {RULES}, unchanged\n" in command.out
    assert (command.folder / RULES).read_text() == before


def test_exclude_list_shows_current_and_with_all_past_maintenance(command: Command) -> None:
    assert command("list") == 0
    assert command.out == "no planned maintenance; --all includes past and removed\n"
    command.add("--for", "30m", start="2026-11-30T00:00Z")
    command.add("--for", "2h", "--flow", "eu->us")
    command.add("--for", "1h", flow="ap->eu", start="now")
    assert command("list") == 0
    assert [line.split()[1] for line in command.out.splitlines()[::2]] == ["running", "planned"]
    assert max(map(len, command.out.splitlines())) <= 80
    assert command("list", "--all", "--json") == 0
    forms = json.loads(command.out)
    assert [(form["state"], form["mark"]) for form in forms] == [
        ("past", "added late"),
        ("running", None),
        ("planned", None),
    ]
    assert forms[2] == {
        "id": forms[2]["id"],
        "state": "planned",
        "flows": ["us->eu", "eu->us"],
        "from": "2026-12-01T02:00Z",
        "to": "2026-12-01T04:00Z",
        "reason": "upgrade of eu",
        "added_by": "ana",
        "added_at": "2026-12-01T01:00:30Z",
        "removed_by": None,
        "removed_at": None,
        "mark": None,
        "silence": None,
    }
    assert command("list", "--flow", "eu->us") == 0
    assert len(command.out.splitlines()) == 2
    assert command("list", "--flow", "eu->su") == 2
    assert "did you mean 'eu->us'?" in command.err


def test_exclude_output_fits_80_columns(command: Command) -> None:
    command("add", "--flow", "*", "--from", "now", "--for", "1d1h1m1s", "--reason", "x")
    assert command.err.startswith("--for '1d1h1m1s' is not a duration")
    reason = "replacing every disk of the eastern cluster, " * 4
    times = ["--from", "2026-12-01T02:00:00.123Z", "--to", "2026-12-03T03:04:05.678Z"]
    assert command("add", "--flow", "*->eu", *times, "--reason", reason, "--by", "b" * 80) == 0
    assert max(map(len, command.out.splitlines())) <= 80
    assert command("list", "--all") == 0
    assert max(map(len, command.out.splitlines())) <= 80
    for name in ("add", "list", "remove", "write"):
        assert command(name, "--help") == 0
        assert max(map(len, command.out.splitlines())) <= 80


def test_exclude_write_replaces_rule_file_and_keeps_its_mode(command: Command) -> None:
    command.add()
    path = command.folder / RULES
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    path.chmod(0o664)
    path.write_text("something else\n")
    assert command("write") == 0
    assert list(command.rules) == ["us->eu"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o664
    assert command("write") == 0
    assert command.out == f"1 rule in {RULES}, unchanged\n"
    found = sorted(
        each.name for each in command.folder.iterdir() if not each.name.startswith("mm2slo.db")
    )
    assert found == [RULES, "mm2slo.yaml"]


def test_exclude_add_with_unwritable_rule_file_reports_error_and_keeps_store(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_arguments: object, **_options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuses)
    assert command.add() == 2
    assert command.err.splitlines() == [
        "the store is up to date, but these steps failed:",
        (
            f"cannot write rule file {RULES}: Permission denied; fix this, then run: "
            "mm2slo exclude write"
        ),
    ]
    assert len(command.kept) == 1


def test_exclude_add_help_explains_five_minute_steps(command: Command) -> None:

    assert command("add", "--help") == 0
    assert "leave out each 5-minute step it overlaps" in " ".join(command.out.split())
