"""Judging one time slice of the indicators that are measured by time, not by events."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.sli_counters import BAD, GOOD, NO_EVENTS, UNKNOWN, DueSlices, Sli, SliCount, SliKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

DEFAULT_HEARTBEAT_AGE = 30.0
DEFAULT_SYNC_SPACING = 100
"""MM2's `offset.lag.max`: so many records may pass before the next offset sync is written."""


class FreshnessClass(NamedTuple):
    """Partitions that share a data freshness objective: lag in seconds at most `threshold`."""

    name: str
    threshold: float


def data_freshness(
    slices: DueSlices,
    lags: Mapping[FreshnessClass, Iterable[float | None]],
) -> dict[SliKey, SliCount]:
    """Partition-slices: good where the lag in seconds is within the threshold of its class.

    None = the lag cannot be told, because a cluster is unreachable or the position is not known:
    unknown. Each missed slice is unknown for every partition.
    """
    counts: dict[SliKey, SliCount] = {}
    for (name, threshold), seconds in lags.items():
        good = bad = unknown = 0
        for lag in seconds:
            if lag is None:
                unknown += 1
            elif lag <= threshold:
                good += 1
            else:
                bad += 1
        everyone = good + bad + unknown
        counts[SliKey(Sli.DATA_FRESHNESS, name)] = SliCount(
            good * slices.judged,
            (good + bad) * slices.judged,
            unknown * slices.judged + everyone * slices.missed,
        )
    return counts


def heartbeat_availability(
    slices: DueSlices,
    heartbeat_age: float | None,
    *,
    target_readable: bool,
    source_unreachable_for: float = 0.0,
    max_age: float = DEFAULT_HEARTBEAT_AGE,
) -> SliCount:
    """Availability where no canaries are sent: the newest heartbeat is at most *max_age* old.

    Unknown while the target cannot be read, or while the source has been unreachable long enough
    (*source_unreachable_for* seconds) to explain the silence, and when no heartbeat ever came (they may be
    switched off by design).
    """
    if not slices.judged:
        return NO_EVENTS
    if heartbeat_age is None or not target_readable:
        judged = UNKNOWN
    elif heartbeat_age <= max_age:
        judged = GOOD
    elif source_unreachable_for > 0 and heartbeat_age - source_unreachable_for <= max_age:
        judged = UNKNOWN
    else:
        judged = BAD
    return SliCount(judged.good, judged.total, judged.unknown + slices.missed)


class CheckpointSample(NamedTuple):
    """Commit and newest checkpoint of one (group, partition) at one moment."""

    commit: int
    checkpoint_upstream: int | None
    """None: no checkpoint was ever seen."""


class CheckpointCoverage:
    """Is a group's progress covered by checkpoints in time? One (group, partition).

    MM2 writes no checkpoint while the translated offset does not advance (facts of
    MirrorCheckpointTask.checkpointIsMoreRecent), so age alone accuses idle groups and those that
    move between two offset syncs. Judged is the oldest commit not yet covered: a checkpoint covers
    it when its upstream offset is at most *slack* records behind.
    """

    __slots__ = ("_commit", "_waits_since", "_waits_to")

    def __init__(self) -> None:
        self._commit: int | None = None
        self._waits_since: float | None = None
        self._waits_to = 0

    def observe(self, at: float, sample: CheckpointSample, slack: int) -> bool:
        """Take the sample of moment *at*; True when the commit moved since the last one."""
        moved = self._commit is not None and sample.commit != self._commit
        self._commit = sample.commit
        # A group that was reset to an earlier offset no longer waits for the later one.
        self._waits_to = min(self._waits_to, sample.commit)
        reached = sample.checkpoint_upstream
        covers = None if reached is None else reached + slack
        if self._waits_since is not None and covers is not None and covers >= self._waits_to:
            self._waits_since = None
        if self._waits_since is None and (covers is None or covers < sample.commit):
            self._waits_since, self._waits_to = at, sample.commit
        return moved

    def overdue(self, now: float, patience: float) -> bool:
        """True when a commit has waited for its checkpoint for longer than *patience* seconds."""
        return self._waits_since is not None and now - self._waits_since > patience


class CheckpointFreshness:
    """Group-slices of the groups whose source position moved: good when no commit is overdue."""

    __slots__ = ("_groups", "_moved_last", "_patience", "_slack")

    def __init__(self, checkpoint_interval: float, slack: int = DEFAULT_SYNC_SPACING) -> None:
        self._patience = 3 * checkpoint_interval
        self._slack = slack
        self._groups: dict[str, dict[object, CheckpointCoverage]] = {}
        self._moved_last: AbstractSet[str] = frozenset()

    def judge(
        self,
        now: float,
        slices: DueSlices,
        groups: Mapping[str, Mapping[object, CheckpointSample]] | None,
    ) -> SliCount:
        """Judge one slice of *groups*: group -> partition -> sample.

        None = commits or checkpoints could not be read: the groups that moved in the last slice
        that was seen are unknown. Groups and partitions that are gone are forgotten.
        """
        if not slices.judged:
            return NO_EVENTS
        if groups is None:
            return SliCount(unknown=len(self._moved_last) * (1 + slices.missed))
        good = 0
        moved: set[str] = set()
        watched: dict[str, dict[object, CheckpointCoverage]] = {}
        for group, samples in groups.items():
            known = self._groups.get(group, {})
            watched[group] = kept = {key: known.get(key) or CheckpointCoverage() for key in samples}
            for key, sample in samples.items():
                if kept[key].observe(now, sample, self._slack):
                    moved.add(group)
            if group in moved:
                good += not any(each.overdue(now, self._patience) for each in kept.values())
        unknown = len(moved) * slices.missed
        self._groups, self._moved_last = watched, frozenset(moved)
        return SliCount(good, len(moved), unknown)
