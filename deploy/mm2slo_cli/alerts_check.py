"""Whether generated files are current, and whether the programs that read them accept them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_alerts.files import ALERT_RULES, ALERTMANAGER, RECORDING_RULES
from mm2slo_cli import tools
from mm2slo_cli.generated_files import stale

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class _Reader:
    """A program that checks one kind of files."""

    arguments: tuple[str, ...]
    files: tuple[str, ...]


_READERS: Final = (
    _Reader(
        ("promtool", "check", "rules", "--lint=all", "--lint-fatal"),
        (RECORDING_RULES, ALERT_RULES),
    ),
    _Reader(("amtool", "check-config"), (ALERTMANAGER,)),
)


def problems(
    folder: Path, expected: Mapping[str, str], command: str, say: Callable[[str], None]
) -> tuple[str, ...]:
    """What is wrong with the files in *folder*, which *command* writes as *expected*.

    One text each; *say* is told what was done.
    """
    if outdated := stale(folder, expected, command):
        return outdated
    say(f"{len(expected)} files in {folder} are current")
    return tuple(
        problem
        for reader in _READERS
        if set(reader.files) <= set(expected)
        for problem in _refused(folder, reader, say)
    )


def _refused(folder: Path, reader: _Reader, say: Callable[[str], None]) -> tuple[str, ...]:
    name, *arguments = reader.arguments
    if absent := tools.missing(name, so=f", so {', '.join(reader.files)} was not loaded"):
        say(absent)
        return ()
    files = [str(folder / file) for file in reader.files]
    done = tools.run(name, *arguments, *files)
    if done.returncode:
        return (f"{name} refuses {', '.join(files)}:\n{done.stdout}{done.stderr}",)
    say(f"{name} accepts {', '.join(reader.files)}")
    return ()
