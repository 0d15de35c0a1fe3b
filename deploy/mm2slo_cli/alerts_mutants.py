"""The mutation run: which wrongs in the generated rules the tests notice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from mm2slo_alerts.equivalents import known_reason
from mm2slo_alerts.mutation import Mutant, mutants
from mm2slo_cli.alerts_promtool import failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mm2slo_alerts.rule_tests import RuleTest
    from mm2slo_cli.alerts_promtool import RuleFiles


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one mutant: `killed` when a test failed on it."""

    mutant: Mutant
    killed: bool
    reason: str = ""
    """Why it is listed as equivalent; empty when it is not."""

    @property
    def as_expected(self) -> bool:
        """Whether it was noticed, or is known to be unnoticeable and was not."""
        return self.killed != bool(self.reason)


def alert_mutants(rules: RuleFiles) -> list[Mutant]:
    """Every mutant of the alerts."""
    return mutants(rules.alerts)


def recording_mutants(rules: RuleFiles) -> list[Mutant]:
    """Every mutant of the recorded series; to judge one takes seconds, since all are needed."""
    return mutants(rules.recording)


def drawn(found: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """*count* of the mutants, the same for the same seed, in their order."""
    chosen = sorted(Random(seed).sample(range(len(found)), min(count, len(found))))
    return [found[at] for at in chosen]


def judged(
    found: Sequence[Mutant],
    rules: RuleFiles,
    tests: Sequence[RuleTest],
    *,
    workers: int,
    tell: Callable[[Verdict], None],
) -> list[Verdict]:
    """Run the tests of each mutant's rule; *tell* hears the verdicts, in order, as they come."""
    recorded = {rule["record"] for group in rules.recording["groups"] for rule in group["rules"]}

    def judge(mutant: Mutant) -> Verdict:
        wrong: tuple[Mapping[str, Any], ...]
        if mutant.rule in recorded:
            wrong = (mutant.applied(rules.recording), rules.alerts)
        else:
            wrong = (rules.recording, mutant.applied(rules.alerts))
        killed = any(failure(test, wrong) for test in tests if test.about(mutant.rule))
        return Verdict(mutant, killed, known_reason(mutant))

    verdicts = []
    with ThreadPoolExecutor(workers) as pool:
        for verdict in pool.map(judge, found):
            tell(verdict)
            verdicts.append(verdict)
    return verdicts
