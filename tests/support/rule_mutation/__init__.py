"""Mutation testing of the generated rules: changes one token, expects a test to fail."""

from rule_mutation.equivalents import EQUIVALENT, equivalence_reason
from rule_mutation.mutants import Mutant, mutants
from rule_mutation.verdicts import Verdict, all_mutants, judge_mutants, sample_mutants

__all__ = [
    "EQUIVALENT",
    "Mutant",
    "Verdict",
    "all_mutants",
    "equivalence_reason",
    "judge_mutants",
    "mutants",
    "sample_mutants",
]
