"""`mm2slo alerts test`: promtool runs the tests of the generated rules."""

# ruff: noqa: PT028 - a command called test, no test

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from mm2slo_cli import monitoring_tools
from mm2slo_cli.alerts_promtool import failure, read_rules, read_tests
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_alerts.rule_tests import RuleTest
    from mm2slo_cli.alerts_promtool import RuleFiles


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
    monitoring_tools.require_tool("promtool")
    rules = read_rules(out)
    chosen = _of_alerts(read_tests(tests), alert)
    console = Console(highlight=False, soft_wrap=True, markup=False)
    return int(_has_failure(rules, chosen, console))


def _of_alerts(tests: Sequence[RuleTest], names: Sequence[str] | None) -> list[RuleTest]:
    """The tests of the alerts *names*, or all; UserError for an alert without a test."""
    if not names:
        return list(tests)
    known = sorted(frozenset[str]().union(*(test.alerts for test in tests)))
    for name in names:
        if name not in known:
            raise UserError(f"no test for alert {name!r}; expected one of {', '.join(known)}")
    return [test for test in tests if test.alerts & set(names)]


def _has_failure(rules: RuleFiles, tests: Sequence[RuleTest], console: Console) -> bool:
    failed = False
    for each in tests:
        output = failure([each], (rules.recording, rules.alerts))
        console.print(f"{'FAILED' if output else 'ok    '}  {each.name}")
        if output:
            console.print(output)
            failed = True
    return failed
