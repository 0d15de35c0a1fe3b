"""`mm2slo alerts test`: promtool runs the tests of the generated rules, each in its own folder."""

# ruff: noqa: PT028 - a command called test, no test

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final, NamedTuple

import typer
import yaml
from rich.console import Console

from mm2slo_alerts.alert_files import ALERT_RULES, RECORDING_RULES
from mm2slo_alerts.promtool_tests import RULES, SUFFIX, RuleTest
from mm2slo_cli import monitoring_tools
from mm2slo_core.user_errors import UserError
from mm2slo_lab.lab_monitoring import find_program


class RuleFiles(NamedTuple):
    """The generated rule files, as read from YAML."""

    recording: Mapping[str, Any]
    alerts: Mapping[str, Any]


def test(
    *,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder of the generated files.")
    ] = Path("alerts/generated"),
    tests: Annotated[
        Path, typer.Option("--tests", metavar="DIR", help="Folder of the tests, *.test.yml.")
    ] = Path("tests/rules"),
    alert: Annotated[
        list[str] | None,
        typer.Option("--alert", metavar="NAME", help="Test only this alert; repeatable."),
    ] = None,
) -> int:
    """Run promtool's tests: each alert fires when it should, and only then.

    Exits with 1 when a test fails.
    """
    find_program("promtool")
    rules = read_rules(out)
    chosen = _of_alerts(read_tests(tests), alert)
    console = Console(highlight=False, soft_wrap=True, markup=False)
    code = 0
    for each in chosen:
        output = failure([each], rules)
        console.print(f"{'FAILED' if output else 'ok    '}  {each.name}")
        if output:
            console.print(output)
            code = 1
    return code


def _of_alerts(tests: Sequence[RuleTest], names: Sequence[str] | None) -> list[RuleTest]:
    """The tests of the alerts *names*, or all; UserError for an alert without a test."""
    if not names:
        return list(tests)
    known = sorted(frozenset[str]().union(*(test.alerts for test in tests)))
    for name in names:
        if name not in known:
            raise UserError(f"no test for alert {name!r}; expected one of {', '.join(known)}")
    return [test for test in tests if test.alerts & set(names)]


_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def read_rules(folder: Path) -> RuleFiles:
    """Read the rules generated into *folder*; UserError when a file is missing."""
    next_step = "generate them with: mm2slo alerts generate"
    return RuleFiles(*(_read(folder / name, next_step) for name in (RECORDING_RULES, ALERT_RULES)))


def read_tests(folder: Path) -> tuple[RuleTest, ...]:
    """Read the tests in *folder*, by name; UserError when there is no test."""
    found = tuple(
        RuleTest(path.name.removesuffix(SUFFIX), _read(path, "check its permissions"))
        for path in sorted(folder.glob(f"*{SUFFIX}"))
    )
    if not found:
        raise UserError(
            f"no tests *{SUFFIX} in {folder}; run in a checkout of mm2slo, or name the folder of "
            "the tests with --tests"
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
