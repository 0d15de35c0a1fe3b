"""Checks that generated files are current and that promtool and amtool accept them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_alerts.output_files import ALERT_RULES, ALERTMANAGER, RECORDING_RULES
from mm2slo_cli import monitoring_tools
from mm2slo_cli.generated_files import stale_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class _Checker:
    """A program that checks files."""

    arguments: tuple[str, ...]
    files: tuple[str, ...]


_CHECKERS: Final = (
    _Checker(
        ("promtool", "check", "rules", "--lint=all", "--lint-fatal"),
        (RECORDING_RULES, ALERT_RULES),
    ),
    _Checker(("amtool", "check-config"), (ALERTMANAGER,)),
)


def problems(
    folder: Path, expected: Mapping[str, str], command: str, report: Callable[[str], None]
) -> tuple[str, ...]:
    """Return a text per problem of the files in *folder*, which *command* writes as *expected*.

    *report* gets the result of each check.
    """
    if outdated := stale_files(folder, expected, command):
        return outdated
    report(f"{len(expected)} files in {folder} are current")
    return tuple(
        problem
        for checker in _CHECKERS
        if set(checker.files) <= set(expected)
        for problem in _rejections(folder, checker, report)
    )


def _rejections(folder: Path, checker: _Checker, report: Callable[[str], None]) -> tuple[str, ...]:
    name, *arguments = checker.arguments
    if absent := monitoring_tools.missing_tool(
        name, so=f", so {', '.join(checker.files)} was not checked"
    ):
        report(absent)
        return ()
    files = [str(folder / file) for file in checker.files]
    done = monitoring_tools.run_tool(name, *arguments, *files)
    if done.returncode:
        return (f"{name} rejects {', '.join(files)}:\n{done.stdout}{done.stderr}",)
    report(f"{name} accepts {', '.join(checker.files)}")
    return ()
