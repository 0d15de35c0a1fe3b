"""Whether the rule tests notice a mutant."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random
from typing import Any

from mm2slo_alerts.promtool_tests import RuleTest
from mm2slo_cli.alerts_test import RuleFiles, failure
from rule_mutation.equivalents import equivalence_reason
from rule_mutation.mutants import Mutant, mutants, seconds


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


@dataclass(frozen=True, slots=True)
class _Case(RuleTest):
    """One case of a test, with the rules that the whole test needs."""

    case: Mapping[str, Any]

    def reduced(self) -> dict[str, Any]:
        return {**RuleTest.reduced(self), "tests": [self.case]}


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
        readers = _readers(mutant.rule, rules.alerts)
        chosen = [test for test in tests if test.alerts & readers or _queries(test, mutant.rule)]
        killed = any(failure([case], mutated) for case in _cases(chosen))
        return Verdict(mutant, killed, equivalence_reason(mutant))

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(judge, found))


def _readers(rule: str, document: Mapping[str, Any]) -> set[str]:
    """Return the names of *rule* and of the rules that read it, also through another one."""
    every = [each for group in document["groups"] for each in group["rules"]]
    found, added = set[str](), {rule}
    while added:
        found |= added
        readers = (each for each in every if any(name in each["expr"] for name in added))
        added = {each.get("alert") or each["record"] for each in readers} - found
    return found


def _cases(tests: Iterable[RuleTest]) -> list[_Case]:
    """The cases of *tests*, the shortest first: most mutants fail a short one."""
    found = [
        _Case(test.name, test.document, case) for test in tests for case in test.document["tests"]
    ]
    return sorted(found, key=lambda each: _length(each.case))


def _length(case: Mapping[str, Any]) -> float:
    """Seconds that promtool evaluates the rules for."""
    checks = [*case.get("alert_rule_test", ()), *case.get("promql_expr_test", ())]
    return max(seconds(check["eval_time"]) for check in checks)


def _queries(test: RuleTest, rule: str) -> bool:
    return test.needs_recording and any(
        rule in check["expr"]
        for each in test.document["tests"]
        for check in each.get("promql_expr_test", ())
    )
