"""The rule file of planned maintenance follows the store."""

from dataclasses import replace
from pathlib import Path

import pytest

from mm2slo_alerts.recording_rules import maintenance_groups, maintenance_text
from mm2slo_cli.exclusion_effects import ExclusionTargets, write_rules
from mm2slo_core.objectives.exclusion import Exclusion
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError

FLOWS = (Flow("us", "eu"), Flow("eu", "us"))
NOW = 1_795_000_000_000
ONE = Exclusion(
    id="a", flows=("us->eu",), start=NOW, end=NOW + 60_000, reason="x", who="ana", added_at=NOW
)
TWO = replace(ONE, id="b", flows=("eu->us",))
TARGETS = ExclusionTargets(
    flows=FLOWS,
    rules_file=Path("unused"),
    prometheus=None,
    alertmanager=None,
    window=28 * 86_400.0,
)


def test_write_rules_includes_exclusion_added_while_writing(tmp_path: Path) -> None:
    """Another command adds and writes TWO between our read and our write."""
    path = tmp_path / "rules.yml"
    stored = [ONE]

    def read_exclusions() -> tuple[Exclusion, ...]:
        known = tuple(stored)
        if TWO not in stored:
            stored.append(TWO)
            path.write_text(maintenance_text(maintenance_groups(stored, FLOWS, NOW)))
        return known

    written = write_rules(path, read_exclusions, TARGETS, NOW)
    assert path.read_text() == maintenance_text(maintenance_groups([ONE, TWO], FLOWS, NOW))
    assert written.changed
    assert [rule.labels["flow"] for group in written.groups for rule in group.rules] == [
        "eu->us",
        "us->eu",
    ]


def test_write_rules_without_change_keeps_file(tmp_path: Path) -> None:
    path = tmp_path / "rules.yml"
    assert write_rules(path, lambda: [ONE], TARGETS, NOW).changed
    before = path.stat()
    assert not write_rules(path, lambda: [ONE], TARGETS, NOW + 60_000).changed
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_write_rules_drops_exclusions_before_longest_window(tmp_path: Path) -> None:
    path = tmp_path / "rules.yml"
    write_rules(path, lambda: [ONE], TARGETS, NOW)
    later = NOW + 60_000 + round(TARGETS.window * 1000)
    assert write_rules(path, lambda: [ONE], TARGETS, later).groups == ()
    assert path.read_text() == maintenance_text(())


def test_write_rules_failure_keeps_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rules.yml"
    write_rules(path, lambda: [ONE], TARGETS, NOW)
    before = path.read_text()

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(
        UserError, match=r"cannot write rule file .*: No space left on device; fix this"
    ):
        write_rules(path, lambda: [ONE, TWO], TARGETS, NOW)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]
