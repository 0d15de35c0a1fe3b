"""SLIs that are measured per time slice, not per event."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.sli_counters import BAD, GOOD, NO_EVENTS, UNKNOWN, DueSlices, Sli, SliCount, SliKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

DEFAULT_HEARTBEAT_AGE = 30.0
DEFAULT_SYNC_SPACING = 100
"""MM2's `offset.lag.max`: the number of records before the next offset sync is written."""


class FreshnessClass(NamedTuple):
    """Partitions with a common data freshness objective: lag in seconds at most `threshold`."""

    name: str
    threshold: float


def data_freshness(
    slices: DueSlices,
    lags: Mapping[FreshnessClass, Iterable[float | None]],
) -> dict[SliKey, SliCount]:
    """Count partition-slices: good if the lag in seconds is within the threshold of its class.

    A lag of None is unknown (cluster unreachable, position not known). Each missed slice is unknown
    for every partition.
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
        partitions = good + bad + unknown
        counts[SliKey(Sli.DATA_FRESHNESS, name)] = SliCount(
            good * slices.measured,
            (good + bad) * slices.measured,
            unknown * slices.measured + partitions * slices.missed,
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
    """Count availability without canaries: good if the newest heartbeat is within *max_age*.

    Unknown if the target is unreadable, if the source has been unreachable long enough
    (*source_unreachable_for* seconds) to explain the missing heartbeats, and if no heartbeat ever
    arrived (they may be disabled).
    """
    if not slices.measured:
        return NO_EVENTS
    if heartbeat_age is None or not target_readable:
        events = UNKNOWN
    elif heartbeat_age <= max_age:
        events = GOOD
    elif source_unreachable_for > 0 and heartbeat_age - source_unreachable_for <= max_age:
        events = UNKNOWN
    else:
        events = BAD
    return SliCount(events.good, events.total, events.unknown + slices.missed)


class CheckpointSample(NamedTuple):
    """Committed offset and newest checkpoint of one group and partition at one time."""

    commit: int
    checkpoint_upstream: int | None
    """None: no checkpoint yet."""


class CheckpointCoverage:
    """Tracks whether checkpoints cover the commits of one group and partition in time.

    MM2 writes no checkpoint while the translated offset does not advance
    (MirrorCheckpointTask.checkpointIsMoreRecent), so age alone would count idle groups, and those
    between two offset syncs, as bad. Tracked is the oldest uncovered commit: a checkpoint covers it
    if its upstream offset is at most *slack* records behind.
    """

    __slots__ = ("_commit", "_uncovered_offset", "_uncovered_since")

    def __init__(self) -> None:
        self._commit: int | None = None
        self._uncovered_since: float | None = None
        self._uncovered_offset = 0

    def observe(self, at: float, sample: CheckpointSample, slack: int) -> bool:
        """Add the sample of time *at*; True if the commit changed since the last one."""
        moved = self._commit is not None and sample.commit != self._commit
        self._commit = sample.commit
        # A group that was reset to an earlier offset no longer needs the later one covered.
        self._uncovered_offset = min(self._uncovered_offset, sample.commit)
        reached = sample.checkpoint_upstream
        covers = None if reached is None else reached + slack
        if (
            self._uncovered_since is not None
            and covers is not None
            and covers >= self._uncovered_offset
        ):
            self._uncovered_since = None
        if self._uncovered_since is None and (covers is None or covers < sample.commit):
            self._uncovered_since, self._uncovered_offset = at, sample.commit
        return moved

    def is_overdue(self, now: float, timeout: float) -> bool:
        """Return whether a commit has been uncovered for more than *timeout* seconds."""
        return self._uncovered_since is not None and now - self._uncovered_since > timeout


class CheckpointFreshness:
    """Counts group-slices of groups whose commits changed: good if no commit is overdue."""

    __slots__ = ("_groups", "_moved_last", "_slack", "checkpoint_interval")

    def __init__(self, checkpoint_interval: float, slack: int = DEFAULT_SYNC_SPACING) -> None:
        self.checkpoint_interval = checkpoint_interval
        self._slack = slack
        self._groups: dict[str, dict[object, CheckpointCoverage]] = {}
        self._moved_last: AbstractSet[str] = frozenset()

    def count(
        self,
        now: float,
        slices: DueSlices,
        groups: Mapping[str, Mapping[object, CheckpointSample]] | None,
    ) -> SliCount:
        """Count one slice of *groups*: group -> partition -> sample.

        None: commits or checkpoints could not be read, so the groups that changed in the last
        measured slice are unknown. Removed groups and partitions are dropped.
        """
        if not slices.measured:
            return NO_EVENTS
        if groups is None:
            return SliCount(unknown=len(self._moved_last) * (1 + slices.missed))
        good = 0
        moved: set[str] = set()
        timeout = 3 * self.checkpoint_interval
        current: dict[str, dict[object, CheckpointCoverage]] = {}
        for group, samples in groups.items():
            known = self._groups.get(group, {})
            current[group] = kept = {key: known.get(key) or CheckpointCoverage() for key in samples}
            for key, sample in samples.items():
                if kept[key].observe(now, sample, self._slack):
                    moved.add(group)
            if group in moved:
                good += not any(each.is_overdue(now, timeout) for each in kept.values())
        unknown = len(moved) * slices.missed
        self._groups, self._moved_last = current, frozenset(moved)
        return SliCount(good, len(moved), unknown)
