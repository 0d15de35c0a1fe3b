"""Whether generated files are current, and whether the programs that read them accept them."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_alerts.files import ALERT_RULES, ALERTMANAGER, RECORDING_RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_TIMEOUT: Final = 60.0
"""Seconds; both programs take well under one."""


@dataclass(frozen=True, slots=True)
class _Reader:
    """A program that checks one kind of files, and Debian's package that holds it."""

    arguments: tuple[str, ...]
    package: str
    files: tuple[str, ...]


_READERS: Final = (
    _Reader(
        ("promtool", "check", "rules", "--lint=all", "--lint-fatal"),
        "prometheus",
        (RECORDING_RULES, ALERT_RULES),
    ),
    _Reader(("amtool", "check-config"), "prometheus-alertmanager", (ALERTMANAGER,)),
)


def problems(
    folder: Path, expected: Mapping[str, str], say: Callable[[str], None]
) -> tuple[str, ...]:
    """What is wrong with the files in *folder*, one text each; *say* is told what was done."""
    stale = [name for name, text in expected.items() if _read(folder / name) != text]
    if stale:
        return tuple(
            f"{folder / name} is not current; run: mm2slo alerts generate" for name in stale
        )
    say(f"{len(expected)} files in {folder} are current")
    return tuple(
        problem
        for reader in _READERS
        if set(reader.files) <= set(expected)
        for problem in _refused(folder, reader, say)
    )


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _refused(folder: Path, reader: _Reader, say: Callable[[str], None]) -> tuple[str, ...]:
    program = shutil.which(reader.arguments[0])
    if program is None:
        say(
            f"{reader.arguments[0]} is not installed, so {', '.join(reader.files)} was not loaded; "
            f"on Debian: apt-get install {reader.package}"
        )
        return ()
    files = [str(folder / name) for name in reader.files]
    done = subprocess.run(  # noqa: S603 - a program on PATH, with paths of ours
        [program, *reader.arguments[1:], *files],
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT,
    )
    if done.returncode:
        return (f"{reader.arguments[0]} refuses {', '.join(files)}:\n{done.stdout}{done.stderr}",)
    say(f"{reader.arguments[0]} accepts {', '.join(reader.files)}")
    return ()
