"""The gate of a cutover: judges whether consumers and producers can move to the target now.

`ready` is asked under traffic, days or hours before: would a cutover work? `go` is asked after all
producers have stopped: may the consumers move? Each check passes, fails, or is unknown, which is
no permission either: a check that cannot be made does not pass. Only the user can accept what is
unknown, by name and with a reason.

Invariants:
A. `go` needs every check of its phase to pass or to be accepted, with all that it finds.
B. Evidence that is older than the end of the traffic, or of a cluster that cannot be read, proves
   nothing: it is unknown.
C. A failing check that follows from another failing one is marked as its consequence, and the cause
   comes first.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, TypeAdapter

from mm2slo_core.cutover.cutover_checks import (
    ALL_READ,
    CHECKS,
    CheckAnswer,
    CheckOutcome,
    CutoverPhase,
    GateQuestion,
)
from mm2slo_core.cutover.cutover_evidence import Cases, CutoverTerms, Waiver
from mm2slo_core.reporting.report_entry import Instant, json_part
from mm2slo_core.user_errors import UserError


class GateVerdict(StrEnum):
    GO = "go"
    NO_GO = "no_go"
    """A check fails."""
    UNKNOWN = "unknown"
    """No check fails, but one is unknown: no go either."""


EXIT_CODES: Final = {GateVerdict.GO: 0, GateVerdict.NO_GO: 1, GateVerdict.UNKNOWN: 3}


@json_part
@dataclass(frozen=True, slots=True)
class AcceptedPart:
    """What the user accepts of a check, and why."""

    item: Annotated[str | None, Field(description="Null: that the check is unknown.")]
    reason: str
    matches: Annotated[
        bool, Field(description="Whether the check has the item: else nothing is accepted.")
    ]


@json_part
@dataclass(frozen=True, slots=True, kw_only=True)
class CutoverCheck:
    """A check with its answer, and what the user has accepted of it."""

    name: str
    result: CheckOutcome
    text: str
    count: Annotated[int, Field(description="How many cases there are.")]
    cases: Annotated[tuple[str, ...], Field(description="The first of them.")]
    next_step: str
    consequence_of: Annotated[
        tuple[str, ...], Field(description="Failing checks that explain this one.")
    ]
    items: Annotated[tuple[str, ...], Field(description="What can be accepted one by one.")]
    accepted: tuple[AcceptedPart, ...]


@json_part
@dataclass(frozen=True, slots=True, kw_only=True)
class CutoverDecision:
    """The verdict and its checks: causes first, then consequences, unknown ones, and the rest."""

    flow: str
    phase: CutoverPhase
    as_of: Annotated[Instant, Field(description="When the clusters were read.")]
    verdict: GateVerdict
    go: bool
    freeze_seconds: float
    accepted_redelivery_records: int
    checks: Annotated[tuple[CutoverCheck, ...], Field(description="Causes come first.")]

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.verdict]

    def as_json(self, indent: int | None = None) -> bytes:
        return _DECISION.dump_json(self, indent=indent)


_DECISION: Final = TypeAdapter(CutoverDecision)


def decide(question: GateQuestion) -> CutoverDecision:
    """Judge all checks of the phase. Raises UserError for a waiver that fits no check."""
    check_waivers(question.phase, question.terms)
    checks = [check for check in CHECKS if question.phase in check.phases]
    results: list[CutoverCheck] = []
    standing: dict[str, CheckOutcome] = {}
    first: dict[str, tuple[str, ...]] = {}
    for check in checks:
        judged = check.judge(question)
        answers = [judged] if isinstance(judged, CheckAnswer) else judged
        if (
            answers[0].result is CheckOutcome.PASS
            and standing.get(ALL_READ, CheckOutcome.PASS) in _NOT_PASSED
        ):
            answers = [CheckAnswer(CheckOutcome.UNKNOWN, "not known without both clusters")]
        waivers = tuple(each for each in question.terms.waivers if each.check == check.name)
        answer = _combined(answers, waivers)
        result = answer.result
        standing[check.name] = result
        explaining = _EXPLAINING.get(result, frozenset())
        # Only first causes: a chain of consequences would hide them.
        failed = (name for name in check.follows if standing.get(name) in explaining)
        causes = tuple(dict.fromkeys(each for name in failed for each in first[name] or (name,)))
        first[check.name] = causes
        results.append(
            CutoverCheck(
                name=check.name,
                result=result,
                text=answer.text,
                count=answer.cases.count,
                cases=answer.cases.first,
                next_step="" if result is CheckOutcome.PASS else answer.next_step,
                consequence_of=causes,
                items=answer.items,
                accepted=tuple(
                    AcceptedPart(
                        each.item, each.reason, each.item is None or each.item in answer.items
                    )
                    for each in waivers
                ),
            )
        )
    found = {each.result for each in results}
    verdict = GateVerdict.UNKNOWN if CheckOutcome.UNKNOWN in found else GateVerdict.GO
    verdict = GateVerdict.NO_GO if CheckOutcome.FAIL in found else verdict
    return CutoverDecision(
        flow=question.evidence.flow,
        phase=question.phase,
        as_of=round(question.evidence.at * 1000),
        verdict=verdict,
        go=verdict is GateVerdict.GO,
        freeze_seconds=question.terms.freeze,
        accepted_redelivery_records=question.terms.redelivery,
        checks=tuple(sorted(results, key=_rank)),
    )


_NOT_PASSED: Final = frozenset({CheckOutcome.FAIL, CheckOutcome.UNKNOWN})
_EXPLAINING: Final = {
    CheckOutcome.FAIL: frozenset({CheckOutcome.FAIL}),
    CheckOutcome.UNKNOWN: _NOT_PASSED,
}
_ORDER: Final = (CheckOutcome.FAIL, CheckOutcome.UNKNOWN, CheckOutcome.ACCEPTED, CheckOutcome.PASS)


def _rank(result: CutoverCheck) -> tuple[int, bool]:
    return _ORDER.index(result.result), bool(result.consequence_of)


def _combined(answers: Iterable[CheckAnswer], waivers: Iterable[Waiver]) -> CheckAnswer:
    """The worst result, with the texts of all that is not accepted, and the items of all."""
    judged = [each._replace(result=_accepted(each, waivers)) for each in answers]
    judged.sort(key=lambda each: _ORDER.index(each.result))
    shown = [each for each in judged if each.result in _NOT_PASSED] or judged
    return CheckAnswer(
        judged[0].result,
        "; ".join(each.text for each in shown),
        Cases(
            sum(each.cases.count for each in shown),
            tuple(case for each in shown for case in each.cases.first),
        ),
        "; ".join(dict.fromkeys(each.next_step for each in shown if each.next_step)),
        tuple(dict.fromkeys(item for each in judged for item in each.items)),
    )


def _accepted(answer: CheckAnswer, waivers: Iterable[Waiver]) -> CheckOutcome:
    """A waiver of a check accepts what is unknown, one of an item that this item fails."""
    items = {each.item for each in waivers}
    if answer.result is CheckOutcome.UNKNOWN and None in items:
        return CheckOutcome.ACCEPTED
    if answer.result is CheckOutcome.FAIL and answer.items and items.issuperset(answer.items):
        return CheckOutcome.ACCEPTED
    return answer.result


def parse_waiver(text: str) -> Waiver:
    """Read `check=reason` or `check/item=reason`; an item may contain `=`. Raises UserError."""
    # Principals of TLS contain `=` (User:CN=web), so the last one ends the item.
    split = text.rpartition if "/" in text.partition("=")[0] else text.partition
    name, _, reason = (part.strip() for part in split("="))
    check, separator, item = name.partition("/")
    if not (check and reason) or (separator and not item):
        raise UserError(
            f"{text!r} is no acceptance: expected CHECK=REASON for a check that is unknown, or "
            "CHECK/ITEM=REASON for an item that fails"
        )
    return Waiver(check, item or None, reason)


def check_waivers(phase: CutoverPhase, terms: CutoverTerms) -> None:
    """Raise UserError for a waiver of a check that the phase does not have."""
    names = [check.name for check in CHECKS if phase in check.phases]
    for waiver in terms.waivers:
        if waiver.check not in names:
            raise UserError(
                f"there is no check {waiver.check!r} in phase {phase}: "
                f"expected one of {', '.join(names)}"
            )
