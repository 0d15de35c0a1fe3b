"""The rule file is what the store says, whoever writes it and whenever."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from mm2slo_alerts.maintenance import groups, text
from mm2slo_cli.exclude_rules import write_rules
from mm2slo_core.errors import UserError
from mm2slo_core.objectives.exclusion import Exclusion
from mm2slo_core.topology import Flow

if TYPE_CHECKING:
    from pathlib import Path

FLOWS = (Flow("us", "eu"), Flow("eu", "us"))
NOW = 1_795_000_000_000
ONE = Exclusion(
    id="a", flows=("us->eu",), start=NOW, end=NOW + 60_000, reason="x", who="ana", added_at=NOW
)
TWO = replace(ONE, id="b", flows=("eu->us",))
WINDOW = 28 * 86_400.0


def test_what_was_added_while_the_file_was_written_gets_into_it(tmp_path: Path) -> None:
    """Another command adds TWO between our question and our write, and has written by then."""
    path = tmp_path / "rules.yml"
    stored = [ONE]

    def answers() -> tuple[Exclusion, ...]:
        known = tuple(stored)
        if TWO not in stored:
            stored.append(TWO)
            path.write_text(text(groups(stored, FLOWS, NOW)))
        return known

    written = write_rules(path, answers, FLOWS, NOW, WINDOW)
    assert path.read_text() == text(groups([ONE, TWO], FLOWS, NOW))
    assert written.changed
    assert [rule.labels["flow"] for group in written.groups for rule in group.rules] == [
        "eu->us",
        "us->eu",
    ]


def test_a_file_that_is_right_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "rules.yml"
    assert write_rules(path, lambda: [ONE], FLOWS, NOW, WINDOW).changed
    before = path.stat()
    assert not write_rules(path, lambda: [ONE], FLOWS, NOW + 60_000, WINDOW).changed
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_what_ended_before_the_longest_window_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rules.yml"
    write_rules(path, lambda: [ONE], FLOWS, NOW, WINDOW)
    later = NOW + 60_000 + round(WINDOW * 1000)
    assert write_rules(path, lambda: [ONE], FLOWS, later, WINDOW).groups == ()
    assert path.read_text() == text(())


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rules.yml"
    write_rules(path, lambda: [ONE], FLOWS, NOW, WINDOW)
    before = path.read_text()

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UserError, match=r"cannot be written: No space left on device; mend that"):
        write_rules(path, lambda: [ONE, TWO], FLOWS, NOW, WINDOW)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]
