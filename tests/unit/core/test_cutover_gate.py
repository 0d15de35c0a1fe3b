"""The gate of a cutover: verdicts, causes and consequences, what a user may accept."""

from dataclasses import replace
from typing import Any

import pytest
from cutover_samples import CHECKPOINT, FROZEN, NOW, SAFE, SOURCE
from cutover_samples import cutover_group as group

from mm2slo_core.cutover.cutover_checks import (
    CHECKS,
    NO_POSITION,
    CheckOutcome,
    CutoverPhase,
    GateQuestion,
)
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
    CutoverCheck,
    CutoverDecision,
    GateVerdict,
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


def judge(
    phase: CutoverPhase = CutoverPhase.GO, audit: AuditFact | None = CLEAN, **fields: Any
) -> CutoverDecision:
    terms = CutoverTerms(
        freeze=fields.pop("freeze", 120.0),
        redelivery=fields.pop("redelivery", 0),
        waivers=tuple(map(parse_waiver, fields.pop("accept", ()))),
    )
    budget = fields.pop("budget", LEFT)
    return decide(GateQuestion(phase, replace(SAFE, **fields), terms, audit, budget))


def result(decision: CutoverDecision, name: str) -> CutoverCheck:
    return next(each for each in decision.checks if each.name == name)


@pytest.mark.parametrize("phase", list(CutoverPhase))
def test_safe_flow_is_go(phase: CutoverPhase) -> None:
    decision = judge(phase)
    assert [each for each in decision.checks if each.result is not CheckOutcome.PASS] == []
    assert (decision.verdict, decision.exit_code) == (GateVerdict.GO, 0)
    assert {each.name for each in decision.checks} == {
        each.name for each in CHECKS if phase in each.phases
    }


TRICKLE: dict[str, Any] = {
    "frozen_from": NOW - 15,
    "written": Cases(1, ("orders: 15 s ago",)),
    "written_at": NOW - 15,
}
DENIED = AccessFacts(NOW, denied=(AccessGap("User:shop", "Write on topic us.orders"),))
PAUSED = (*SAFE.tasks[:2], TaskFact(CHECKPOINT, None, "paused"), TaskFact(CHECKPOINT, 0, "paused"))
FAILING: dict[str, tuple[CutoverPhase, dict[str, Any]]] = {
    "connectors": (CutoverPhase.GO, {"tasks": PAUSED}),
    "flow": (CutoverPhase.GO, {"state": "stopped", "state_reason": "canaries_silent"}),
    "producers": (CutoverPhase.GO, TRICKLE),
    "transactions": (CutoverPhase.GO, {"open_transactions": ONE}),
    "topics": (CutoverPhase.GO, {"new_topics": ONE, "newest_topic_at": NOW - 5}),
    "partitions": (CutoverPhase.GO, {"partition_differences": ONE}),
    "settings": (CutoverPhase.READY, {"setting_differences": ONE}),
    "access": (CutoverPhase.GO, {"access": DENIED}),
    "lag": (CutoverPhase.READY, {"lag_seconds": 61.0}),
    "positions": (CutoverPhase.GO, {"behind": ONE}),
    "uncarried_groups": (CutoverPhase.GO, {"groups": (group(carried=False),)}),
    "source_groups": (CutoverPhase.GO, {"groups": (group(remaining=3),)}),
    "target_groups": (CutoverPhase.GO, {"groups": (group(skipped_most=7),)}),
    "checkpoints": (CutoverPhase.GO, {"groups": (group(checkpoint_lag=4),)}),
    "target_commits": (CutoverPhase.GO, {"groups": (group(unsynced=1),)}),
    "groups": (CutoverPhase.READY, {"groups": (group(blocked=("no_checkpoint",)),)}),
    "redelivery": (CutoverPhase.GO, {"groups": (group(redelivery_most=4),)}),
    "audit": (CutoverPhase.GO, {"audit": AuditFact(NOW, Cases(1, ("lost: 2",)))}),
    "budget": (
        CutoverPhase.READY,
        {"budget": BudgetFact(Cases(1, ("us-to-eu-loss",)), objectives=4)},
    ),
}


@pytest.mark.parametrize("name", FAILING)
def test_each_cause_makes_its_own_check_fail_first(name: str) -> None:
    phase, fields = FAILING[name]
    decision = judge(phase, **fields)
    first = decision.checks[0]
    assert (first.name, first.result, first.consequence_of) == (name, CheckOutcome.FAIL, ())
    assert first.next_step
    assert (decision.verdict, decision.exit_code) == (GateVerdict.NO_GO, 1)


UNKNOWN: dict[str, tuple[CutoverPhase, dict[str, Any]]] = {
    "clusters": (CutoverPhase.GO, {"unreadable": ("us",)}),
    "connectors": (CutoverPhase.GO, {"tasks": ()}),
    "flow": (CutoverPhase.GO, {"arrived_at": None}),
    "producers": (CutoverPhase.GO, {"frozen_from": NOW - 40, "settles_after": 0.0}),
    "transactions": (CutoverPhase.GO, {"transactions_read_at": FROZEN - 1}),
    "settings": (CutoverPhase.READY, {"settings_read": False}),
    "access": (CutoverPhase.GO, {"access": None}),
    "lag": (CutoverPhase.READY, {"lag_seconds": None}),
    "positions": (CutoverPhase.GO, {"unknown_positions": ONE}),
    "uncarried_groups": (CutoverPhase.GO, {"group_types_known": False}),
    "source_groups": (CutoverPhase.GO, {"groups": (group(remaining=None),)}),
    "checkpoints": (CutoverPhase.GO, {"groups": (group(commits_changed_at=NOW - 10),)}),
    "redelivery": (CutoverPhase.GO, {"groups": (group(redelivery_most=None),)}),
    "audit": (CutoverPhase.GO, {"audit": None}),
    "budget": (CutoverPhase.READY, {"budget": None}),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_is_no_go_until_it_is_accepted_by_name(name: str) -> None:
    phase, fields = UNKNOWN[name]
    decision = judge(phase, **fields)
    unknown = [each for each in decision.checks if each.result is CheckOutcome.UNKNOWN]
    assert [each.name for each in unknown if not each.consequence_of] == [name]
    assert unknown[0].next_step
    assert (decision.verdict, decision.exit_code) == (GateVerdict.UNKNOWN, 3)
    every = [f"{each.name}=checked by hand" for each in unknown]
    accepted = judge(phase, **fields, accept=every)
    assert (accepted.verdict, result(accepted, name).result) == (
        GateVerdict.GO,
        CheckOutcome.ACCEPTED,
    )
    assert result(accepted, name).accepted[0].reason == "checked by hand"
    assert judge(phase, **fields, accept=every[1:]).verdict is GateVerdict.UNKNOWN


@pytest.mark.parametrize("name", FAILING)
def test_waiver_of_a_check_does_not_accept_that_it_fails(name: str) -> None:
    phase, fields = FAILING[name]
    assert judge(phase, **fields, accept=[f"{name}=never mind"]).verdict is GateVerdict.NO_GO


def test_failing_items_are_accepted_one_by_one() -> None:
    groups = (group(group="a", carried=False), group(group="b", carried=False), group())
    one = judge(
        groups=groups, excluded_groups=("console-consumer-1",), accept=["uncarried_groups/a=x"]
    )
    assert one.verdict is GateVerdict.NO_GO
    both = judge(groups=groups, accept=["uncarried_groups/a=x", "uncarried_groups/b=y"])
    assert both.verdict is GateVerdict.GO
    excluded = judge(excluded_groups=("connect-sink",))
    assert result(excluded, "uncarried_groups").cases == ("connect-sink (excluded by the filter)",)
    assert judge(access=DENIED, accept=["access/User:shop=no producer"]).verdict is GateVerdict.GO


SHOP_MISSING = AccessFacts(
    NOW,
    denied=(AccessGap("User:web", "Write on topic us.orders"),),
    missing=(AccessGap("User:shop", "Read on topic us.orders"),),
)
HIDING: dict[str, tuple[str, dict[str, Any], CheckOutcome]] = {
    "access": (
        "access/User:web",
        {"access": SHOP_MISSING},
        CheckOutcome.FAIL,
    ),
    "access without readers": (
        "access/User:shop",
        {"access": replace(DENIED, unjudged=True)},
        CheckOutcome.UNKNOWN,
    ),
    "uncarried_groups": (
        "uncarried_groups/old",
        {"groups": (group(group="old", carried=False),), "group_types_known": False},
        CheckOutcome.UNKNOWN,
    ),
    "source_groups": (
        "source_groups/old",
        {"groups": (group(group="old", remaining=5), group(remaining=None))},
        CheckOutcome.UNKNOWN,
    ),
    "target_groups": (
        "target_groups/old",
        {"groups": (group(group="old", skipped_most=5), group(members_on_target=None))},
        CheckOutcome.UNKNOWN,
    ),
    "checkpoints": (
        "checkpoints/old",
        {"groups": (group(group="old", checkpoint_lag=5), group(commits_changed_at=NOW - 10))},
        CheckOutcome.UNKNOWN,
    ),
    "target_commits": (
        "target_commits/old",
        {"groups": (group(group="old", unsynced=1), group(unsynced=1, commits_changed_at=NOW))},
        CheckOutcome.UNKNOWN,
    ),
    "redelivery": (
        "redelivery/old",
        {"groups": (group(group="old", redelivery_most=5), group(redelivery_most=None))},
        CheckOutcome.UNKNOWN,
    ),
    "source_groups, not read": (
        "source_groups",
        {"groups": (group(group="old", remaining=5),), "unread_groups": ONE},
        CheckOutcome.FAIL,
    ),
    "source_groups, old": (
        "source_groups",
        {"groups": (group(members_on_source=True, commits_read_at=None),)},
        CheckOutcome.FAIL,
    ),
    "target_groups, old": (
        "target_groups",
        {"groups": (group(members_on_target=True, commits_read_at=None),)},
        CheckOutcome.FAIL,
    ),
    "redelivery, old": (
        "redelivery",
        {"groups": (group(redelivery_most=5), group(group="old", commits_read_at=None))},
        CheckOutcome.FAIL,
    ),
    "producers": ("producers", TRICKLE | {"unread_ends": ONE}, CheckOutcome.FAIL),
    "flow": ("flow", {"state": "unknown", "arrived_at": NOW - 1000}, CheckOutcome.FAIL),
    "audit": ("audit", {"audit": AuditFact(None, Cases(1, ("lost: 2",)))}, CheckOutcome.FAIL),
}


@pytest.mark.parametrize("case", HIDING)
def test_acceptance_of_a_part_of_a_check_does_not_hide_the_rest(case: str) -> None:
    accepted, fields, rest = HIDING[case]
    check = accepted.partition("/")[0]
    assert result(judge(**fields, accept=[f"{accepted}=x"]), check).result is rest


def test_failing_check_names_all_of_its_items_and_what_is_unknown() -> None:
    found = result(judge(access=SHOP_MISSING), "access")
    assert found.items == ("User:web", "User:shop")
    assert found.cases == (
        "User:web: Write on topic us.orders",
        "User:shop: Read on topic us.orders",
    )
    both = ["access/User:web=x", "access/User:shop=y"]
    assert judge(access=SHOP_MISSING, accept=both).verdict is GateVerdict.GO
    groups = (group(group="old", remaining=5, members_on_source=True), group(remaining=None))
    found = result(judge(groups=groups), "source_groups")
    assert (found.result, found.count, found.items) == (CheckOutcome.FAIL, 2, ("old",))
    assert found.cases == ("old: has members, up to 5 records to read", "shop")
    rest = result(judge(groups=groups, accept=["source_groups/old=x"]), "source_groups")
    assert (rest.cases, rest.accepted[0].item) == (("shop",), "old")


def test_acceptance_of_an_item_that_the_check_does_not_have_is_marked() -> None:
    accept = ["access/User:shop=see a=b", "access/User:shop=x", "audit=y"]
    decision = judge(access=DENIED, accept=accept)
    parts = [(each.item, each.matches) for each in result(decision, "access").accepted]
    assert parts == [("User:shop=see a", False), ("User:shop", True)]
    assert [each.matches for each in result(decision, "audit").accepted] == [True]


def test_redelivery_is_accepted_by_number() -> None:
    groups = (group(redelivery_least=2, redelivery_most=40),)
    assert "2 to 40 records" in result(judge(groups=groups), "redelivery").cases[0]
    assert judge(groups=groups, redelivery=39).verdict is GateVerdict.NO_GO
    assert judge(groups=groups, redelivery=40).verdict is GateVerdict.GO


def test_consequences_follow_their_cause() -> None:
    decision = judge(**TRICKLE, behind=ONE, groups=(group(remaining=5, redelivery_most=9),))
    failing = [each for each in decision.checks if each.result is CheckOutcome.FAIL]
    assert failing[0].name == "producers"
    assert all("producers" in each.consequence_of for each in failing[1:])
    assert {each.name for each in failing[1:]} == {"positions", "source_groups", "redelivery"}
    assert result(decision, "redelivery").consequence_of == ("producers",)


def test_causes_come_earlier_in_the_table() -> None:
    names = [each.name for each in CHECKS]
    for place, check in enumerate(CHECKS):
        assert set(check.follows) <= set(names[:place]), check.name


def test_topic_that_appeared_restarts_the_freeze_without_blaming_producers() -> None:
    fields = {**TRICKLE, "written_at": NOW - 130, "new_topics": ONE, "newest_topic_at": NOW - 15}
    decision = judge(**fields)
    assert decision.checks[0].name == "topics"
    assert result(decision, "producers").result is CheckOutcome.UNKNOWN


def test_movement_before_the_first_question_is_not_held_against_anybody() -> None:
    found = result(judge(frozen_from=NOW - 41, frozen_until=NOW - 1), "producers")
    assert (found.result, found.text) == (CheckOutcome.UNKNOWN, "frozen for 40 s of 120 s")


def test_topic_that_appeared_longer_ago_than_the_freeze_is_a_topic_like_others() -> None:
    assert judge(new_topics=ONE, newest_topic_at=NOW - 121).verdict is GateVerdict.GO


@pytest.mark.parametrize(
    "fields",
    [
        {"groups": (group(commits_read_at=FROZEN - 1),)},
        {"groups": (group(commits_read_at=None),)},
        {"groups_listed_at": FROZEN - 1},
        {"frozen_from": NOW - 4000, "groups_listed_at": NOW - 301},
        {"unread_groups": ONE},
        {"groups_read": False},
    ],
)
def test_groups_that_were_not_read_since_the_last_record_prove_nothing(
    fields: dict[str, Any],
) -> None:
    decision = judge(**fields)
    unknown = {each.name for each in decision.checks if each.result is CheckOutcome.UNKNOWN}
    assert unknown >= {
        "source_groups", "target_groups", "checkpoints", "target_commits", "redelivery"
    }  # fmt: skip


def test_group_without_a_commit_on_the_target_starts_where_its_reset_policy_says() -> None:
    groups = (group(unsynced=2),)
    found = judge(groups=groups).checks[0]
    assert (found.name, found.items) == ("target_commits", ("shop",))
    assert judge(groups=groups, accept=["target_commits/shop=translates"]).verdict is GateVerdict.GO
    early = judge(groups=(group(unsynced=2, commits_changed_at=NOW - 10),))
    assert result(early, "target_commits").result is CheckOutcome.UNKNOWN


def test_group_that_reads_topics_of_the_target_as_copies_needs_commits_there() -> None:
    groups = (group(unsynced_origins=("orders", "refunds"), commits_changed_at=NOW - 10),)
    decision = judge(groups=groups)
    (found,) = [each for each in decision.checks if each.result is CheckOutcome.FAIL]
    assert (found.name, found.items) == ("target_commits", ("shop",))
    assert found.cases == ("shop: no commit on orders, refunds, which it reads as copies",)
    settled = (group(unsynced_origins=("orders",)),)
    assert judge(groups=settled, accept=["target_commits/shop=by hand"]).verdict is GateVerdict.GO


def test_group_that_is_not_used_is_accepted_by_name() -> None:
    groups = (group(), group(group="old", remaining=9, uncommitted=1))
    found = judge(groups=groups).checks[0]
    assert (found.name, found.items) == ("source_groups", ("old",))
    assert judge(groups=groups, accept=["source_groups/old=retired"]).verdict is GateVerdict.GO


@pytest.mark.parametrize("side", ["source", "target"])
def test_group_that_is_active_without_a_commit_fails_by_name(side: str) -> None:
    fields: dict[str, Any] = {f"uncommitted_{side}_groups": ("flink", "console-consumer-7")}
    decision = judge(**fields)
    found = decision.checks[0]
    assert (found.name, found.result, found.items) == (
        f"{side}_groups",
        CheckOutcome.FAIL,
        ("flink",),
    )
    assert found.cases == ("flink: is active, and has no commit",)
    accept = [f"{side}_groups/flink=keeps its own offsets"]
    assert judge(**fields, accept=accept).verdict is GateVerdict.GO
    old = judge(**fields, groups_listed_at=FROZEN - 1)
    assert result(old, f"{side}_groups").result is CheckOutcome.UNKNOWN


def test_audit_is_compared_with_the_timestamps_of_records_where_these_are_known() -> None:
    early = AuditFact(FROZEN - 100)
    assert judge(audit=early).verdict is GateVerdict.UNKNOWN
    assert judge(audit=early, quiet_after=FROZEN - 101).verdict is GateVerdict.GO
    assert judge(audit=CLEAN, quiet_after=NOW + 1).verdict is GateVerdict.UNKNOWN
    partly = replace(CLEAN, unjudged=Cases(1, ("2 topics were not audited",)))
    assert judge(audit=partly).verdict is GateVerdict.UNKNOWN


def test_failed_task_is_found_beside_a_connector_without_tasks() -> None:
    tasks = (TaskFact(SOURCE, 0, "failed"),)
    assert result(judge(tasks=tasks), "connectors").result is CheckOutcome.FAIL


def test_checkpoint_connector_has_no_task_without_groups_to_carry() -> None:
    tasks = SAFE.tasks[:3]
    assert result(judge(tasks=tasks), "connectors").result is CheckOutcome.UNKNOWN
    for groups in ((), (group(carried=False),)):
        found = result(judge(tasks=tasks, groups=groups), "connectors")
        assert found.result is CheckOutcome.PASS
    paused = (*SAFE.tasks[:2], TaskFact(CHECKPOINT, None, "paused"))
    assert result(judge(tasks=paused, groups=()), "connectors").result is CheckOutcome.FAIL
    changes: tuple[dict[str, Any], ...] = (
        {"tasks": SAFE.tasks[:2]},
        {"tasks": (SAFE.tasks[0], *SAFE.tasks[2:])},
        {"groups_read": False},
        {"unread_groups": ONE},
        {"uncommitted_source_groups": ("live",)},
    )
    for changed in changes:
        found = result(judge(**{"tasks": tasks, "groups": (), **changed}), "connectors")
        assert found.result is CheckOutcome.UNKNOWN, changed


def test_commit_outside_of_the_log_on_the_target_is_in_the_way() -> None:
    groups = (group(blocked=("target_offset_beyond_end",), redelivery_most=None),)
    decision = judge(groups=groups)
    assert decision.checks[0].name == "target_groups"
    assert result(decision, "redelivery").consequence_of == ("target_groups",)


def test_readers_of_a_source_without_acls_are_not_judged() -> None:
    assert judge(access=AccessFacts(NOW, unjudged=True)).verdict is GateVerdict.UNKNOWN


def test_item_may_contain_an_equals_sign() -> None:
    waiver = parse_waiver("access/User:CN=web,O=x=old producer")
    assert (waiver.check, waiver.item) == ("access", "User:CN=web,O=x")
    assert waiver.reason == "old producer"
    assert parse_waiver("audit=a=b").reason == "a=b"


def test_audit_up_to_a_time_before_the_last_record_is_unknown() -> None:
    assert result(judge(audit=AuditFact(FROZEN - 10)), "audit").result is CheckOutcome.UNKNOWN
    sampled = result(judge(audit=AuditFact(NOW, sample_rate=0.01)), "audit")
    assert (sampled.result, "1.000%" in sampled.text) == (CheckOutcome.PASS, True)


def test_nothing_read_is_never_go() -> None:
    for phase in CutoverPhase:
        decision = decide(GateQuestion(phase, not_read(Flow("us", "eu"), NOW), CutoverTerms()))
        assert decision.verdict is not GateVerdict.GO
        passed = {each.name for each in decision.checks if each.result is CheckOutcome.PASS}
        assert passed == set(), passed


@pytest.mark.parametrize("name", ["clusters", "connectors", "flow", "topics"])
def test_check_before_a_round_says_that_it_was_not_read_yet(name: str) -> None:
    evidence = not_read(Flow("us", "eu"), NOW)
    found = result(decide(GateQuestion(CutoverPhase.GO, evidence, CutoverTerms())), name)
    assert found.text == "not read yet: a round of the exporter"
    assert (found.result, found.next_step) == (CheckOutcome.UNKNOWN, "ask again in some seconds")


def test_flow_that_was_not_audited_names_a_complete_command() -> None:
    step = result(judge(audit=None), "audit").next_step
    assert step.startswith("run `mm2slo audit --config mm2slo.yaml --flow 'us->eu'` up to now")


def test_reasons_without_a_position_are_reasons_of_readiness() -> None:
    assert {each.value for each in BlockReason} >= NO_POSITION


@pytest.mark.parametrize("text", ["audit", "audit=", "=x", "access/=x", ""])
def test_acceptance_without_check_or_reason_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="expected CHECK=REASON"):
        parse_waiver(text)


def test_acceptance_of_another_phase_is_refused() -> None:
    with pytest.raises(UserError, match="no check 'lag' in phase go: expected one of clusters"):
        check_waivers(CutoverPhase.GO, CutoverTerms(waivers=(parse_waiver("lag=x"),)))
