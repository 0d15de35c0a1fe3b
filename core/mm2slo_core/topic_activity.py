"""Does a target follow its source? Told from movement alone, where no position is known.

Other engines than MirrorMaker 2 leave no offsets to compare: records may lie in other partitions
and at other offsets, and the sums of both sides may differ for good. What can be told is that the
source moves and the target does not.
"""

from __future__ import annotations


class TopicActivityWatch:
    """Movement of one topic and its copy over successive rounds.

    A producer that writes both sides may reach either first, so a source that moves soon after
    the target proves nothing: something waits from the first movement of the source that comes
    more than *grace* seconds after the last of the target.
    """

    __slots__ = (
        "_grace",
        "_quiet_since",
        "_source_total",
        "_target_total",
        "moved_at",
        "backlog_since",
    )

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._source_total = self._target_total = 0
        self._quiet_since: float | None = None
        self.moved_at: float | None = None
        """When the target last moved; None before it was seen to."""
        self.backlog_since: float | None = None
        """Since when something waits; None while nothing is known to."""

    def observe(self, at: float, source_total: int, target_total: int) -> None:
        """Take the records appended to both sides so far, of a round in which both were read."""
        source_moved = source_total > self._source_total
        target_moved = target_total > self._target_total
        self._source_total, self._target_total = source_total, target_total
        if target_moved:
            self.moved_at = at
        if target_moved or self._quiet_since is None:
            self._quiet_since, self.backlog_since = at, None
        elif self.backlog_since is None and source_moved and at - self._quiet_since > self._grace:
            self.backlog_since = at
