"""Whether the rule tests notice a mutant."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from mm2slo_cli.alerts_promtool import failure
from rule_mutation.equivalents import equivalence_reason
from rule_mutation.mutants import Mutant, mutants

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mm2slo_alerts.rule_tests import RuleTest
    from mm2slo_cli.alerts_promtool import RuleFiles


@dataclass(frozen=True, slots=True)
class Verdict:
    """`killed`: a test failed on the mutant; `reason`: why it is listed as equivalent."""

    mutant: Mutant
    killed: bool
    reason: str = ""

    @property
    def is_expected(self) -> bool:
        return self.killed != bool(self.reason)


def all_mutants(rules: RuleFiles) -> list[Mutant]:
    """Mutants of the alerts, then of the recorded series."""
    return [*mutants(rules.alerts), *mutants(rules.recording)]


def sample_mutants(found: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """Return *count* of the mutants, the same for the same seed, in their order."""
    chosen = sorted(Random(seed).sample(range(len(found)), min(count, len(found))))
    return [found[at] for at in chosen]


def judge_mutants(
    found: Iterable[Mutant], rules: RuleFiles, tests: Sequence[RuleTest], *, workers: int
) -> list[Verdict]:
    """Run the tests of each mutant's rule. A mutant of a recorded series takes seconds."""
    recorded = {rule["record"] for group in rules.recording["groups"] for rule in group["rules"]}

    def judge(mutant: Mutant) -> Verdict:
        mutated: tuple[Mapping[str, Any], ...]
        if mutant.rule in recorded:
            mutated = (mutant.applied(rules.recording), rules.alerts)
        else:
            mutated = (rules.recording, mutant.applied(rules.alerts))
        killed = any(failure([test], mutated) for test in tests if _tests_rule(test, mutant.rule))
        return Verdict(mutant, killed, equivalence_reason(mutant))

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(judge, found))


def _tests_rule(test: RuleTest, rule: str) -> bool:
    return rule in test.alerts or (
        test.needs_recording and any(rule in query for query in _queries(test))
    )


def _queries(test: RuleTest) -> list[str]:
    return [
        check["expr"]
        for each in test.document["tests"]
        for check in each.get("promql_expr_test", ())
    ]
