"""`mm2slo alerts test`: promtool proves that each alert fires, and stays silent."""

# ruff: noqa: PT028 - a command called test, no test

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from mm2slo_cli import tools
from mm2slo_cli.alerts_mutants import Verdict, alert_mutants, drawn, judged, recording_mutants
from mm2slo_cli.alerts_promtool import failure, read_rules, read_tests
from mm2slo_core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_alerts.mutation import Mutant
    from mm2slo_alerts.rule_tests import RuleTest
    from mm2slo_cli.alerts_promtool import RuleFiles

_TOLD_EVERY: Final = 100


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
        typer.Option("--alert", metavar="NAME", help="Only this alert; repeatable."),
    ] = None,
    mutate: Annotated[
        bool,
        typer.Option("--mutate", help="Put one wrong at a time into the rules: is it noticed?"),
    ] = False,
    recording: Annotated[
        bool, typer.Option("--recording", help="Put them into recorded series, not into alerts.")
    ] = False,
    sample: Annotated[
        int | None, typer.Option(min=1, metavar="COUNT", help="Draw so many of the wrongs.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed draws other ones.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="So many at a time.")] = 2,
) -> int:
    """Let promtool prove that each alert fires, and stays silent.

    With --mutate, that the tests notice each single wrong in an expression, a threshold or a
    duration. Exits with 1 when a test fails, or a wrong goes unnoticed.
    """
    tools.demand("promtool")
    rules = read_rules(out)
    chosen = _of_alerts(read_tests(tests), alert)
    console = Console(highlight=False, soft_wrap=True, markup=False)
    failed = _run(rules, chosen, console)
    if failed or not mutate:
        return int(failed)
    wrongs = recording_mutants(rules) if recording else alert_mutants(rules)
    if alert:
        wrongs = [wrong for wrong in wrongs if wrong.rule in alert]
    tried = wrongs if sample is None else drawn(wrongs, sample, seed)
    console.print(f"{len(wrongs)} wrongs, of which {len(tried)} are tried")
    return int(_mutate(tried, rules, chosen, console, workers))


def _of_alerts(tests: Sequence[RuleTest], names: Sequence[str] | None) -> list[RuleTest]:
    """The tests of the alerts *names*, or all; UserError for an alert without one."""
    if not names:
        return list(tests)
    known = sorted(frozenset[str]().union(*(test.alerts for test in tests)))
    for name in names:
        if name not in known:
            raise UserError(f"no test is about {name!r}; there are tests for {', '.join(known)}")
    return [test for test in tests if test.alerts & set(names)]


def _run(rules: RuleFiles, tests: Sequence[RuleTest], console: Console) -> bool:
    """Run *tests*; whether one failed."""
    failed = False
    for test_of in tests:
        words = failure(test_of, (rules.recording, rules.alerts))
        console.print(f"{'FAILED' if words else 'ok    '}  {test_of.name}")
        if words:
            console.print(words)
            failed = True
    return failed


def _mutate(
    chosen: Sequence[Mutant],
    rules: RuleFiles,
    tests: Sequence[RuleTest],
    console: Console,
    workers: int,
) -> bool:
    """Judge the mutants *chosen*; whether one is not as expected."""
    progress = count(1)

    def tell(verdict: Verdict) -> None:
        done = next(progress)
        if done % _TOLD_EVERY == 0:
            console.print(f"{done} of {len(chosen)} tried")
        if not verdict.as_expected:
            word = "listed as equivalent, but noticed" if verdict.killed else "SURVIVED"
            console.print(f"{word}: {verdict.mutant.rule}: {verdict.mutant.change}")

    verdicts = judged(chosen, rules, tests, workers=workers, tell=tell)
    killed = sum(verdict.killed for verdict in verdicts)
    known = sum(bool(verdict.reason) and not verdict.killed for verdict in verdicts)
    console.print(
        f"{len(chosen)} tried: {killed} noticed, {known} make no difference, "
        f"{sum(not verdict.as_expected for verdict in verdicts)} not as expected"
    )
    return not all(verdict.as_expected for verdict in verdicts)
