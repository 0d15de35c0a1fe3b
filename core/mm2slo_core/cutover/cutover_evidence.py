"""What was observed of a flow that a cutover depends on; immutable, and fit for JSON.

Times are epoch seconds, durations seconds. None means not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mm2slo_core.topology import Flow


@dataclass(frozen=True, slots=True)
class Cases:
    """How many there are, and the first of them as text."""

    count: int = 0
    first: tuple[str, ...] = ()


NO_CASES = Cases()


@dataclass(frozen=True, slots=True)
class TaskFact:
    """The state of a connector (`task` None) or of one of its tasks, from the status topic."""

    connector: str
    task: int | None
    state: str


@dataclass(frozen=True, slots=True)
class GroupFact:
    """A group of the source that commits offsets of the flow's topics."""

    group: str
    carried: bool
    """False for a group of a type that MirrorMaker 2 does not list."""
    members_on_source: bool | None
    members_on_target: bool | None
    remaining: int | None
    """At most: offsets between its commits and the ends of the source, but of ranges without a
    record. None also if an uncommitted partition may have records."""
    uncommitted: int
    """Partitions with records and without a commit, of topics on which it commits."""
    unsynced: int
    """Partitions with a commit on the source and records on the target, without a commit there."""
    unsynced_origins: tuple[str, ...]
    """Topics of the target that it reads on the source as copies, without its commits there."""
    checkpoint_lag: int | None
    """Commits on the source minus those of the newest checkpoints."""
    redelivery_least: int | None
    redelivery_most: int | None
    skipped_least: int
    skipped_most: int
    blocked: tuple[str, ...]
    """Reasons of its readiness, as in `BlockReason`."""
    commits_read_at: float | None
    commits_changed_at: float | None
    """When its commits were first read as they are now."""


@dataclass(frozen=True, slots=True)
class AccessGap:
    """What a principal of the source may not do on the target."""

    principal: str
    what: str


@dataclass(frozen=True, slots=True)
class AccessFacts:
    """ACLs of the flow's topics and their copies."""

    read_at: float
    unjudged: bool = False
    """Whether the target has ACLs, and the source none that name readers."""
    problem: str | None = None
    """Why they could not be read."""
    denied: tuple[AccessGap, ...] = ()
    """By a DENY on a copy or a group."""
    missing: tuple[AccessGap, ...] = ()
    """Of readers of the source, without an ACL on the target."""
    writers: tuple[str, ...] = ()
    """Principals that may write to the topics of the source."""


@dataclass(frozen=True, slots=True)
class CutoverEvidence:
    """The facts of one round; those that are read only for a cutover have times of their own."""

    flow: str
    at: float
    watched_since: float
    """When a cutover was first asked about. What happened before it is not held against it."""
    waiting_for: tuple[str, ...] = ()
    """What has not been read yet."""
    unreadable: tuple[str, ...] = ()
    """Aliases of clusters that do not answer."""
    state: str = "unknown"
    state_reason: str = ""
    arrived_at: float | None = None
    """When the newest canary, heartbeat or record arrived on the target."""
    arrival_within: float = 60.0
    """The time by which a canary or a heartbeat must arrive."""
    canaries: bool = False
    """Whether the flow has canaries; else heartbeats show that it is alive."""
    tasks: tuple[TaskFact, ...] = ()
    source_connector: str = ""
    checkpoint_connector: str = ""

    partitions: int = 0
    """Of the flow's data topics on the source."""
    lag_seconds: float | None = None
    lag_limit: float = 60.0
    lag_grows: bool | None = None
    """Over the last minute; None if it was not watched that long."""

    frozen_from: float | None = None
    """When the ends of the source were first read as they are now."""
    frozen_until: float | None = None
    """When they were last requested."""
    quiet_after: float | None = None
    """No record has this timestamp or a later one; None if that is not known."""
    written: Cases = NO_CASES
    """Topics that were written to since `watched_since`, newest first."""
    written_at: float | None = None
    """When the newest of these records was read, at the latest."""
    unread_ends: Cases = NO_CASES
    transactions_read_at: float | None = None
    open_transactions: Cases = NO_CASES
    unread_transactions: Cases = NO_CASES

    new_topics: Cases = NO_CASES
    """Topics that appeared since `watched_since`."""
    newest_topic_at: float | None = None
    missing_copies: Cases = NO_CASES
    partition_differences: Cases = NO_CASES
    setting_differences: Cases = NO_CASES
    settings_read: bool = False
    behind: Cases = NO_CASES
    unknown_positions: Cases = NO_CASES
    filtered: Cases = NO_CASES
    """Partitions at whose end a transform has dropped records."""

    groups_read: bool = False
    """Whether all groups of both clusters were read."""
    groups_listed_at: float | None = None
    """When all groups of both clusters were last listed, by the older of the two."""
    unread_groups: Cases = NO_CASES
    """Of either cluster."""
    group_types_known: bool = False
    """Whether Streams and share groups were listed, too."""
    groups: tuple[GroupFact, ...] = ()
    uncommitted_source_groups: tuple[str, ...] = ()
    """Active groups without a commit on any topic: what they read is not known."""
    uncommitted_target_groups: tuple[str, ...] = ()
    excluded_groups: tuple[str, ...] = ()
    """By the flow's filter."""
    settles_after: float = 300.0
    """One offset flush, two checkpoints and two syncs of group offsets."""
    access: AccessFacts | None = None
    """None until they were read."""


def not_read(flow: Flow, at: float) -> CutoverEvidence:
    """The evidence before a round, and of a flow that is no longer evaluated."""
    return CutoverEvidence(flow.label, at, at, waiting_for=("a round of the exporter",))


@dataclass(frozen=True, slots=True)
class AuditFact:
    """What audits say of a flow."""

    complete_up_to: float | None
    """Each record with an earlier timestamp is on the target or one of the findings."""
    faults: Cases = NO_CASES
    unjudged: Cases = NO_CASES
    """Topics that were not audited, and records that could not be."""
    sample_rate: float = 1.0


@dataclass(frozen=True, slots=True)
class BudgetFact:
    """What is left of the error budgets of a flow."""

    exhausted: Cases = NO_CASES
    unknown: Cases = NO_CASES
    objectives: int = 0


DEFAULT_FREEZE: Final = 120.0
"""Kafka's default of `delivery.timeout.ms` (`ProducerConfig`)."""


@dataclass(frozen=True, slots=True)
class CutoverTerms:
    """What the user states about a cutover."""

    freeze: float = DEFAULT_FREEZE
    """Seconds without a record on the source: longer than any producer's `delivery.timeout.ms`."""
    redelivery: int = 0
    """Records per group that may be read again."""
    waivers: tuple[Waiver, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiver:
    """A check whose answer is not known, or an item of one that fails, which the user accepts."""

    check: str
    item: str | None
    reason: str
