"""The checks of a cutover: a table of pure functions over the evidence.

Each passes, fails, or is unknown. Evidence older than the end of the traffic proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from mm2slo_core.audit.confidence_bounds import plural
from mm2slo_core.cutover.cutover_evidence import (
    NO_CASES,
    AccessGap,
    AuditFact,
    BudgetFact,
    Cases,
    CutoverEvidence,
    CutoverTerms,
    GroupFact,
)


class CutoverPhase(StrEnum):
    READY = "ready"
    """Under traffic, before the cutover."""
    GO = "go"
    """After producers have stopped."""


class CheckOutcome(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"
    ACCEPTED = "accepted"
    """The user accepts all that is unknown, and each item that fails."""


class GateQuestion(NamedTuple):
    """All that the checks judge."""

    phase: CutoverPhase
    evidence: CutoverEvidence
    terms: CutoverTerms
    audit: AuditFact | None = None
    """None without a results store."""
    budget: BudgetFact | None = None


class CheckAnswer(NamedTuple):
    """The answer of one check. *items* are names that a waiver can accept one by one."""

    result: CheckOutcome
    text: str
    cases: Cases = NO_CASES
    next_step: str = ""
    items: tuple[str, ...] = ()


CheckAnswers = list[CheckAnswer]
"""All that a check finds: what the user accepts of it must not hide the rest."""


class GateCheck(NamedTuple):
    """One check; *follows* are those whose failure makes this one fail, too."""

    name: str
    phases: frozenset[CutoverPhase]
    judge: Callable[[GateQuestion], CheckAnswer | CheckAnswers]
    follows: tuple[str, ...] = ()


def _passed(text: str) -> CheckAnswer:
    return CheckAnswer(CheckOutcome.PASS, text)


def _failed(
    text: str, next_step: str, cases: Cases = NO_CASES, items: Iterable[str] = ()
) -> CheckAnswer:
    return CheckAnswer(CheckOutcome.FAIL, text, cases, next_step, tuple(items))


def _unknown(text: str, next_step: str, cases: Cases = NO_CASES) -> CheckAnswer:
    return CheckAnswer(CheckOutcome.UNKNOWN, text, cases, next_step)


ALL_READ: Final = "clusters"


def _clusters(question: GateQuestion) -> CheckAnswer:
    """Both clusters answer, and everything was read."""
    seen = question.evidence
    if seen.unreadable:
        names = " and ".join(seen.unreadable)
        return _unknown(f"{names} cannot be read", "mm2slo check --connect shows why")
    if seen.waiting_for:
        return _waiting(seen)
    return _passed("both clusters were read")


def _waiting(seen: CutoverEvidence) -> CheckAnswer:
    return _unknown(f"not read yet: {', '.join(seen.waiting_for)}", "ask again in some seconds")


def _connectors(question: GateQuestion) -> CheckAnswer:
    """Source and checkpoint connector and all their tasks run, by the status topic.

    A paused checkpoint connector leaves groups where they were, without any other sign. Without
    groups to carry it has no task (`MirrorCheckpointConnector.taskConfigs`).
    """
    seen = question.evidence
    step = "resume or restart them, and ask again"
    bad: list[str] = []
    silent: list[str] = []
    for connector in (seen.source_connector, seen.checkpoint_connector):
        own = [each for each in seen.tasks if each.connector == connector]
        tasks = [each for each in own if each.task is not None]
        idle = own and connector == seen.checkpoint_connector and _has_no_groups(seen)
        if not tasks and not idle:
            silent.append(connector)
        for each in own:
            if each.state != "running":
                task = "" if each.task is None else f" task {each.task}"
                bad.append(f"{connector}{task} is {each.state}")
    if bad:
        return _failed("connectors or tasks do not run", step, _cases(bad))
    if silent and seen.waiting_for:
        return _waiting(seen)
    if silent:
        text = f"the status topic shows no task of {' and '.join(silent)}"
        return _unknown(text, "check the status topic, and that MirrorMaker 2 runs")
    return _passed("all tasks of the source and checkpoint connectors run")


def _has_no_groups(seen: CutoverEvidence) -> bool:
    """Whether MirrorMaker 2 is known to have no groups to carry."""
    others = seen.unread_groups.count or seen.uncommitted_source_groups
    return seen.groups_read and not others and not any(each.carried for each in seen.groups)


def _flow(question: GateQuestion) -> CheckAnswer | CheckAnswers:
    """The flow is not stopped, and the newest canary (heartbeat) is not overdue."""
    seen = question.evidence
    if seen.state == "stopped":
        return _failed(f"the flow is stopped ({seen.state_reason})", "see runbook MM2FlowStopped")
    if seen.state == "unknown" and seen.waiting_for:
        return _waiting(seen)
    found: CheckAnswers = []
    if seen.state == "unknown":
        text = f"the state of the flow is unknown ({seen.state_reason})"
        found.append(_unknown(text, "ask again in some seconds"))
    what = "canary" if seen.canaries else "heartbeat"
    if seen.arrived_at is None:
        step = (
            "configure canaries or heartbeats; without them a dead flow without traffic looks idle"
        )
        return [*found, _unknown(f"no {what} has been seen to arrive", step)]
    age = seen.at - seen.arrived_at
    if age > seen.arrival_within:
        due = f"due within {_seconds(seen.arrival_within)}"
        text = f"the newest {what} arrived {_seconds(age)} ago, {due}"
        return _failed(text, "see runbook MM2FlowStopped")
    return found or _passed(
        f"the flow is {seen.state}; the newest {what} arrived {_seconds(age)} ago"
    )


def _producers(question: GateQuestion) -> CheckAnswer | CheckAnswers:
    """The ends of all data topics of the source have not changed for `--freeze`.

    A producer that closes may still send for `delivery.timeout.ms` (KIP-91). Before the
    first question, movement is not held against anybody: the producers may have been running.
    """
    seen, freeze = question.evidence, question.terms.freeze
    found: CheckAnswers = []
    if seen.unread_ends.count:
        text = f"the ends of {plural(seen.unread_ends.count, 'partition')} are not known"
        found.append(_unknown(text, "check the leaders of these partitions", seen.unread_ends))
    frozen = _frozen_for(seen)
    # A topic that appeared restarts the freeze as well.
    if frozen < freeze and seen.written_at is not None and seen.at - seen.written_at < freeze:
        writers = seen.access.writers if seen.access else ()
        who = f"; may write: {', '.join(writers[:5])}" if writers else ""
        return _failed(
            f"{plural(seen.written.count, 'topic')} written to while the gate was watching{who}",
            "stop their producers; each record restarts the freeze",
            seen.written,
        )
    if frozen < freeze:
        text = f"frozen for {_seconds(frozen)} of {_seconds(freeze)}"
        found.append(_unknown(text, "ask again when the time is over"))
    return found or _passed(f"no record was written for {_seconds(frozen)}")


def _transactions(question: GateQuestion) -> CheckAnswer:
    """The last stable offset of each partition is its end, read after the last record."""
    seen = question.evidence
    if _is_old(seen, seen.transactions_read_at):
        return _unknown(
            "transactions were not read since the last record", "ask again in some seconds"
        )
    if seen.open_transactions.count:
        return _failed(
            f"open transactions on {plural(seen.open_transactions.count, 'partition')}",
            "let their producers commit or abort; kafka-transactions.sh find-hanging and abort end "
            "those that stay open",
            seen.open_transactions,
        )
    if seen.unread_transactions.count:
        return _unknown(
            f"not known for {plural(seen.unread_transactions.count, 'partition')}",
            "check the leaders of these partitions",
            seen.unread_transactions,
        )
    return _passed("no open transaction")


def _topics(question: GateQuestion) -> CheckAnswer:
    """Each topic has its copy; for go, none has appeared within `--freeze`."""
    seen = question.evidence
    if not seen.partitions and seen.waiting_for:
        return _waiting(seen)
    if not seen.partitions:
        text = "no topic of the flow is known"
        return _unknown(text, "check the topic filter, and that the source's topics may be listed")
    if seen.missing_copies.count:
        return _failed(
            f"{plural(seen.missing_copies.count, 'topic')} without a copy on the target",
            "wait for refresh.topics.interval.seconds, or restart the source connector; check the "
            "topic filter",
            seen.missing_copies,
        )
    newest = seen.newest_topic_at
    is_new = newest is not None and seen.at - newest < question.terms.freeze
    if question.phase is CutoverPhase.GO and seen.new_topics.count and is_new:
        return _failed(
            f"{plural(seen.new_topics.count, 'topic')} appeared while the gate was watching",
            "find out who creates topics, and wait until the copy exists",
            seen.new_topics,
        )
    return _passed("each topic has its copy")


def _partitions(question: GateQuestion) -> CheckAnswer:
    """Each copy has as many partitions as its topic."""
    found = question.evidence.partition_differences
    if found.count:
        return _failed(
            f"{plural(found.count, 'topic')} whose copy has another number of partitions",
            "add the partitions to the copy: keys go to other partitions otherwise, and records of "
            "missing partitions are not copied",
            found,
        )
    return _passed(f"copies have all {question.evidence.partitions:,} partitions")


def _settings(question: GateQuestion) -> CheckAnswer:
    """Synced settings of topics and copies are equal."""
    seen = question.evidence
    if not seen.settings_read:
        return _unknown("the settings of topics were not read yet", "ask again in a minute")
    if seen.setting_differences.count:
        return _failed(
            f"{plural(seen.setting_differences.count, 'topic')} whose copy has other settings",
            "let MirrorMaker 2 sync them (sync.topic.configs.enabled), or set them alike",
            seen.setting_differences,
        )
    return _passed("topics and copies have the same settings")


def _access(question: GateQuestion) -> CheckAnswer | CheckAnswers:
    """No ACL denies access to a copy or group; readers of the source may read on the target.

    MirrorMaker 2 copies literal ACLs of topics, those that deny as well, and removes none.
    """
    facts = question.evidence.access
    if facts is None:
        return _unknown("ACLs were not read yet", "ask again in some seconds")
    if facts.problem:
        step = "grant Describe on both clusters, or compare ACLs and accept this check"
        return _unknown(f"ACLs cannot be read: {facts.problem}", step)
    found: CheckAnswers = []
    if facts.denied:
        found.append(
            _failed(
                f"{plural(len(facts.denied), 'ACL')} of the target deny access",
                "remove them with kafka-acls.sh: MirrorMaker 2 copies a literal DENY of a topic "
                "and never removes it",
                *_gaps(facts.denied),
            )
        )
    if facts.missing:
        found.append(
            _failed(
                f"{plural(len(facts.missing), 'reader')} of the source may not read on the target",
                "grant Read on the copies and groups to the same principals",
                *_gaps(facts.missing),
            )
        )
    if facts.unjudged:
        found.append(
            _unknown(
                "the target has ACLs, and no ACL of the source names readers",
                "check that the consumers may read the copies, and accept this check",
            )
        )
    return found or _passed("ACLs do not keep consumers out")


def _gaps(gaps: Sequence[AccessGap]) -> tuple[Cases, list[str]]:
    return _cases(f"{each.principal}: {each.what}" for each in gaps), [
        each.principal for each in gaps
    ]


def _lag(question: GateQuestion) -> CheckAnswer:
    """The lag is below the largest freshness threshold, and does not grow over a minute."""
    seen = question.evidence
    if seen.lag_seconds is None:
        return _unknown("the lag is not known", "see the panel of positions")
    text = f"{_seconds(seen.lag_seconds)} behind"
    if seen.lag_seconds > seen.lag_limit:
        step = "let the flow catch up, or add tasks"
        return _failed(f"{text}, more than {_seconds(seen.lag_limit)}", step)
    if seen.lag_grows:
        return _failed(f"{text}, and growing", "add tasks: the flow does not keep up")
    if seen.lag_grows is None:
        return _unknown(f"{text}; not watched for a minute yet", "ask again in a minute")
    return _passed(f"{text}, not growing")


def _positions(question: GateQuestion) -> CheckAnswer:
    """Each partition is copied to its end, but what a transform drops."""
    seen = question.evidence
    if seen.behind.count:
        return _failed(
            f"{plural(seen.behind.count, 'partition')} not copied to the end",
            "wait; if they do not move, see runbook MM2FlowStopped",
            seen.behind,
        )
    if seen.unknown_positions.count:
        return _unknown(
            f"the position of {plural(seen.unknown_positions.count, 'partition')} is not known",
            "see docs/limits.md for the kinds of flows without exact positions",
            seen.unknown_positions,
        )
    if seen.filtered.count:
        number = plural(seen.filtered.count, "partition")
        return _passed(f"copied to the end, but what a transform drops in {number}")
    return _passed("all partitions are copied to the end")


def _uncarried_groups(question: GateQuestion) -> CheckAnswer | CheckAnswers:
    """MirrorMaker 2 carries all groups: none is a Streams or share group, or excluded."""
    seen = question.evidence
    if not seen.groups_read:
        return _unknown("not all groups were read yet", "ask again in some seconds")
    uncarried = [each.group for each in seen.groups if not each.carried]
    excluded = [each for each in seen.excluded_groups if not each.startswith(_TOOL_GROUPS)]
    found: CheckAnswers = []
    if names := [*uncarried, *excluded]:
        described = [f"{each} (Streams or share group)" for each in uncarried]
        described += [f"{each} (excluded by the filter)" for each in excluded]
        found.append(
            _failed(
                f"MirrorMaker 2 does not carry {plural(len(names), 'group')}",
                "plan how each of them starts on the target, and accept it by name "
                f"(--accept uncarried_groups/{names[0]}=REASON)",
                _cases(described),
                names,
            )
        )
    if not seen.group_types_known:
        text = "whether there are Streams or share groups is not known"
        found.append(_unknown(text, "grant Describe on the groups of the source"))
    return found or _passed("MirrorMaker 2 carries all groups")


_TOOL_GROUPS: Final = ("console-consumer-", "__")
"""Of those that MirrorMaker 2 excludes by default (`DefaultGroupFilter`): not moved."""


def _groups(question: GateQuestion) -> CheckAnswer:
    """All groups are ready to fail over."""
    seen = question.evidence
    if not seen.groups_read:
        return _unknown("not all groups were read yet", "ask again in some seconds")
    bad = [
        f"{each.group}: {', '.join(each.blocked)}"
        for each in seen.groups
        if each.carried and each.blocked
    ]
    if bad:
        return _failed(
            f"{plural(len(bad), 'group')} not ready", "see runbook MM2FailoverNotReady", _cases(bad)
        )
    return _passed(f"{plural(len(seen.groups), 'group')} ready")


def _source_groups(question: GateQuestion) -> CheckAnswer | CheckAnswers:
    """No group has members on the source, and each has committed the end of each partition.

    Markers and compacted records at the end do not count.
    """
    seen = question.evidence
    found, groups = _current_groups(seen)
    members = [each for each in seen.groups if each.carried and each.members_on_source]
    bad = _active_groups(seen, members, seen.uncommitted_source_groups)
    unknown: list[str] = []
    for each in groups:
        if not each.carried:
            continue
        why = ["has members"] if each.members_on_source else []
        if each.uncommitted:
            why.append(f"no commit on {plural(each.uncommitted, 'partition')} with records")
        if each.remaining:
            why.append(f"up to {plural(each.remaining, 'record')} to read")
        if why:
            bad[each.group] = ", ".join(why)
        elif each.remaining is None or each.members_on_source is None:
            unknown.append(each.group)
    if bad:
        step = "let the consumers read to the end, then stop them"
        found.append(_failed_groups(bad, "not finished on the source", step))
    if unknown:
        text = (
            f"whether {plural(len(unknown), 'group')} has read everything and stopped is not known"
        )
        found.append(_unknown(text, "ask again in some seconds", _cases(unknown)))
    return found or _passed("all groups are stopped and have read to the end")


def _target_groups(question: GateQuestion) -> CheckAnswer | CheckAnswers:
    """No group has members on the target, or a commit there beyond its position or the log.

    MirrorMaker 2 moves no commit of a group with members on the target, and none backwards.
    """
    seen = question.evidence
    found, groups = _current_groups(seen)
    members = [each for each in seen.groups if each.members_on_target]
    bad = _active_groups(seen, members, seen.uncommitted_target_groups)
    unknown: list[str] = []
    for each in groups:
        why = ["has members"] if each.members_on_target else []
        if each.skipped_most:
            why.append(f"skips {_bounds(each.skipped_least, each.skipped_most)}")
        why += [reason for reason in each.blocked if reason in OUTSIDE_THE_LOG]
        if why:
            bad[each.group] = ", ".join(why)
        elif each.members_on_target is None:
            unknown.append(each.group)
    if bad:
        found.append(
            _failed_groups(
                bad,
                "with members or commits on the target that are in the way",
                "stop the members; delete the group's commits on the target "
                "(kafka-consumer-groups.sh --delete-offsets), so that MirrorMaker 2 writes them "
                "again",
            )
        )
    if unknown:
        text = f"whether {plural(len(unknown), 'group')} has members there is not known"
        step = "look with kafka-consumer-groups.sh --describe"
        found.append(_unknown(text, step, _cases(unknown)))
    return found or _passed("no group is active on the target or ahead of its position")


OUTSIDE_THE_LOG: Final = frozenset({"target_offset_expired", "target_offset_beyond_end"})
"""Values of `BlockReason`: the consumer's reset policy decides."""


def _checkpoints(question: GateQuestion) -> CheckAnswer | CheckAnswers:
    """Checkpoints are those of the last commits, and will not move any more.

    They follow a commit after the next flush, a round of checkpoints, and one of syncs, twice to be
    sure. Until then redelivery may still shrink, and a commit may be missing.
    """
    seen = question.evidence
    found, groups = _current_groups(seen)
    late: dict[str, str] = {}
    waiting: list[float] = []
    for each in groups:
        if not each.carried:
            continue
        if (left := _settles_in(seen, each)) > 0:
            waiting.append(left)
        elif each.checkpoint_lag or set(each.blocked) & NO_POSITION:
            lag = f"{each.checkpoint_lag or 0:,} offsets behind its commit"
            late[each.group] = ", ".join(each.blocked) or lag
    if late:
        step = "see runbook MM2CheckpointStalled"
        found.append(_failed_groups(late, "without a checkpoint of its last commit", step))
    if waiting:
        number, longest = plural(len(waiting), "group"), _seconds(max(waiting))
        text = f"{number} may still get newer checkpoints for {longest}"
        found.append(_unknown(text, "ask again when the time is over"))
    return found or _passed("checkpoints are those of the last commits")


def _settles_in(seen: CutoverEvidence, group: GroupFact) -> float:
    """Seconds for which checkpoints and commits on the target may still follow, if above 0."""
    changed_at = max(group.commits_changed_at or seen.at, seen.frozen_from or seen.at)
    return seen.settles_after - (seen.at - changed_at)


NO_POSITION: Final = frozenset(
    {
        "no_checkpoint",
        "no_offset_sync",
        "behind_oldest_sync",
        "checkpoint_stale",
        "not_synced_yet",
    }
)
"""Values of `BlockReason`: nothing says where a consumer resumes."""


def _target_commits(question: GateQuestion) -> CheckAnswer | CheckAnswers:
    """Each group has its commits on the target, where a consumer resumes.

    A checkpoint is no commit. Without `sync.group.offsets.enabled`, which is off by default, only
    an application that translates its offsets (`RemoteClusterUtils`) does not start where its
    `auto.offset.reset` says.
    """
    seen = question.evidence
    found, groups = _current_groups(seen)
    unsynced = [each for each in groups if each.carried and each.unsynced]
    bad = {
        each.group: f"no commit on {plural(each.unsynced, 'partition')}"
        for each in unsynced
        if _settles_in(seen, each) <= 0
    }
    origins = [each for each in groups if each.carried and each.unsynced_origins]
    for each in origins:
        topics = ", ".join(each.unsynced_origins[:_SHOWN])
        bad[each.group] = f"no commit on {topics}, which it reads as copies"
    if bad:
        step = (
            "set sync.group.offsets.enabled = true and ask again, or accept groups whose "
            "applications translate their offsets"
        )
        if origins:
            step = (
                "set the commits of these topics on the target (kafka-consumer-groups.sh "
                "--reset-offsets --to-datetime): MirrorMaker 2 does not translate them back"
            )
        found.append(_failed_groups(bad, "without commits on the target", step))
    if waiting := [each.group for each in unsynced if each.group not in bad]:
        text = f"{plural(len(waiting), 'group')} may still get commits on the target"
        found.append(_unknown(text, "ask again in a minute", _cases(waiting)))
    return found or _passed("each group has its commits on the target")


def _redelivery(question: GateQuestion) -> CheckAnswer | CheckAnswers:
    """No group reads more records again than `--accept-redelivery`."""
    limit = question.terms.redelivery
    found, groups = _current_groups(question.evidence)
    over: dict[str, str] = {}
    unknown: list[str] = []
    most = 0
    for each in groups:
        if not each.carried:
            continue
        if each.redelivery_most is None:
            unknown.append(f"{each.group}: {', '.join(each.blocked) or 'not known'}")
            continue
        most = max(most, each.redelivery_most)
        if each.redelivery_most > limit:
            bounds = _bounds(each.redelivery_least or 0, each.redelivery_most)
            over[each.group] = f"reads {bounds} again"
    if over:
        step = f"wait for newer checkpoints, or accept it (--accept-redelivery {most})"
        found.append(
            _failed_groups(over, f"would read more than {plural(limit, 'record')} again", step)
        )
    if unknown:
        text = f"not known for {plural(len(unknown), 'group')}"
        found.append(_unknown(text, "see runbook MM2FailoverNotReady", _cases(unknown)))
    return found or _passed(f"no group reads more than {plural(most, 'record')} again")


def _audit(question: GateQuestion) -> CheckAnswer:
    """An audit is complete up to the last record, without faults."""
    fact, seen = question.audit, question.evidence
    step = (
        f"run `mm2slo audit --config mm2slo.yaml --flow '{seen.flow}'` up to now, or accept the "
        "check (--accept audit=REASON)"
    )
    if fact is not None and fact.faults.count:
        return _failed(
            f"audits found {plural(fact.faults.count, 'kind')} of faults",
            "see the audit's report: decide for each record what happens to it",
            fact.faults,
        )
    if fact is None or fact.complete_up_to is None:
        return _unknown("the flow was not audited", step)
    # A record's timestamp is its producer's, so that only records themselves say when they end.
    last = seen.quiet_after if seen.quiet_after is not None else seen.frozen_from
    if last is None or fact.complete_up_to < last:
        behind = (seen.at if last is None else last) - fact.complete_up_to
        return _unknown(f"audited up to {_seconds(behind)} before the last record", step)
    if fact.unjudged.count:
        return _unknown("not everything could be audited", step, fact.unjudged)
    of_sample = "" if fact.sample_rate >= 1 else f" by a sample of {fact.sample_rate:.3%}"
    return _passed(f"audited up to the last record{of_sample}, without faults")


def _budget(question: GateQuestion) -> CheckAnswer:
    """No error budget of the flow is exhausted."""
    fact = question.budget
    if fact is None or not fact.objectives:
        return _unknown("no objective of the flow is known", "configure a history of SLIs")
    if fact.exhausted.count:
        return _failed(
            f"the error budget of {plural(fact.exhausted.count, 'objective')} is exhausted",
            "find out what spends it before moving consumers",
            fact.exhausted,
        )
    if fact.unknown.count:
        return _unknown(
            f"not known for {plural(fact.unknown.count, 'objective')}",
            "see the errors of these objectives in /slo",
            fact.unknown,
        )
    return _passed(f"{plural(fact.objectives, 'error budget')} left")


_BOTH: Final = frozenset(CutoverPhase)
_READY: Final = frozenset({CutoverPhase.READY})
_GO: Final = frozenset({CutoverPhase.GO})

CHECKS: Final = (
    GateCheck(ALL_READ, _BOTH, _clusters),
    GateCheck("connectors", _BOTH, _connectors, ("clusters",)),
    GateCheck("flow", _BOTH, _flow, ("clusters", "connectors")),
    GateCheck("producers", _GO, _producers, ("clusters",)),
    GateCheck("transactions", _GO, _transactions, ("clusters",)),
    GateCheck("topics", _BOTH, _topics, ("clusters", "connectors", "flow")),
    GateCheck("partitions", _BOTH, _partitions, ("clusters", "topics")),
    GateCheck("settings", _READY, _settings, ("clusters", "topics")),
    GateCheck("access", _BOTH, _access, ("clusters",)),
    GateCheck("lag", _READY, _lag, ("clusters", "connectors", "flow")),
    GateCheck(
        "positions",
        _GO,
        _positions,
        ("clusters", "connectors", "flow", "producers", "transactions", "topics", "partitions"),
    ),
    GateCheck("uncarried_groups", _BOTH, _uncarried_groups, ("clusters",)),
    GateCheck("source_groups", _GO, _source_groups, ("clusters", "producers", "transactions")),
    GateCheck("target_groups", _GO, _target_groups, ("clusters",)),
    GateCheck(
        "checkpoints",
        _GO,
        _checkpoints,
        ("clusters", "connectors", "flow", "producers", "source_groups", "target_groups"),
    ),
    GateCheck(
        "target_commits",
        _GO,
        _target_commits,
        ("clusters", "connectors", "flow", "target_groups", "checkpoints"),
    ),
    GateCheck(
        "groups",
        _READY,
        _groups,
        ("clusters", "connectors", "flow", "topics", "partitions"),
    ),
    GateCheck(
        "redelivery",
        _GO,
        _redelivery,
        (
            "clusters",
            "connectors",
            "flow",
            "producers",
            "partitions",
            "positions",
            "source_groups",
            "target_groups",
            "checkpoints",
            "target_commits",
        ),
    ),
    GateCheck("audit", _GO, _audit, ("clusters", "flow", "producers", "positions")),
    GateCheck("budget", _READY, _budget),
)
"""In the order of causes: each follows earlier ones only."""


def _frozen_for(seen: CutoverEvidence) -> float:
    """Seconds for which the ends of the source are known not to have changed."""
    if seen.frozen_from is None or seen.frozen_until is None:
        return 0.0
    return max(seen.frozen_until - seen.frozen_from, 0.0)


def _is_old(seen: CutoverEvidence, read_at: float | None) -> bool:
    """Whether something was read before the ends were as they are now, or long ago."""
    if read_at is None or seen.frozen_from is None:
        return True
    return read_at < seen.frozen_from or seen.at - read_at > _OLD_SECONDS


def _current_groups(seen: CutoverEvidence) -> tuple[CheckAnswers, Sequence[GroupFact]]:
    """Groups whose evidence proves something, and the answers for the others."""
    step = "ask again in some seconds"
    if not seen.groups_read:
        return [_unknown("not all groups were read yet", step)], ()
    if _is_old(seen, seen.groups_listed_at):
        return [_unknown("groups were not listed since the last record", step)], ()
    found: CheckAnswers = []
    if seen.unread_groups.count:
        text = f"{plural(seen.unread_groups.count, 'group')} cannot be read"
        grant = "grant Describe on these groups on both clusters"
        found.append(_unknown(text, grant, seen.unread_groups))
    old = [
        each.group for each in seen.groups if each.carried and _is_old(seen, each.commits_read_at)
    ]
    if old:
        text = f"{plural(len(old), 'group')} not read since the last record"
        found.append(_unknown(text, step, _cases(old)))
    return found, [each for each in seen.groups if each.group not in old]


def _active_groups(
    seen: CutoverEvidence, members: Iterable[GroupFact], uncommitted: Iterable[str]
) -> dict[str, str]:
    """Why active groups fail, whenever their commits were read; none of an old listing."""
    if not seen.groups_read or _is_old(seen, seen.groups_listed_at):
        return {}
    why = "is active, and has no commit"
    return {each.group: "has members" for each in members} | {
        each: why for each in uncommitted if not each.startswith(_TOOL_GROUPS)
    }


_OLD_SECONDS: Final = 300.0
"""Groups of distant clusters take several rounds; what is older shows a reader that hangs."""


def _failed_groups(bad: Mapping[str, str], what: str, next_step: str) -> CheckAnswer:
    return _failed(
        f"{plural(len(bad), 'group')} {what}",
        next_step,
        _cases(f"{group}: {why}" for group, why in bad.items()),
        bad,
    )


_SHOWN: Final = 20


def _cases(texts: Iterable[str]) -> Cases:
    found = tuple(texts)
    return Cases(len(found), found[:_SHOWN])


def _bounds(least: int, most: int) -> str:
    return plural(most, "record") if least == most else f"{least:,} to {plural(most, 'record')}"


def _seconds(value: float) -> str:
    return f"{value:,.1f} s" if value < 10 else f"{value:,.0f} s"
