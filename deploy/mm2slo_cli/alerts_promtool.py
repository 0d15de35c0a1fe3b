"""Runs promtool on tests of rules, each in its own folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import yaml

from mm2slo_alerts.output_files import ALERT_RULES, RECORDING_RULES
from mm2slo_alerts.rule_tests import RULES, SUFFIX, RuleTest
from mm2slo_cli import monitoring_tools
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@dataclass(frozen=True, slots=True)
class RuleFiles:
    """The generated rule files, as read from YAML."""

    alerts: Mapping[str, Any]
    recording: Mapping[str, Any]


def read_rules(folder: Path) -> RuleFiles:
    """Read the rules generated into *folder*; UserError when a file is missing."""
    return RuleFiles(
        alerts=_read(folder / ALERT_RULES, "generate them with: mm2slo alerts generate"),
        recording=_read(folder / RECORDING_RULES, "generate them with: mm2slo alerts generate"),
    )


def read_tests(folder: Path) -> tuple[RuleTest, ...]:
    """Read the tests in *folder*, by name; UserError when there is no test."""
    found = tuple(
        RuleTest(path.name.removesuffix(SUFFIX), _read(path, "check its permissions"))
        for path in sorted(folder.glob(f"*{SUFFIX}"))
    )
    if not found:
        raise UserError(
            f"no tests *{SUFFIX} in {folder}; name the folder of the tests with --tests"
        )
    return found


def failure(tests: Sequence[RuleTest], rules: Sequence[Mapping[str, Any]]) -> str:
    """Run *tests* in one promtool, each on those of *rules* (rule files) that it needs.

    Returns promtool's output if one fails, else an empty text.
    """
    with TemporaryDirectory(prefix="mm2slo-rules-") as name:
        files = []
        for test in tests:
            folder = Path(name) / test.name
            folder.mkdir()
            _write(folder / RULES, test.rules_of(*rules))
            _write(folder / f"{test.name}{SUFFIX}", test.reduced())
            files.append(f"{test.name}/{test.name}{SUFFIX}")
        done = monitoring_tools.run_tool("promtool", "test", "rules", *files, folder=Path(name))
    return (
        "" if done.returncode == 0 else f"{done.stdout}{done.stderr}".strip() or "promtool failed"
    )


def _write(path: Path, document: Mapping[str, Any]) -> None:
    text = yaml.dump(document, Dumper=_DUMPER, sort_keys=False, width=10_000)
    path.write_text(text, encoding="utf-8")


def _read(path: Path, next_step: str) -> Any:
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)  # noqa: S506 - a safe loader, in C
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; {next_step}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path} is not valid YAML: {error}; {next_step}") from None
