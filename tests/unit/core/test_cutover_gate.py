"""The gate of a cutover: verdicts, causes and consequences, what a user may accept."""

from dataclasses import replace
from typing import Any

import pytest
from cutover_samples import CHECKPOINT, FROZEN, NOW, SAFE
from cutover_samples import cutover_group as group

from mm2slo_core.cutover.cutover_evidence import (
    AccessFacts,
    AccessGap,
    AuditFact,
    BudgetFact,
    Cases,
    CutoverTerms,
    TaskFact,
    not_read,
)
from mm2slo_core.cutover.cutover_gate import (
    CHECKS,
    NO_POSITION,
    CheckResult,
    Decision,
    Phase,
    Question,
    Result,
    Verdict,
    check_waivers,
    decide,
    parse_waiver,
)
from mm2slo_core.indicators.group_readiness import BlockReason
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError

ONE = Cases(1, ("orders-0",))
CLEAN = AuditFact(complete_up_to=NOW)
LEFT = BudgetFact(objectives=4)


def judge(phase: Phase = Phase.GO, audit: AuditFact | None = CLEAN, **fields: Any) -> Decision:
    terms = CutoverTerms(
        freeze=fields.pop("freeze", 120.0),
        redelivery=fields.pop("redelivery", 0),
        waivers=tuple(map(parse_waiver, fields.pop("accept", ()))),
    )
    budget = fields.pop("budget", LEFT)
    return decide(Question(phase, replace(SAFE, **fields), terms, audit, budget))


def result(decision: Decision, name: str) -> CheckResult:
    return next(each for each in decision.checks if each.name == name)


@pytest.mark.parametrize("phase", list(Phase))
def test_safe_flow_is_go(phase: Phase) -> None:
    decision = judge(phase)
    assert [each for each in decision.checks if each.result is not Result.PASS] == []
    assert (decision.verdict, decision.exit_code) == (Verdict.GO, 0)
    assert {each.name for each in decision.checks} == {
        each.name for each in CHECKS if phase in each.phases
    }


TRICKLE: dict[str, Any] = {"frozen_from": NOW - 15, "written": Cases(1, ("orders: 15 s ago",))}
DENIED = AccessFacts(NOW, denied=(AccessGap("User:shop", "Write on topic us.orders"),))
PAUSED = (*SAFE.tasks[:2], TaskFact(CHECKPOINT, None, "paused"), TaskFact(CHECKPOINT, 0, "paused"))
FAILING: dict[str, tuple[Phase, dict[str, Any]]] = {
    "connectors": (Phase.GO, {"tasks": PAUSED}),
    "flow": (Phase.GO, {"state": "stopped", "state_reason": "canaries_silent"}),
    "producers": (Phase.GO, TRICKLE),
    "transactions": (Phase.GO, {"open_transactions": ONE}),
    "topics": (Phase.GO, {"new_topics": ONE, "newest_topic_at": NOW - 5}),
    "partitions": (Phase.GO, {"partition_differences": ONE}),
    "settings": (Phase.READY, {"setting_differences": ONE}),
    "access": (Phase.GO, {"access": DENIED}),
    "lag": (Phase.READY, {"lag_seconds": 61.0}),
    "positions": (Phase.GO, {"behind": ONE}),
    "uncarried_groups": (Phase.GO, {"groups": (group(carried=False),)}),
    "source_groups": (Phase.GO, {"groups": (group(remaining=3),)}),
    "target_groups": (Phase.GO, {"groups": (group(skipped_most=7),)}),
    "checkpoints": (Phase.GO, {"groups": (group(checkpoint_lag=4),)}),
    "groups": (Phase.READY, {"groups": (group(blocked=("no_checkpoint",)),)}),
    "redelivery": (Phase.GO, {"groups": (group(redelivery_most=4),)}),
    "audit": (Phase.GO, {"audit": AuditFact(NOW, Cases(1, ("lost: 2",)))}),
    "budget": (Phase.READY, {"budget": BudgetFact(Cases(1, ("us-to-eu-loss",)), objectives=4)}),
}


@pytest.mark.parametrize("name", FAILING)
def test_each_cause_makes_its_own_check_fail_first(name: str) -> None:
    phase, fields = FAILING[name]
    decision = judge(phase, **fields)
    first = decision.checks[0]
    assert (first.name, first.result, first.consequence_of) == (name, Result.FAIL, ())
    assert first.next_step
    assert (decision.verdict, decision.exit_code) == (Verdict.NO_GO, 1)


UNKNOWN: dict[str, tuple[Phase, dict[str, Any]]] = {
    "clusters": (Phase.GO, {"unreadable": ("us",)}),
    "connectors": (Phase.GO, {"tasks": ()}),
    "flow": (Phase.GO, {"arrived_at": None}),
    "producers": (Phase.GO, {"frozen_from": NOW - 40, "settles_after": 0.0}),
    "transactions": (Phase.GO, {"transactions_read_at": FROZEN - 1}),
    "settings": (Phase.READY, {"settings_read": False}),
    "access": (Phase.GO, {"access": None}),
    "lag": (Phase.READY, {"lag_seconds": None}),
    "positions": (Phase.GO, {"unknown_positions": ONE}),
    "uncarried_groups": (Phase.GO, {"group_types_known": False}),
    "source_groups": (Phase.GO, {"groups": (group(remaining=None),)}),
    "checkpoints": (Phase.GO, {"groups": (group(commits_changed_at=NOW - 10),)}),
    "redelivery": (Phase.GO, {"groups": (group(redelivery_most=None),)}),
    "audit": (Phase.GO, {"audit": None}),
    "budget": (Phase.READY, {"budget": None}),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_is_no_go_until_it_is_accepted_by_name(name: str) -> None:
    phase, fields = UNKNOWN[name]
    decision = judge(phase, **fields)
    unknown = [each for each in decision.checks if each.result is Result.UNKNOWN]
    assert [each.name for each in unknown if not each.consequence_of] == [name]
    assert unknown[0].next_step
    assert (decision.verdict, decision.exit_code) == (Verdict.UNKNOWN, 3)
    every = [f"{each.name}=checked by hand" for each in unknown]
    accepted = judge(phase, **fields, accept=every)
    assert (accepted.verdict, result(accepted, name).result) == (Verdict.GO, Result.ACCEPTED)
    assert result(accepted, name).waivers[0].reason == "checked by hand"
    assert judge(phase, **fields, accept=every[1:]).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("name", FAILING)
def test_waiver_of_a_check_does_not_accept_that_it_fails(name: str) -> None:
    phase, fields = FAILING[name]
    assert judge(phase, **fields, accept=[f"{name}=never mind"]).verdict is Verdict.NO_GO


def test_failing_items_are_accepted_one_by_one() -> None:
    groups = (group(group="a", carried=False), group(group="b", carried=False), group())
    one = judge(
        groups=groups, excluded_groups=("console-consumer-1",), accept=["uncarried_groups/a=x"]
    )
    assert one.verdict is Verdict.NO_GO
    both = judge(groups=groups, accept=["uncarried_groups/a=x", "uncarried_groups/b=y"])
    assert both.verdict is Verdict.GO
    excluded = judge(excluded_groups=("connect-sink",))
    assert result(excluded, "uncarried_groups").cases.first == (
        "connect-sink (excluded by the filter)",
    )
    assert judge(access=DENIED, accept=["access/User:shop=no producer"]).verdict is Verdict.GO


def test_redelivery_is_accepted_by_number() -> None:
    groups = (group(redelivery_least=2, redelivery_most=40),)
    assert "2 to 40 records" in result(judge(groups=groups), "redelivery").cases.first[0]
    assert judge(groups=groups, redelivery=39).verdict is Verdict.NO_GO
    assert judge(groups=groups, redelivery=40).verdict is Verdict.GO


def test_consequences_follow_their_cause() -> None:
    decision = judge(**TRICKLE, behind=ONE, groups=(group(remaining=5, redelivery_most=9),))
    failing = [each for each in decision.checks if each.result is Result.FAIL]
    assert failing[0].name == "producers"
    assert all("producers" in each.consequence_of for each in failing[1:])
    assert {each.name for each in failing[1:]} == {"positions", "source_groups", "redelivery"}


def test_causes_come_earlier_in_the_table() -> None:
    names = [each.name for each in CHECKS]
    for place, check in enumerate(CHECKS):
        assert set(check.follows) <= set(names[:place]), check.name


def test_movement_before_the_first_question_is_not_held_against_anybody() -> None:
    found = result(judge(frozen_from=NOW - 41, frozen_until=NOW - 1), "producers")
    assert (found.result, found.text) == (Result.UNKNOWN, "frozen for 40 s of 120 s")


def test_topic_that_appeared_longer_ago_than_the_freeze_is_a_topic_like_others() -> None:
    assert judge(new_topics=ONE, newest_topic_at=NOW - 121).verdict is Verdict.GO


def test_groups_read_before_the_last_record_prove_nothing() -> None:
    decision = judge(groups=(group(commits_read_at=FROZEN - 1),))
    unknown = {each.name for each in decision.checks if each.result is Result.UNKNOWN}
    assert unknown == {"source_groups", "target_groups", "checkpoints", "redelivery"}


def test_audit_up_to_a_time_before_the_last_record_is_unknown() -> None:
    assert result(judge(audit=AuditFact(FROZEN - 10)), "audit").result is Result.UNKNOWN
    sampled = result(judge(audit=AuditFact(NOW, sample_rate=0.01)), "audit")
    assert (sampled.result, "1.000%" in sampled.text) == (Result.PASS, True)


def test_nothing_read_is_never_go() -> None:
    for phase in Phase:
        decision = decide(Question(phase, not_read(Flow("us", "eu"), NOW), CutoverTerms()))
        assert decision.verdict is not Verdict.GO
        passed = {each.name for each in decision.checks if each.result is Result.PASS}
        assert passed == set(), passed


def test_reasons_without_a_position_are_reasons_of_readiness() -> None:
    assert {each.value for each in BlockReason} >= NO_POSITION


@pytest.mark.parametrize("text", ["audit", "audit=", "=x", "access/=x", ""])
def test_acceptance_without_check_or_reason_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="expected CHECK=REASON"):
        parse_waiver(text)


def test_acceptance_of_another_phase_is_refused() -> None:
    with pytest.raises(UserError, match="no check 'lag' in phase go: expected one of clusters"):
        check_waivers(Phase.GO, CutoverTerms(waivers=(parse_waiver("lag=x"),)))
